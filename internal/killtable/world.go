// SPDX-License-Identifier: Apache-2.0

//go:build unix

package killtable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/ensemble/ensembletest/faultserver"
	"github.com/consort-go/consort/internal/openaiserver"
)

// patience bounds the life of a child.
const patience = time.Minute

// World is what is around a conversation and outlives its processes: the
// servers of the model and of the tools, with their ledgers, and the store.
type World struct {
	tb     testing.TB
	Spec   Spec // for the next child
	Model  *openaiserver.Server
	Tools  *faultserver.Server
	dir    string // of the ledger
	struck int    // how many calls have to be at the point

	mu      sync.Mutex
	child   *Process
	at      int // calls that are at the point
	started chan struct{}
}

// NewWorld starts the servers for a conversation that is to die, or to stand
// still, at a point; the zero Point is nowhere. They end with the test.
func NewWorld(tb testing.TB, spec Spec, point Point) *World {
	w := &World{tb: tb, Spec: spec, dir: tb.TempDir(), struck: 1, started: make(chan struct{})}
	if point.Moment != "" {
		w.Spec.Point = &point
	}
	script := faultserver.Script{Dir: w.dir}
	place := map[Moment]faultserver.Place{InCall: faultserver.BeforeEffect, AfterEffect: faultserver.AfterEffect}[point.Moment]
	switch {
	case place != "" && point.Together:
		w.Spec.Parallel, w.struck = len(Tools), len(Tools)
		for _, tool := range Tools {
			script.Rules = append(script.Rules, faultserver.Rule{Fault: faultserver.Silence, At: place, Tool: tool, Nth: point.Exchange})
		}
	case place != "":
		script.Rules = []faultserver.Rule{{Fault: faultserver.Silence, At: place, Tool: point.Tool, Nth: point.Exchange}}
	}
	var err error
	if w.Tools, err = faultserver.StartHTTP(script, &faultserver.Options{Struck: w.strike}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = w.Tools.Close() })
	if w.Model, err = openaiserver.Start(Script(), nil); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = w.Model.Close() })
	w.Spec.Model, w.Spec.Tools = w.Model.URL(), w.Tools.URL()
	return w
}

// Script is what the model says.
func Script() openaiserver.Script {
	var script openaiserver.Script
	for exchange := 1; exchange <= Exchanges; exchange++ {
		step := openaiserver.Step{Expect: openaiserver.Expect{ToolMessages: min(exchange-1, 1) * len(Tools)}}
		reply := openaiserver.Message{Text: fmt.Sprintf("This is exchange %d of those in which I ask for something.", exchange), Pace: -1}
		for _, tool := range Tools {
			reply.Calls = append(reply.Calls, openaiserver.Call{
				ID: fmt.Sprintf("call_%d_%s", exchange, tool), Name: "shop__" + tool, Arguments: arguments(exchange, tool),
			})
		}
		step.Reply = reply
		script.Steps = append(script.Steps, step)
	}
	last := openaiserver.Message{Text: "All of it has been done.", Pace: -1}
	script.Steps = append(script.Steps, openaiserver.Step{Expect: openaiserver.Expect{ToolMessages: len(Tools)}, Reply: last})
	return script
}

// key names what one call does, in its arguments.
func key(exchange int, tool string) string { return fmt.Sprintf("%s %d", tool, exchange) }

func arguments(exchange int, tool string) string {
	name := "key"
	if tool == ReadOnly {
		name = "text"
	}
	return fmt.Sprintf(`{%q:%q}`, name, key(exchange, tool))
}

// strike ends the child when all the calls that have to be at the point are.
func (w *World) strike(faultserver.Entry) {
	<-w.started
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at++; w.at != w.struck || w.Spec.Point == nil {
		return
	}
	signal := syscall.SIGKILL
	if w.Spec.Stop {
		signal = syscall.SIGSTOP
	}
	_ = w.child.cmd.Process.Signal(signal)
}

// Process is a child of a World.
type Process struct {
	tb     testing.TB
	cmd    *exec.Cmd
	stderr bytes.Buffer
	ended  chan struct{} // closed when it has
	err    error
}

// Start starts a child with the world's Spec.
func (w *World) Start() *Process {
	w.tb.Helper()
	text, err := json.Marshal(w.Spec)
	if err != nil {
		w.tb.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		w.tb.Fatal(err)
	}
	p := &Process{tb: w.tb, cmd: exec.Command(program), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), Variable+"="+string(text), "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = &p.stderr
	if err := p.cmd.Start(); err != nil {
		w.tb.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		p.err = p.cmd.Wait()
	}()
	w.tb.Cleanup(p.Kill)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.child == nil {
		w.child = p
		close(w.started)
	}
	return p
}

// Kill ends the process, if it has not ended, and waits for it.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// Signal sends a signal.
func (p *Process) Signal(signal syscall.Signal) {
	p.tb.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.tb.Fatal(err)
	}
}

// Dies waits until the process has been killed by itself, or by the world.
func (p *Process) Dies() {
	p.tb.Helper()
	p.wait()
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || status.Signal() != syscall.SIGKILL {
		p.tb.Fatalf("the child was to be killed and ended with %v: %s", p.err, p.stderr.String())
	}
}

// Succeeds waits until the process has ended well.
func (p *Process) Succeeds() {
	p.tb.Helper()
	if p.wait(); p.err != nil {
		p.tb.Fatalf("the child ended with %v: %s", p.err, p.stderr.String())
	}
}

// Fails waits until the process has ended with an error, and returns its words.
func (p *Process) Fails() string {
	p.tb.Helper()
	p.wait()
	if exit, ok := errors.AsType[*exec.ExitError](p.err); !ok || !exit.Exited() {
		p.tb.Fatalf("the child was to fail and ended with %v: %s", p.err, p.stderr.String())
	}
	return p.stderr.String()
}

func (p *Process) wait() {
	p.tb.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		p.tb.Fatal("the child has not ended")
	}
}

// Ledger is what the tools have really done.
func (w *World) Ledger() faultserver.Ledger {
	w.tb.Helper()
	ledger, err := faultserver.ReadLedger(w.dir)
	if err != nil {
		w.tb.Fatal(err)
	}
	return ledger
}

// Store opens the store of the world; it is closed with the test.
func (w *World) Store() history.Store {
	w.tb.Helper()
	store, err := OpenStore(w.Spec.Store)
	if err != nil {
		w.tb.Fatal(err)
	}
	w.tb.Cleanup(func() {
		if err := store.Close(); err != nil {
			w.tb.Error(err)
		}
	})
	return store
}

// History reads the conversation, which has to be sound apart from what is open.
func (w *World) History(store history.Store) []canister.Canister {
	w.tb.Helper()
	var list []canister.Canister
	for c, err := range store.Read(w.tb.Context(), w.Spec.Conversation, 0) {
		if err != nil {
			w.tb.Fatal(err)
		}
		list = append(list, c)
	}
	for _, problem := range canister.Check(list) {
		if problem.Rule != canister.RuleOpen {
			w.tb.Errorf("the history is not sound: %v", problem)
		}
	}
	return list
}

// In is a place for a store that is a folder or a file.
func In(tb testing.TB, name string) string { return filepath.Join(tb.TempDir(), name) }
