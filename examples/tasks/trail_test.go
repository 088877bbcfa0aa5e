// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/examples/tasks/taskbook"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
)

// records collects the records of a trail.
type records []*audit.Record

func (r *records) Record(_ context.Context, record *audit.Record) error {
	*r = append(*r, record)
	return nil
}

// Each call that the script makes has one record, with the user that it was for.
func TestTheTrail(t *testing.T) {
	folder := t.TempDir()
	if err := run(t.Context(), new(bytes.Buffer), folder); err != nil {
		t.Fatal(err)
	}
	var want []string // asker, conversation, user, tool, arguments
	for _, scene := range script {
		for _, line := range scene.model {
			for _, call := range line.Calls {
				tool := strings.TrimPrefix(call.Name, "tasks__")
				want = append(want, strings.Join([]string{"model", scene.who.name + "'s conversation", id(scene.who), tool, call.Arguments}, " "))
			}
		}
	}
	for _, visit := range visits {
		for pair := range slices.Chunk(visit.calls, 2) {
			want = append(want, strings.Join([]string{"mcp", "", id(visit.who), pair[0], pair[1]}, " "))
		}
	}
	file, err := os.Open(filepath.Join(folder, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var got []string
	for record, err := range audit.Read(file) {
		if err != nil {
			t.Fatal(err)
		}
		arguments := string(record.Arguments)
		got = append(got, strings.Join([]string{record.Asker, record.Conversation, string(record.Identity["user_id"]), record.Tool, arguments}, " "))
		if forged := strings.Contains(strings.ToLower(arguments), "user_id"); forged != (len(record.Forged) > 0) ||
			record.Time.IsZero() || record.Ensemble != "tasks" {
			t.Errorf("%+v", record)
		}
	}
	spaceless := func(lines []string) (less []string) {
		for _, line := range lines {
			less = append(less, strings.ReplaceAll(line, " ", ""))
		}
		return less
	}
	if !slices.Equal(spaceless(got), spaceless(want)) {
		t.Errorf("the trail has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func id(who person) string { return string(rune('0' + who.id)) }

// What the database says is in the trail, and the model is told that it failed.
func TestWhatOnlyTheTrailIsTold(t *testing.T) {
	roster, path := newRoster(t)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "ALTER TABLE tasks RENAME TO secret_tasks"); err != nil {
		t.Fatal(err)
	}
	var kept records
	model := conversetest.NewScript(asks("tasks__list_tasks", `{}`), says("It failed.", "EXECUTION_FAILED The task book failed."))
	talk := converse.New(model, roster, &converse.Options{
		Trusted: []invoker.Value{taskbook.User.Value(ada.id)},
		Audit:   audit.New(&kept, nil),
	})
	defer talk.Close(t.Context())
	if _, err := talk.Ask(t.Context(), canister.Text("What is there to do?")); err != nil {
		t.Fatal(err)
	}
	var history bytes.Buffer
	if err := canister.Encode(&history, talk.History()...); err != nil {
		t.Fatal(err)
	}
	for _, detail := range []string{"no such table", "SQL", path} {
		if strings.Contains(history.String(), detail) {
			t.Errorf("the model is told %q:\n%s", detail, &history)
		}
	}
	if len(kept) != 1 || !strings.Contains(kept[0].Error, "no such table: tasks") || kept[0].Code != "EXECUTION_FAILED" {
		t.Errorf("the trail has %+v", kept)
	}
}
