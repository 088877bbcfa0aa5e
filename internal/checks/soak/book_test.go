// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/ensemble/ensembletest/faultserver"
	"github.com/consort-go/consort/invoker"
)

// record is one call and what its conversation was told of it.
type record struct {
	Server, Tool, Arguments, Code, Text string
}

// key is the key or the text of the arguments.
func (r record) key() string {
	var arguments struct{ Key, Text string }
	_ = json.Unmarshal([]byte(r.Arguments), &arguments)
	return arguments.Key + arguments.Text
}

// book keeps the records, on the disk: the memory is to stay flat.
type book struct {
	mu            sync.Mutex
	file          *os.File
	writer        *bufio.Writer
	conversations int
	err           error
}

func openBook(t *testing.T) *book {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "book"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return &book{file: file, writer: bufio.NewWriter(file)}
}

// add records the calls of a conversation that is over. Each has to have its
// result, and the history to be sound.
func (b *book) add(history []canister.Canister) error {
	if problems := sequence.Check(history); len(problems) > 0 {
		return fmt.Errorf("a history is not sound: %v", problems)
	}
	calls := map[string]record{}
	for _, c := range history {
		if call, ok := c.(canister.Invocation); ok {
			server, tool := split(call.Name)
			calls[call.ID] = record{Server: server, Tool: tool, Arguments: call.Arguments}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conversations++
	encoder := json.NewEncoder(b.writer)
	for _, c := range history {
		result, ok := c.(canister.Result)
		if !ok {
			continue
		}
		r, asked := calls[result.Invocation]
		if !asked {
			return fmt.Errorf("the result %s answers nothing, or again", result.ID)
		}
		delete(calls, result.Invocation)
		r.Code, r.Text = result.Code, canister.TextOf(result.Content)
		if r.Tool == "big" {
			r.Text = r.Text[:min(len(r.Text), 200)]
		}
		b.err = errors.Join(b.err, encoder.Encode(r))
	}
	if len(calls) > 0 {
		return fmt.Errorf("%d invocations have no result: %v", len(calls), calls)
	}
	return b.err
}

// read returns the records by server.
func (b *book) read(t *testing.T) map[string][]record {
	t.Helper()
	if err := b.writer.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.file.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	records := map[string][]record{}
	for decoder := json.NewDecoder(b.file); ; {
		var r record
		if err := decoder.Decode(&r); errors.Is(err, io.EOF) {
			return records
		} else if err != nil {
			t.Fatal(err)
		}
		records[r.Server] = append(records[r.Server], r)
	}
}

// maxComplaints is how many complaints about one server are printed.
const maxComplaints = 10

// audit compares the results that conversations received for the calls to one server with
// the effects in the server. It returns the number of effects, and of calls with an
// unknown outcome.
func audit(t *testing.T, s *server, records []record) (effects, unknown int) {
	t.Helper()
	ledger, err := faultserver.ReadLedger(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	happened := map[string]int{}
	for _, e := range ledger.Effects() {
		happened[record{Arguments: string(e.Arguments)}.key()]++
		effects++
	}
	complaints := 0
	complain := func(format string, args ...any) {
		if complaints++; complaints <= maxComplaints {
			t.Errorf("%s: %s", s.name, fmt.Sprintf(format, args...))
		}
	}
	for _, r := range records {
		if r.Code != "" && happened[r.key()] > 0 {
			unknown++
		}
		if wrong := s.untrue(r, happened[r.key()]); wrong != "" {
			complain("%s: %+v", wrong, r)
		}
		delete(happened, r.key())
	}
	for key, times := range happened {
		complain("%d effects of %q, which nobody asked for", times, key)
	}
	if complaints > maxComplaints {
		t.Errorf("%s: %d complaints in all", s.name, complaints)
	}
	return effects, unknown
}

// untrue returns what is wrong with a record whose effect happened so many times.
func (s *server) untrue(r record, effects int) string {
	least, most := 0, 1
	switch invoker.Code(r.Code) {
	case "":
		least = 1
		if wrong := r.wrongAnswer(); wrong != "" {
			return wrong
		}
	case invoker.OutcomeUnknown, invoker.Timeout, invoker.Canceled:
		if r.saysNothingWasDone() {
			most = 0
		}
	case invoker.Unavailable, invoker.ToolNotFound, invoker.InvalidArguments:
		most = 0
	case invoker.ExecutionFailed:
		if r.Tool != "fail" {
			return "a tool failed that does not"
		}
	default:
		return "an outcome that nothing here explains"
	}
	if r.Tool == "idempotent_effect" && s.repeats() && most > 0 {
		most = 2
	}
	if r.Tool != "effect" && r.Tool != "idempotent_effect" {
		least, most = 0, 0
	}
	if effects < least || effects > most {
		return fmt.Sprintf("%d effects, want %d to %d", effects, least, most)
	}
	return ""
}

// saysNothingWasDone reports whether the conversation was told that there is
// certainly no effect.
func (r record) saysNothingWasDone() bool {
	text := strings.ToLower(r.Text)
	for _, words := range []string{"nothing was done", "was not made", "not started"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// wrongAnswer returns what is wrong with the answer of a successful call: it could be the
// answer to another call.
func (r record) wrongAnswer() string {
	want := ""
	switch r.Tool {
	case "effect", "idempotent_effect":
		want = "done: " + r.key()
	case "echo":
		want = r.key()
	case "progress":
		want = "done"
	case "big":
		if strings.Trim(r.Text, "a") == "" {
			return ""
		}
		return "an answer that is not the tool's"
	default:
		return "a call succeeded that cannot"
	}
	if r.Text != want {
		return fmt.Sprintf("the answer is %q, want %q", r.Text, want)
	}
	return ""
}
