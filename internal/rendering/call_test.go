// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/folding"
	"github.com/consort-go/consort/invoker"
)

func completed(name, arguments, code string, took time.Duration, contents ...canister.Content) converse.InvocationCompleted {
	return converse.InvocationCompleted{
		Invocation: canister.Invocation{Name: name, Arguments: arguments},
		Result:     canister.Result{Code: code, Content: contents}, Duration: took,
	}
}

func said(s string) canister.Content { return canister.TextContent{Text: s} }

func calls() []converse.InvocationCompleted {
	failed := completed(
		"mortal__die", `{"now":true}`, "OUTCOME_UNKNOWN", 8020*time.Millisecond,
		said("The connection was lost while the call was under way. Check what it did before you repeat it."),
	)
	failed.Cause = "server exited: exit status 3; KeyError: 'WEATHER_API_KEY' is not set"
	return []converse.InvocationCompleted{
		completed("files__read_text_file", `{"path":"/home/ada/notes.txt","head":20}`, "", 120*time.Millisecond, said("line one\nline two \x1b[31mred")),
		completed("a__b", `{}`, "", 0, said("ok")),
		completed(
			"weather__forecast", `{"days":3,"city":"東京"}`, "", 75*time.Second, said(`{"t":[1,2]}`),
			canister.StructuredContent{JSON: json.RawMessage(`{"t": [1, 2]}`)},
		),
		completed(
			"a_server_with_a_long_name__and_a_tool_with_a_long_name_as_well", `not JSON`, "", time.Second,
			canister.ImageContent{MIME: "image/png", Data: []byte("123")},
		),
		completed("files__edit_file", `{"path":"a.go","edits":[{"oldText":"a\nb","newText":"a\nc"}]}`, "", time.Second,
			said("```diff\n--- a.go\n+++ a.go\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n```\n")),
		failed,
	}
}

func TestCompletedCall(t *testing.T) {
	golden(t, "calls", Style{}, func(s Style) (rows []string) {
		for i, one := range calls() {
			rows = append(rows, CompletedCall(s, i, one, nil)...)
		}
		return rows
	})
	golden(t, "calls.dark", Style{Color: true}, func(s Style) (rows []string) {
		for _, one := range calls()[4:] {
			rows = append(append(rows, CompletedCall(s, 0, one, nil)...), CallDetails(s, one)...)
		}
		return rows
	})
}

// A search is shown with what it found, and a program with the calls that it made, on one
// line each.
func TestFoldedCalls(t *testing.T) {
	var made, one folding.Tally
	for i := range 20 {
		made.Add("tracker__get_issue", i == 7)
	}
	made.Add("tracker__list_issues", false)
	one.Add("files__write_file", true)
	found := ""
	for _, name := range []string{"files__edit_file", "files__write_file", `files__\u001b[2Jread`} {
		found += fmt.Sprintf("{\"name\":\"%s\",\"description\":\"…\",\"input_schema\":{}}\n", name)
	}
	golden(t, "folded", Style{}, func(s Style) (rows []string) {
		rows = append(rows, CompletedCall(s, 0, completed("tools__find_tools", `{"query":"edit file"}`, "", 20*time.Millisecond, said(found)), nil)...)
		rows = append(rows, CompletedCall(s, 0, completed("tools__find_tools", `{"query":"xyzzy"}`, "", 0, said("No tool has one of these words.")), nil)...)
		program := `{"program":"issues = tracker__list_issues(path=\"/a/b\")\nreturn [i for i in issues]"}`
		rows = append(rows, CompletedCall(s, 0, completed("code__run_code", program, "", 2*time.Second, said(`["Crash at login"]`)), &made)...)
		return append(rows, CompletedCall(s, 0, completed("code__run_code", program, "EXECUTION_FAILED", time.Second, said("program:1:9: DENIED")), &one)...)
	})
}

func TestCallDetails(t *testing.T) {
	golden(t, "details", Style{}, func(s Style) (rows []string) {
		lines := canister.StructuredContent{JSON: json.RawMessage(`{"list":[{"name":"a","value":"x\ny"}]}`)}
		edit := `{"old":"f\ng\r\nh","new":"f\ng\na line that is longer than forty columns, so that it is broken\nh"}`
		for _, one := range append(calls(), completed("x", `{"text":"a\nb"}`, "", 0, lines), completed("edit", edit, "", 0)) {
			rows = append(rows, CallDetails(s, one)...)
		}
		return rows
	})
}

func TestRunningCall(t *testing.T) {
	golden(t, "running", Style{}, func(s Style) (rows []string) {
		for i, one := range calls() {
			rows = append(
				rows,
				RunningCall(
					s, one.Invocation, i, time.Duration(i)*1300*time.Millisecond,
					invoker.Progress{Done: float64(i), Total: 5, Message: "copying \x1bfiles"},
				),
			)
		}
		s.ASCII = true
		return append(rows, RunningCall(s, calls()[0].Invocation, 1, time.Second, invoker.Progress{}))
	})
}

func TestReasoning(t *testing.T) {
	golden(t, "reasoning", Style{}, func(s Style) []string {
		thoughts := "First, I need the weather.\n\nThen I shall say what to wear, which depends on \u202ethe wind."
		return append(
			[]string{Thinking(s, 3, 2*time.Second, ""), Thinking(s, 4, 61*time.Second, thoughts), FoldedReasoning(s, 7, 3*time.Second)},
			Reasoning(s, thoughts)...,
		)
	})
}

func TestStatusLine(t *testing.T) {
	golden(t, "status", Style{}, func(s Style) []string {
		return []string{
			StatusLine(s, Status{}),
			StatusLine(s, Status{Model: "claude-sonnet-5", Tokens: 950}),
			StatusLine(s, Status{Model: "claude-sonnet-5", Tokens: 12_345, Cost: "$0.12", Left: "$1.88"}),
			StatusLine(s, Status{
				Model: "a-model-with-a-very-long-name-2026-11", Tokens: 4_500_000, Cost: "$10.12", Left: "$1.88",
				Starting: []string{"everything", "git"}, Away: []string{"files"},
			}),
		}
	})
}
