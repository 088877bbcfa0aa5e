// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/files"
	"github.com/consort-go/consort/converse/history/sqlite"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// What the conversations of the killed process are like.
const (
	killedTalks     = 24
	killedExchanges = 3 // with two calls each
)

// steady is a model that asks for two tools in each exchange, and is done then.
type steady struct{}

func (steady) Exchange(_ context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		exchanges, talk := 0, ""
		for _, c := range request.History {
			switch c := c.(type) {
			case canister.User:
				talk = canister.TextOf(c.Content)
			case canister.Assistant:
				exchanges++
			}
		}
		reply := converse.Reply{Message: canister.Assistant{
			Head: canister.Head{ID: request.NewID()}, Content: canister.Texts("done"), Finish: canister.FinishStop,
		}}
		if exchanges < killedExchanges {
			reply.Message.Content, reply.Message.Finish = nil, canister.FinishInvocations
			for _, tool := range []string{"once", "again"} {
				reply.Invocations = append(reply.Invocations, canister.Invocation{
					Head: canister.Head{ID: request.NewID()}, Message: reply.Message.ID, CallID: tool, Name: "world__" + tool,
					Arguments: fmt.Sprintf(`{"what":"%s-%s-%d"}`, tool, talk, exchanges),
				})
			}
		}
		yield(reply, nil)
	}
}

// world is a roster whose tools record their effects in a file, and return them.
func world(ledger *os.File) (*ensemble.Roster, error) {
	type args struct {
		What string `json:"what"`
	}
	do := func(_ context.Context, in args) (string, error) {
		_, err := fmt.Fprintln(ledger, in.What)
		fmt.Println(in.What)
		return "did " + in.What, err
	}
	once, err := invoker.New("once", "Happens.", do, nil)
	if err != nil {
		return nil, err
	}
	again, err := invoker.New("again", "Happens, and may happen again.", do, &invoker.Options{Hints: invoker.Hints{Idempotent: true}})
	if err != nil {
		return nil, err
	}
	return ensemble.NewRoster(ensemble.Local("world", once, again))
}

func openKept(kind, dir string) (history.Store, error) {
	if kind == "files" {
		return files.Open(dir, nil)
	}
	return sqlite.Open(filepath.Join(dir, "store.db"), nil)
}

// TestKilledChild is the process that TestKilled kills. It ends by itself when all
// conversations are answered.
func TestKilledChild(t *testing.T) {
	kind, dir := os.Getenv("ENGINE_KILL_KIND"), os.Getenv("ENGINE_KILL_DIR")
	if dir == "" {
		t.Skip("run by TestKilled")
	}
	store, err := openKept(kind, filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := os.OpenFile(filepath.Join(dir, "ledger"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	roster, err := world(ledger)
	if err != nil {
		t.Fatal(err)
	}
	local, err := engine.NewLocal(store, func(_ context.Context, id string) (*converse.Conversation, error) {
		return converse.New(steady{}, roster, &converse.Options{ID: id, Log: store}), nil
	}, &engine.Options{Work: 4, Backoff: 10 * time.Millisecond, Poll: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for i := range killedTalks {
		name := fmt.Sprint("t", i)
		if err := local.Send(t.Context(), name, said("m1", name)); err != nil {
			t.Fatalf("Send: %v", err)
		}
	}
	for i := range killedTalks {
		if ended := waitFor(t, local, fmt.Sprint("t", i), "m1"); ended.Reason != converse.ReasonAnswered {
			t.Fatalf("talk %d ended with %+v", i, ended)
		}
	}
	if err := local.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func said(id, text string) canister.User {
	return canister.User{Head: canister.Head{ID: id}, Content: canister.Texts(text)}
}

// waitFor waits for the end of a turn, and ignores failures that are retried.
func waitFor(t *testing.T, e engine.Engine, conversation, turn string) engine.Ended {
	t.Helper()
	for event, err := range e.Watch(t.Context(), conversation, 0) {
		if err != nil {
			t.Fatalf("Watch of %s: %v", conversation, err)
		}
		if ended, ok := event.(engine.Ended); ok && ended.Turn == turn && ended.Again.IsZero() {
			return ended
		}
	}
	t.Fatalf("Watch of %s ended", conversation)
	return engine.Ended{}
}

// A process with many conversations is killed again and again. In the end all are
// answered, the logs are sound, and no effect has happened twice that must not.
func TestKilled(t *testing.T) {
	for _, kind := range []string{"files", "sqlite"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "store"), 0o700); err != nil {
				t.Fatal(err)
			}
			random := rand.New(rand.NewPCG(7, 11))
			kills := 0
			for killAfter(t, kind, dir, 1+random.IntN(18)) {
				if kills++; kills > 500 {
					t.Fatal("it never ends")
				}
			}
			if kills < 5 {
				t.Errorf("it was killed only %d times", kills)
			}
			checkKilled(t, kind, dir, kills)
		})
	}
}

// killAfter runs the process and kills it when its tools have done so many things,
// or later; false if it ended by itself.
func killAfter(t *testing.T, kind, dir string, effects int) bool {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestKilledChild$", "-test.timeout", "2m")
	child.Env = append(os.Environ(), "ENGINE_KILL_KIND="+kind, "ENGINE_KILL_DIR="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	killed := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fmt.Fprintln(&output, lines.Text())
		if !strings.HasPrefix(lines.Text(), "once-") && !strings.HasPrefix(lines.Text(), "again-") {
			continue
		}
		if effects--; effects == 0 {
			killed = true
			if err := child.Process.Kill(); err != nil { // SIGKILL
				t.Fatal(err)
			}
		}
	}
	if err := child.Wait(); err != nil && !killed {
		t.Fatalf("the process ended with %v:\n%s", err, &output)
	}
	return killed
}

// checkKilled compares the logs with the ledger.
func checkKilled(t *testing.T, kind, dir string, kills int) {
	store, err := openKept(kind, filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	data, err := os.ReadFile(filepath.Join(dir, "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	ledger := map[string]int{}
	for line := range strings.Lines(string(data)) {
		ledger[strings.TrimSpace(line)]++
	}
	unknown, repeated := 0, 0
	for i := range killedTalks {
		name := fmt.Sprint("t", i)
		var list []canister.Canister
		for c, err := range store.Read(t.Context(), name, 0) {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, c)
		}
		if problems := sequence.Check(list); len(problems) > 0 {
			t.Errorf("the log of %s is broken: %v", name, problems)
		}
		results := resultsOf(list)
		for n := range killedExchanges {
			once, again := fmt.Sprintf("once-%s-%d", name, n), fmt.Sprintf("again-%s-%d", name, n)
			switch result := results[once]; {
			case ledger[once] == 1 && result.Code == "":
			case ledger[once] <= 1 && result.Code == string(invoker.OutcomeUnknown):
				unknown++
			default:
				t.Errorf("%s happened %d times, and its result is %q", once, ledger[once], result.Code)
			}
			if ledger[again] < 1 || results[again].Code != "" {
				t.Errorf("%s happened %d times, and its result is %q", again, ledger[again], results[again].Code)
			}
			repeated += ledger[again] - 1
		}
	}
	t.Logf("%d kills; of %d calls that must not be repeated %d have an unknown outcome; of as many that may, %d happened more than once", kills,
		killedTalks*killedExchanges, unknown, repeated)
}

// resultsOf returns the results of a log by their actions.
func resultsOf(list []canister.Canister) map[string]canister.Result {
	results := map[string]canister.Result{}
	for _, c := range list {
		result, ok := c.(canister.Result)
		if !ok {
			continue
		}
		i := slices.IndexFunc(list, func(c canister.Canister) bool { return c.Header().ID == result.Invocation })
		what := strings.TrimSuffix(strings.TrimPrefix(list[i].(canister.Invocation).Arguments, `{"what":"`), `"}`)
		results[what] = result
	}
	return results
}
