// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/transcript"
)

func head(id string) canister.Head { return canister.Head{ID: id} }

// entries groups canisters, which are numbered from 1.
func entries(canisters ...canister.Canister) (all []transcript.Entry, err error) {
	numbered := func(yield func(transcript.Numbered, error) bool) {
		for i, c := range canisters {
			if c == nil {
				yield(transcript.Numbered{}, errors.New("damaged"))
				return
			}
			if !yield(transcript.Numbered{Number: i + 1, Canister: c}, nil) {
				return
			}
		}
	}
	for e, problem := range transcript.Entries(numbered) {
		if err = problem; err == nil {
			all = append(all, e)
		}
	}
	return all, err
}

// numbers are the numbers of the canisters of entries.
func numbers(all []transcript.Entry) string {
	var texts []string
	for _, e := range all {
		text := fmt.Sprint(e.Number)
		for _, note := range e.Notes {
			text += fmt.Sprint("+", note.Number)
		}
		if e.Result.Canister != nil {
			text += fmt.Sprint("=", e.Result.Number)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " ")
}

func TestEntriesJoinCallsAndResults(t *testing.T) {
	call := func(id string) canister.Canister { return canister.Invocation{Head: head(id), Name: "tool"} }
	result := func(of string) canister.Canister { return canister.Result{Head: head("r" + of), Invocation: of} }
	intent := func(of string) canister.Canister { return canister.Intent{Head: head("n" + of), Invocation: of} }
	user, answer := canister.User{Head: head("u")}, canister.Assistant{Head: head("a")}
	wait := canister.Wait{Head: head("w"), Invocation: "i", For: canister.WaitApproval}
	said := canister.Answer{Head: head("s"), Wait: "w", Verdict: canister.VerdictAllow}
	for _, test := range []struct {
		canisters []canister.Canister
		want      string
	}{
		{[]canister.Canister{user, answer, call("i"), call("j"), intent("j"), intent("i"), result("j"), result("i"), answer}, "1 2 3+6=8 4+5=7 9"},
		{[]canister.Canister{answer, call("i"), wait, said, intent("i"), result("i")}, "1 2+3+4+5=6"},
		{[]canister.Canister{answer, call("i"), wait}, "1 2+3"},
		{[]canister.Canister{answer, call("i"), user, result("i")}, "1 2 3 4"},
		{[]canister.Canister{result("x"), intent("x"), said}, "1 2 3"},
		{[]canister.Canister{answer, call("i"), result("i"), result("i"), call("j")}, "1 2=3 4 5"},
		{[]canister.Canister{answer, call("i"), nil}, "1"},
		{nil, ""},
	} {
		all, err := entries(test.canisters...)
		if got := numbers(all); got != test.want || (err != nil) != slices.Contains(test.canisters, nil) {
			t.Errorf("%s, %v; want %s", got, err, test.want)
		}
	}
}

func TestDecisionsAreInWords(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	call := canister.Invocation{Head: head("i"), Name: "tool"}
	wait := canister.Wait{Head: head("w"), Invocation: "i", For: canister.WaitApproval, Deadline: at}
	intent := canister.Intent{Head: canister.Head{ID: "n", Time: at}, Invocation: "i", Approved: at, Arguments: `{"b":1}`}
	result := canister.Result{Head: canister.Head{ID: "r", Time: at.Add(time.Second)}, Invocation: "i"}
	says := func(verdict canister.Verdict, reason string) canister.Canister {
		return canister.Answer{Head: head("s"), Wait: "w", Verdict: verdict, By: "ann", Reason: reason}
	}
	for _, test := range []struct {
		canisters []canister.Canister
		want      string
	}{
		{[]canister.Canister{wait, says(canister.VerdictAllow, ""), intent, result}, "allowed by ann"},
		{[]canister.Canister{wait, says(canister.VerdictDeny, "not\ttoday\u202e"), result}, "denied by ann: not today<U+202E>"},
		{[]canister.Canister{wait, says("later", ""), result}, "later by ann"},
		{[]canister.Canister{intent, result}, "approved"},
		{[]canister.Canister{wait}, "waits for approval until 2026-11-22 13:00:00 CET"},
		{[]canister.Canister{wait, result}, ""},
		{[]canister.Canister{result}, ""},
	} {
		all, err := entries(append([]canister.Canister{call}, test.canisters...)...)
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v", all, err)
		}
		if got := strings.Join(all[0].Decisions(time.FixedZone("CET", 3600)), "; "); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
		took, known := all[0].Took()
		made := slices.ContainsFunc(test.canisters, func(c canister.Canister) bool { return c.Kind() == canister.KindIntent })
		if known != made || made && (took != time.Second || all[0].Changed() != `{"b":1}`) {
			t.Errorf("it took %v, %v, with %s", took, known, all[0].Changed())
		}
	}
}

// The calls that a program made are within its call, and searches and programs have a line.
func TestFolded(t *testing.T) {
	found := `{"name":"a__x","input_schema":{}}` + "\n" + `{"name":"a__y","input_schema":{}}` + "\nThe tools of \"b\" are missing.\n"
	ask := func(id, parent, name string) canister.Canister {
		return canister.Invocation{Head: canister.Head{ID: id}, Message: "m", Parent: parent, Name: name, Arguments: "{}"}
	}
	end := func(of, parent, code, text string) canister.Canister {
		return canister.Result{Head: canister.Head{ID: "r" + of}, Invocation: of, Parent: parent, Code: code, Content: canister.Texts(text)}
	}
	all, err := entries(
		canister.Assistant{Head: canister.Head{ID: "m"}},
		ask("f", "", "tools__find_tools"), ask("g", "", "tools__find_tools"), ask("h", "", "tools__find_tools"),
		ask("p", "", "code__run_code"), ask("q", "", "code__run_code"), ask("o", "", "code__run_code"), ask("l", "", "other"), ask("s", "", "others__find_tools"),
		end("f", "", "", found), end("g", "", "", "No tool has one of these words."), end("h", "", "TIMEOUT", "late"),
		ask("1", "p", "a__x"), ask("2", "p", "a__\x1by"), ask("3", "p", "a__x"),
		end("2", "p", "TIMEOUT", ""), end("1", "p", "", ""), end("3", "p", "", ""),
		end("p", "", "", "7"), end("q", "", "INVALID_ARGUMENTS", "line 1"), end("l", "", "", found), end("s", "", "", "A hammer, and a saw."),
	)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range all[1:] {
		lines = append(lines, e.Folded())
	}
	want := []string{
		"2 found: a__x, a__y", "nothing found", "", "3 calls, 1 failed: a__x 2 times, a__<U+001B>y", "", "", "", "",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("%q\nwant %q", lines, want)
	}
	if inner := all[4].Calls; len(inner) != 3 || inner[1].Result.Number != 16 || inner[2].Number != 15 {
		t.Errorf("the inner calls are %+v", all[4].Calls)
	}
}
