// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/realservers"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
)

// killsEach is how often each real server is killed.
const killsEach = 3

// TestRealServersKilled: third-party servers are killed while conversations use them, and
// recover each time. The results about each written file are true.
func TestRealServersKilled(t *testing.T) {
	installed := realservers.Need(t)
	t.Logf("seed: -soak.seed %d", *soakSeed)
	book := openBook(t)
	before := takeAccount(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	graph := map[string]string{"MEMORY_FILE_PATH": filepath.Join(dir, "graph.jsonl")}
	fleet := []*server{
		realServer("everything", installed.Everything(), nil),
		realServer("files", installed.Filesystem(dir), nil),
		realServer("memory", installed.Memory(), graph),
		realServer("thinking", installed.SequentialThinking(), nil),
	}
	var ensembles []*ensemble.Ensemble
	for _, s := range fleet {
		ensembles = append(ensembles, s.ensemble)
	}
	roster, err := ensemble.NewRoster(ensembles...)
	if err != nil {
		t.Fatal(err)
	}
	connect(t, roster)
	d := harassReal(t, roster, book, fleet, dir)
	for _, s := range fleet {
		if err := s.ensemble.Connect(within(t)); err != nil {
			t.Errorf("%s did not come back for good: %v", s.name, err)
		}
		if n := s.ensemble.Snapshot().Restarts; n < killsEach {
			t.Errorf("%s came back %d times, want %d", s.name, n, killsEach)
		}
	}
	if err := roster.Close(within(t)); err != nil {
		t.Error(err)
	}
	calls, outcomes := 0, map[string]int{}
	for _, records := range book.read(t) {
		for _, r := range records {
			calls++
			outcomes[r.Code]++
			if wrong := untrueOfReal(r); wrong != "" {
				t.Errorf("%s: %+v", wrong, r)
			}
		}
	}
	for _, err := range d.errs {
		t.Error(err)
	}
	if outcomes[""] == 0 {
		t.Error("no call succeeded")
	}
	t.Logf("%d kills, %d calls by outcome %v, recovery p50 %s, longest %s", d.kills, calls, outcomes,
		d.percentile(50).Round(time.Millisecond), d.percentile(100).Round(time.Millisecond))
	before.settle(t)
}

func realServer(name string, argv []string, env map[string]string) *server {
	s := &server{name: name, mark: fmt.Sprintf("%s-%d-%d", name, os.Getpid(), time.Now().UnixNano())}
	environment := map[string]string{markVar: s.mark}
	for key, value := range env {
		environment[key] = value
	}
	s.ensemble = ensemble.New(name, mcpadapter.Stdio(argv, &mcpadapter.StdioOptions{Environment: environment}), &ensemble.Options{
		ConnectTimeout: patience / 2,
		Restart:        ensemble.Restart{Policy: ensemble.RestartAlways, Tries: -1, Window: 5 * time.Second},
	})
	return s
}

// harassReal holds conversations until each server was killed often enough.
func harassReal(t *testing.T, roster *ensemble.Roster, book *book, fleet []*server, dir string) *deeds {
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	d, over := new(deeds), new(atomic.Bool)
	var talks, killers sync.WaitGroup
	for i := range 8 {
		talks.Go(func() {
			random := rand.New(rand.NewPCG(*soakSeed, uint64(i)))
			model := &restless{random: random, think: 100 * time.Millisecond, wishes: errands(fmt.Sprint(i), dir), over: over}
			talk := converse.New(model, roster, nil)
			for !over.Load() && ctx.Err() == nil {
				if err := turn(ctx, talk, random); err != nil {
					t.Error(err)
					break
				}
			}
			history := talk.History()
			if err := errors.Join(talk.Close(ctx), book.add(history)); err != nil {
				t.Error(err)
			}
		})
	}
	for i, s := range fleet {
		killers.Go(func() {
			c := chaos{s, d, rand.New(rand.NewPCG(*soakSeed, uint64(100+i)))}
			for done := new(int); *done < killsEach && pause(ctx, c.between(50*time.Millisecond, 500*time.Millisecond)); {
				c.kill(ctx, syscall.SIGKILL, done)
			}
		})
	}
	killers.Wait()
	d.kills = killsEach * len(fleet)
	over.Store(true)
	talks.Wait()
	if err := ctx.Err(); err != nil {
		t.Errorf("it takes too long: %v", err)
	}
	return d
}

// errands requests actions that the real servers support. Each file is written once.
func errands(name, dir string) wishes {
	files := 0
	return func(random *rand.Rand) (string, string) {
		switch random.IntN(8) {
		case 0:
			return "everything__echo", `{"message":"here"}`
		case 1:
			return "everything__trigger-long-running-operation", `{"duration":0.3,"steps":3}`
		case 2:
			return "memory__read_graph", `{}`
		case 3:
			return "thinking__sequentialthinking", `{"thought":"hm","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`
		case 4:
			return "files__list_directory", fmt.Sprintf(`{"path":%q}`, dir)
		default:
			files++
			path := filepath.Join(dir, fmt.Sprintf("%s-%d", name, files))
			return "files__write_file", fmt.Sprintf(`{"path":%q,"content":"brass"}`, path)
		}
	}
}

// untrueOfReal returns what is wrong with a record.
func untrueOfReal(r record) string {
	switch invoker.Code(r.Code) {
	case "", invoker.OutcomeUnknown, invoker.Unavailable, invoker.Canceled, invoker.ToolNotFound:
	default:
		return "an outcome that a kill does not explain"
	}
	if r.Tool != "write_file" {
		return ""
	}
	_, rest, _ := strings.Cut(r.Arguments, `"path":"`)
	path, _, _ := strings.Cut(rest, `"`)
	content, err := os.ReadFile(path)
	never := r.Code == string(invoker.Unavailable) || r.Code == string(invoker.ToolNotFound) || r.saysNothingWasDone()
	switch {
	case r.Code == "" && string(content) != "brass":
		return fmt.Sprintf("the file was written, and has %q (%v)", content, err)
	case never && !errors.Is(err, fs.ErrNotExist):
		return "nothing was done, and the file is there"
	}
	return ""
}
