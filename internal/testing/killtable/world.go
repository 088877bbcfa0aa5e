// SPDX-License-Identifier: Apache-2.0

//go:build unix

package killtable

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/ensemble/ensembletest/faultserver"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// patience is how long a child works before it gives up and says why. A child that has still
// not ended after another quarter of a minute is made to print its goroutines.
const patience = time.Minute

// World is the environment of a conversation, which outlives its processes: the servers
// of the model and the tools, with their ledgers, and the store.
type World struct {
	tb     testing.TB
	Spec   Spec // for the next child
	Model  *openaiserver.Server
	Tools  *faultserver.Server
	dir    string // of the ledger
	struck int    // how many calls must reach the point

	// Stopped is closed when the first child of a Spec with Stop has stopped during a
	// call. The server does not answer that call until Release is closed.
	Stopped, Release chan struct{}

	mu      sync.Mutex
	child   *Process // the first
	at      int      // calls that have reached the point
	started chan struct{}
}

// NewWorld starts the servers for a conversation whose process dies or stops at a point;
// the zero Point means nowhere. The servers end with the test.
func NewWorld(tb testing.TB, spec Spec, point Point) *World {
	w := &World{tb: tb, Spec: spec, dir: tb.TempDir(), struck: 1, started: make(chan struct{}), Stopped: make(chan struct{}), Release: make(chan struct{})}
	if point.Moment != "" {
		w.Spec.Point = &point
	}
	w.serve(w.faults(point))
	return w
}

// faults returns the faults of the tool server: a call at the point gets no answer, or a
// late one if the child only stops.
func (w *World) faults(point Point) faultserver.Script {
	script := faultserver.Script{Dir: w.dir}
	place := map[Moment]faultserver.Place{InCall: "before-effect", AfterEffect: "after-effect"}[point.Moment]
	if place == "" {
		return script
	}
	tools := []string{point.Tool}
	if point.Together {
		w.Spec.Parallel, w.struck, tools = len(Tools), len(Tools), Tools
	}
	for _, tool := range tools {
		rule := faultserver.Rule{Fault: "silence", At: place, Tool: tool, Nth: point.Exchange}
		if w.Spec.Stop {
			rule.Fault, rule.Delay = "slow", 1
		}
		script.Rules = append(script.Rules, rule)
	}
	return script
}

// serve starts the servers.
func (w *World) serve(faults faultserver.Script) {
	w.tb.Helper()
	tools, err := faultserver.StartHTTP(faults, &faultserver.Options{Struck: w.strike})
	if err != nil {
		w.tb.Fatal(err)
	}
	w.tb.Cleanup(func() { _ = tools.Close() })
	model, err := openaiserver.Start(script(w.Spec.API), nil)
	if err != nil {
		w.tb.Fatal(err)
	}
	w.tb.Cleanup(func() { _ = model.Close() })
	w.Tools, w.Model = tools, model
	w.Spec.Model, w.Spec.Tools = model.URL(), tools.URL()
}

// Renew stops the servers and starts new ones, with the same ledger.
func (w *World) Renew() {
	w.tb.Helper()
	if err := errors.Join(w.Tools.Close(), w.Model.Close()); err != nil {
		w.tb.Fatal(err)
	}
	w.serve(faultserver.Script{Dir: w.dir})
}

// script returns the replies of the model, which have reasoning.
func script(api string) openaiserver.Script {
	var script openaiserver.Script
	for exchange := 1; exchange <= Exchanges; exchange++ {
		step := openaiserver.Step{Expect: openaiserver.Expect{ToolMessages: min(exchange-1, 1) * len(Tools)}}
		reply := openaiserver.Message{
			Text: fmt.Sprintf("This is exchange %d of those in which I ask for something.", exchange), Reasoning: "What is missing?", Pace: -1,
		}
		for _, tool := range Tools {
			reply.Calls = append(reply.Calls, openaiserver.Call{
				ID: callID(api, exchange, tool), Name: "shop__" + tool, Arguments: arguments(exchange, tool),
			})
		}
		step.Reply = reply
		script.Steps = append(script.Steps, step)
	}
	last := openaiserver.Message{Text: "All of it has been done.", Pace: -1}
	script.Steps = append(script.Steps, openaiserver.Step{Expect: openaiserver.Expect{ToolMessages: len(Tools)}, Reply: last})
	return script
}

// callID returns the ID that the server gives a call. The model of Messages replaces IDs of
// another form than Anthropic's.
func callID(api string, exchange int, tool string) string {
	if api == messages {
		return fmt.Sprintf("toolu_%d_%s", exchange, tool)
	}
	return fmt.Sprintf("call_%d_%s", exchange, tool)
}

// key identifies one call in its arguments.
func key(exchange int, tool string) string { return fmt.Sprintf("%s %d", tool, exchange) }

func arguments(exchange int, tool string) string {
	name := "key"
	if tool == ReadOnly {
		name = "text"
	}
	return fmt.Sprintf(`{%q:%q}`, name, key(exchange, tool))
}

// strike kills or stops the child when all expected calls have reached the point.
func (w *World) strike(faultserver.Entry) {
	<-w.started
	w.mu.Lock()
	w.at++
	all := w.at == w.struck
	w.mu.Unlock()
	switch {
	case !all:
	case w.child.stops:
		_ = w.child.cmd.Process.Signal(syscall.SIGSTOP)
		close(w.Stopped)
		<-w.Release
	default:
		_ = w.child.cmd.Process.Kill()
	}
}

// childProgram is the program of the children: this test binary, unless a test replaces it.
var childProgram = os.Args[0]

// Process is a child of a World.
type Process struct {
	tb     testing.TB
	cmd    *exec.Cmd
	stops  bool // it stops at its point and does not die
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr bytes.Buffer
	ended  chan struct{} // closed when the process has ended
	err    error
}

// Start starts a child with the world's Spec.
func (w *World) Start() *Process {
	w.tb.Helper()
	text, err := json.Marshal(w.Spec)
	if err != nil {
		w.tb.Fatal(err)
	}
	p := &Process{tb: w.tb, cmd: exec.Command(childProgram), stops: w.Spec.Stop, ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), Variable+"="+string(text), "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = &p.stderr
	p.pipes()
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

// pipes connects the pipes of a process that stops at its point.
func (p *Process) pipes() {
	p.tb.Helper()
	if !p.stops {
		return
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		p.tb.Fatal(err)
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		p.tb.Fatal(err)
	}
	p.stdout = bufio.NewReader(stdout)
}

// StandsStill waits until the process has reached its point, and then stops it. Use it
// only for points that the child itself reports.
func (p *Process) StandsStill() {
	p.tb.Helper()
	if line, err := p.stdout.ReadString('\n'); err != nil || line != here {
		p.Kill() // then stderr is complete
		p.tb.Fatalf("the child says %q, %v: %s", line, err, p.stderr.String())
	}
	p.Signal(syscall.SIGSTOP)
}

// WakesUp lets a stopped process continue. One whose call has returned may have ended already.
func (p *Process) WakesUp() {
	p.tb.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.tb.Fatal(err)
	}
	if err := p.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		p.tb.Fatal(err)
	}
}

// Kill ends the process, if it has not ended, and waits for it.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// Signal sends a signal to a process that has not ended.
func (p *Process) Signal(signal syscall.Signal) {
	p.tb.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.tb.Fatal(err)
	}
}

// Dies waits until the process has been killed, by itself or by the world.
func (p *Process) Dies() {
	p.tb.Helper()
	p.wait()
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || status.Signal() != syscall.SIGKILL {
		p.tb.Fatalf("the child was to be killed and ended with %v: %s", p.err, p.stderr.String())
	}
}

// Succeeds waits until the process has ended without an error.
func (p *Process) Succeeds() {
	p.tb.Helper()
	if p.wait(); p.err != nil {
		p.tb.Fatalf("the child ended with %v: %s", p.err, p.stderr.String())
	}
}

// Ends waits until the process has exited by itself, and returns its standard error,
// which is empty if nothing failed.
func (p *Process) Ends() string {
	p.tb.Helper()
	p.wait()
	if !p.cmd.ProcessState.Exited() {
		p.tb.Fatalf("the child ended with %v: %s", p.err, p.stderr.String())
	}
	return p.stderr.String()
}

func (p *Process) wait() {
	p.tb.Helper()
	timer := time.NewTimer(patience + patience/4)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		_ = p.cmd.Process.Signal(syscall.SIGCONT) // it may have been stopped
		<-p.ended
		p.tb.Fatalf("the child had not ended: %s", p.stderr.String())
	}
}

// Ledger returns the record of the effects that really happened.
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

// History reads the conversation. It must be valid, except that calls may be open.
func (w *World) History(store history.Store) []canister.Canister {
	w.tb.Helper()
	var list []canister.Canister
	for c, err := range store.Read(w.tb.Context(), w.Spec.Conversation, 0) {
		if err != nil {
			w.tb.Fatal(err)
		}
		list = append(list, c)
	}
	for _, problem := range sequence.Check(list) {
		if problem.Rule != sequence.RuleOpen {
			w.tb.Errorf("the history is not sound: %v", problem)
		}
	}
	return list
}

// In returns a path for a store in a folder or a file.
func In(tb testing.TB, name string) string { return filepath.Join(tb.TempDir(), name) }
