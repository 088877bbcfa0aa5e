// SPDX-License-Identifier: Apache-2.0

//go:build unix

package clientcalls_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/files"
	"github.com/consort-go/consort/converse/history/postgres"
	"github.com/consort-go/consort/converse/history/sqlite"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/internal/testing/pgtest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	mcpserver "github.com/consort-go/consort/mcpadapter/server"
	"go.uber.org/zap"
)

// The environment of a child: where it works, with which store, and at which of its steps
// it kills itself.
const (
	childDSN   = "CLIENTCALLS_DSN" // of PostgreSQL; the name of the folder is that of the schema
	childDir   = "CLIENTCALLS_DIR"
	childStore = "CLIENTCALLS_STORE"
	childStep  = "CLIENTCALLS_STEP"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(child(dir))
	}
	os.Exit(m.Run())
}

func openIn(dir, kind string) (history.Store, error) {
	switch kind {
	case "files":
		return files.Open(filepath.Join(dir, "history"), nil)
	case "postgres":
		return postgres.Open(context.Background(), os.Getenv(childDSN), &postgres.Options{Schema: filepath.Base(dir)})
	}
	return sqlite.Open(filepath.Join(dir, "history.db"), nil)
}

// fuse kills the process at a step, before or after the step takes effect.
type fuse struct{ left int }

func (f *fuse) burn() {
	if f.left--; f.left == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// fused is a store whose appends are steps.
type fused struct {
	history.Store
	*fuse
}

func (f fused) Append(ctx context.Context, id string, expected int, canisters ...canister.Canister) error {
	f.burn()
	defer f.burn()
	return f.Store.Append(ctx, id, expected, canisters...)
}

func (f fused) Describe(ctx context.Context, id string, change history.Change) error {
	f.burn()
	return f.Store.Describe(ctx, id, change)
}

// child makes one call, whose effect is a line in a file, and prints its failure.
func child(dir string) int {
	store, err := openIn(dir, os.Getenv(childStore))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer store.Close()
	step, _ := strconv.Atoi(os.Getenv(childStep))
	f := &fuse{left: step}
	pay, err := invoker.New("pay", "Pay.", func(context.Context, payment) (string, error) {
		f.burn()
		defer f.burn()
		effects, err := os.OpenFile(filepath.Join(dir, "effects"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return "", err
		}
		_, err = effects.WriteString("paid\n")
		return "paid", errors.Join(err, effects.Close())
	}, nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	bank := ensemble.New("bank", ensemble.LocalSource(pay), nil)
	defer bank.Close(context.Background())
	tools, err := bank.Tools(context.Background())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	rules := &clientcalls.Rules{
		Demand:  func(context.Context, ensemble.Item) (clientcalls.Demand, bool) { return clientcalls.Demand{}, true },
		Budgets: func(context.Context) []clientcalls.Budget { return nil },
		Store:   func(context.Context) (history.Store, error) { return fused{store, f}, nil },
		Address: func(*ensemble.Ensemble) (string, bool) { return "here", true },
		Logger:  zap.NewNop(),
	}
	_, err = clientcalls.NewGate().Invoke(as(context.Background(), "ada"), rules, &mcpserver.ToolCall{
		Tool: tools[0], Item: ensemble.Item{Kind: ensemble.ToolItem, Ensemble: "bank", Name: "pay"},
		Call: &invoker.Call{ID: "1", Arguments: json.RawMessage(toAda)}, Record: &audit.Record{},
	})
	if failure := invoker.AsFailure(err); failure != nil {
		fmt.Println(failure.Code, failure.Message)
		return 0
	}
	fmt.Print(audit.OK)
	return 0
}

// victim runs children in one place.
type victim struct {
	*testing.T
	dir, store string
	allowed    int // approvals that a person gave
	unknown    bool
	ok         bool // reported as the result, or when it was called again
}

// calls runs a child that dies at a step, or never if it is 0. It reports whether it died.
func (v *victim) calls(step int) (died bool) {
	v.Helper()
	cmd := exec.CommandContext(v.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+v.dir, childStore+"="+v.store, childStep+"="+strconv.Itoa(step))
	out, err := cmd.Output()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return true
	}
	if err != nil {
		v.Fatalf("%v: %s", err, out)
	}
	v.unknown = v.unknown || strings.HasPrefix(string(out), string(invoker.OutcomeUnknown))
	v.ok = v.ok || string(out) == audit.OK || strings.Contains(string(out), "was made before, and succeeded at")
	return false
}

// allows answers what waits.
func (v *victim) allows() {
	v.Helper()
	store, err := openIn(v.dir, v.store)
	if err != nil {
		v.Fatal(err)
	}
	defer store.Close()
	for info, err := range store.List(v.Context(), history.Filter{}) {
		if err != nil {
			v.Fatal(err)
		}
		canisters, err := history.From(v.Context(), store, info.ID, 0)
		if err != nil {
			v.Fatal(err)
		}
		for _, wait := range waits.Open(info.ID, canisters, time.Now()) {
			err := waits.Answer(v.Context(), store, info.ID, canister.Answer{Wait: wait.ID, Verdict: canister.VerdictAllow, By: "dana"}, time.Now())
			if err != nil {
				v.Fatal(err)
			}
			v.allowed++
		}
	}
}

func (v *victim) effects() int {
	text, _ := os.ReadFile(filepath.Join(v.dir, "effects"))
	return strings.Count(string(text), "paid\n")
}

// A process that is killed at any step of a call leaves no effect without an approval: the
// call has one effect, or the next one reports that the outcome is unknown.
func TestKilledAtEachStep(t *testing.T) {
	for _, store := range []string{"files", "sqlite"} {
		t.Run(store, func(t *testing.T) {
			deaths := 0
			for step := 1; killedAt(t, store, t.TempDir(), step); step++ {
				deaths++
			}
			if deaths < 6 { // before and after the appends, and the effect
				t.Errorf("the process died at %d steps only", deaths)
			}
		})
	}
}

// The same with PostgreSQL: at the steps around the intent and the effect, and at each step with
// CONSORT_KILLED=all, which takes half a minute.
func TestKilledWithPostgreSQL(t *testing.T) {
	t.Setenv(childDSN, pgtest.DSN(t))
	folder, deaths := t.TempDir(), 0
	at := func(step int) bool {
		dir := filepath.Join(folder, fmt.Sprint("step", step))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return killedAt(t, "postgres", dir, step)
	}
	if os.Getenv("CONSORT_KILLED") != "all" {
		for _, step := range []int{2, 4} {
			if !at(step) {
				t.Errorf("the process did not die at step %d", step)
			}
		}
		return
	}
	for step := 1; at(step); step++ {
		deaths++
	}
	if deaths < 6 {
		t.Errorf("the process died at %d steps only", deaths)
	}
}

// killedAt makes and approves a call in processes that are killed at a step. It reports whether
// one was killed.
func killedAt(t *testing.T, store, dir string, step int) (died bool) {
	t.Helper()
	v := &victim{T: t, dir: dir, store: store}
	died = v.calls(step)
	if v.effects() != 0 {
		t.Errorf("step %d: an effect before an answer", step)
	}
	v.calls(0) // it waits, whatever died before
	v.allows()
	if v.calls(step) {
		died = true
	}
	if v.effects() > v.allowed {
		t.Errorf("step %d: %d effects of %d approvals", step, v.effects(), v.allowed)
	}
	if !v.ok {
		v.calls(0)
	}
	if v.allowed != 1 || v.effects() > 1 || v.ok == v.unknown || v.ok && v.effects() != 1 {
		t.Errorf("step %d: %d approvals, %d effects, success %v, unknown %v", step, v.allowed, v.effects(), v.ok, v.unknown)
	}
	v.calls(0) // is asked about again
	if v.effects() > 1 {
		t.Errorf("step %d: the approval was used again", step)
	}
	return died
}
