// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/testing/consolestage"
)

// An export has all conversations, however many changed since.
func TestExportOfMany(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{Now: func() time.Time { return march }})
	for i := range 5001 {
		spent(t, s.Store, fmt.Sprint("b", i), "owner-busy", "small", 30, 1)
	}
	spent(t, s.Store, "quiet", "owner-quiet", "small", 2, 1)
	ops := s.Login(t, consolestage.Ops)
	for _, q := range []string{"?who=owner-quiet", "?from=2026-03-02&to=2026-03-02"} {
		if reply := ops.Get("/spend.json" + q); reply.StatusCode != 200 {
			t.Errorf("%s: %s %.900s", q, reply.Status, reply.Text[strings.Index(reply.Text, "<main"):])
		}
	}
}

// No name becomes a formula in a spreadsheet that splits cells at semicolons or tabs.
func TestCSVSeparators(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{Now: func() time.Time { return march }})
	for i, name := range []string{"x;=1+1", "x\t=1+1", "\uff1d1+1", "x;@SUM(A1)"} {
		spent(t, s.Store, fmt.Sprint("c", i), "o", name, 31, 1, name)
	}
	text := s.Login(t, consolestage.Ops).Get("/spend.csv").Text
	for _, line := range strings.Split(text, "\r\n") {
		for _, cell := range strings.FieldsFunc(line, func(r rune) bool { return r == ';' || r == '\t' }) {
			if strings.ContainsAny(cell[:1], "=+-@") {
				t.Errorf("a spreadsheet with the separator ; finds the formula %q in %q", cell, line)
			}
		}
	}
}

// Approvals of calls of clients do not count as exchanges with a model.
func TestApprovalsAreNotSpent(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{Now: func() time.Time { return march }})
	at := canister.Head{ID: "i", Time: march}
	stored(t, s.Store, "ask-b6qssq7zskqnv4l257bk", "approval-b6bee912d96c9563dd54fb6279332a00", canister.Invocation{Head: at, CallID: "c", Name: "local__weather", Arguments: "{}"})
	page := s.Login(t, consolestage.Ops).Get("/spend").Text
	if strings.Contains(page, ">unknown<") || strings.Contains(page, "approval-b6") {
		t.Error("the table of models has a model that was never asked")
	}
}
