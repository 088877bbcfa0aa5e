// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/invoker/audit"
)

// documented returns the records of the examples in docs/audit.md.
func documented() []audit.Record {
	at := func(minute, milliseconds int) time.Time {
		return time.Date(2026, 3, 1, 9, minute, 0, milliseconds*1e6, time.UTC)
	}
	clerk := map[string]json.RawMessage{"user_id": json.RawMessage(`42`)}
	return []audit.Record{
		{
			Time: at(30, 2250), Asker: "model", Conversation: "K7", Invocation: "c3", Ensemble: "tasks", Tool: "add_task",
			Identity: clerk, Arguments: json.RawMessage(`{"title":"Buy a raincoat","token":"[omitted]"}`),
			By: "dana", Approved: json.RawMessage(`{"title":"Buy a warm raincoat","token":"[omitted]"}`),
			Code: audit.OK, Duration: 4125 * time.Microsecond, Bytes: 58,
		},
		{
			Time: at(31, 0), Asker: "mcp", Client: "inspector 0.17.0", ClientName: "ada's laptop", Ensemble: "tasks", Tool: "list_tasks",
			Identity: clerk, Forged: []string{"user_id"}, Arguments: json.RawMessage(`{"user_id":7}`),
			Code: "INVALID_ARGUMENTS", Error: "The argument user_id is not the caller's to choose.", Bytes: 51,
		},
		{
			Time: at(31, 40_000), Asker: "model", Conversation: "K7", Invocation: "c6", Parent: "c5", Ensemble: "tasks", Tool: "list_tasks",
			Arguments: json.RawMessage(`{}`), Code: audit.OK, Duration: 1500 * time.Microsecond, Bytes: 120,
		},
		{
			Time: at(32, 10_000), Asker: "model", Conversation: "K7", Invocation: "c9", Tool: "tasks__drop_all",
			Code: "TOOL_NOT_FOUND", Error: `There is no tool "tasks__drop_all".`, Bytes: 35,
		},
	}
}

// The lines of JSON on the page are the forms of its records, in the order of
// the page, and can be read back; each member has a row in the table, and each
// field of a record is a member.
func TestRecordsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	rows := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "{") {
			lines = append(lines, strings.TrimSpace(line))
		}
		if name, ok := strings.CutPrefix(line, "| `"); ok {
			name, _, _ = strings.Cut(name, "`")
			rows[name] = true
		}
	}
	records := documented()
	if len(lines) != len(records) {
		t.Fatalf("there are %d lines of JSON on the page, and %d records in the test", len(lines), len(records))
	}
	members := map[string]bool{}
	for i, record := range records {
		if got := line(t, record); got != lines[i] {
			t.Errorf("\n got %s\nwant %s", got, lines[i])
		}
		var back audit.Record
		if err := json.Unmarshal([]byte(lines[i]), &back); err != nil || !reflect.DeepEqual(back, record) {
			t.Errorf("%v\n got %+v\nwant %+v", err, back, record)
		}
		var form map[string]json.RawMessage
		if err := json.Unmarshal([]byte(lines[i]), &form); err != nil {
			t.Fatal(err)
		}
		for name := range form {
			members[name] = true
		}
	}
	if !reflect.DeepEqual(members, rows) {
		t.Errorf("the members are %v, and the rows of the table %v", members, rows)
	}
	if n := reflect.TypeFor[audit.Record]().NumField(); n != len(rows) {
		t.Errorf("a record has %d fields, and the table %d rows", n, len(rows))
	}
}

func TestRecordWithoutForm(t *testing.T) {
	record := audit.Record{Arguments: json.RawMessage(`{`)}
	if text, err := record.MarshalJSON(); err == nil {
		t.Errorf("the form is %s", text)
	}
}
