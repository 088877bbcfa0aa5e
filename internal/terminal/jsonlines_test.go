// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/redact"
)

// A secret that arrives in several pieces is redacted in lines of JSON, too, and so is the
// beginning of one at the end of an answer that was stopped.
func TestJSONLinesRedactPieces(t *testing.T) {
	const secret = "correct horse battery"
	stdout := output(t)
	s := NewScreen(stdout, output(t))
	defer s.Close()
	secrets := redact.NewGrowing(secret)
	s.Redact(secrets.Text, secrets.Part)
	l := &JSONLines{Screen: s}
	events := []converse.Event{converse.MessageStarted{}}
	for word := range strings.SplitAfterSeq("It is "+secret+", so "+secret+" c", " ") {
		events = append(events, converse.ReasoningDelta{Text: word}, converse.TextDelta{Text: word}, converse.InvocationAnnounced{Name: "a"})
	}
	events = append(events, converse.MessageCompleted{}, converse.MessageStarted{}, converse.TextDelta{Text: "again, correct horse b"})
	for _, event := range events {
		if err := l.Show(event); err != nil {
			t.Fatal(err)
		}
	}
	l.Done()
	written, err := os.ReadFile(stdout.Name())
	if err != nil {
		t.Fatal(err)
	}
	texts, before := map[string]string{}, ""
	for line := range strings.Lines(string(written)) {
		var e struct{ Event, Text string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if texts[e.Event] += e.Text; e.Event == "message_completed" && before != "text_delta" {
			t.Errorf("%s comes between the text and the end of the message", before)
		}
		before = e.Event
	}
	want := "It is " + redact.Mark + ", so " + redact.Mark + " c"
	if got := texts["text_delta"]; got != want+"again, "+redact.Mark {
		t.Errorf("the answer is %q", got)
	}
	if got := texts["reasoning_delta"]; got != want {
		t.Errorf("the reasoning is %q", got)
	}
}

// The arguments of a call that runs are shown without secrets.
func TestActivityIsRedacted(t *testing.T) {
	s := NewScreen(output(t), output(t))
	defer s.Close()
	secrets := redact.NewGrowing("sk-0123456789abcdef")
	s.Redact(secrets.Text, secrets.Part)
	if line := s.Begin("get sk-0123456789abcdef"); line.text != "get "+redact.Mark {
		t.Errorf("the line is %q", line.text)
	}
}
