// SPDX-License-Identifier: Apache-2.0

package conversetest_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/anthropicmodel"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// overHTTP are the scenarios whose answers a server can give, and whose events do not depend
// on the pieces in which they come.
var overHTTP = []string{"answer", "parallel", "unknown-tool", "limit", "approval", "cancelled", "failure"}

// TestTranscriptsOnEachAPI has the conversations of the files with models behind HTTP. What
// happens is the same on each API.
func TestTranscriptsOnEachAPI(t *testing.T) {
	for _, s := range scenarios() {
		if !slices.Contains(overHTTP, s.name) {
			continue
		}
		data, err := os.ReadFile(s.path())
		if err != nil {
			t.Fatal(err)
		}
		want := slices.DeleteFunc(normalised(t, data), isAnnouncement)
		var first []string // with the first API
		for _, api := range []string{"chat", "responses", "messages"} {
			t.Run(s.name+"/"+api, func(t *testing.T) {
				got := normalised(t, s.record(t, modelOf(t, api, s.lines)).Format())
				if first == nil {
					first = got
				}
				if !slices.Equal(got, first) {
					t.Errorf("it differs from the first API:\n%s", strings.Join(got, "\n"))
				}
				if got = slices.DeleteFunc(slices.Clone(got), isAnnouncement); !slices.Equal(got, want) {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			})
		}
	}
}

// modelOf returns a model behind a server that gives the answers of a script.
func modelOf(t *testing.T, api string, lines []conversetest.Line) converse.Model {
	t.Helper()
	var script openaiserver.Script
	for _, line := range lines {
		answer := openaiserver.Message{Text: line.Text, Reasoning: line.Reasoning}
		for _, call := range line.Calls {
			answer.Calls = append(answer.Calls, openaiserver.Call{Name: call.Name, Arguments: call.Arguments})
		}
		script.Steps = append(script.Steps, openaiserver.Step{Reply: answer})
	}
	server, err := openaiserver.Start(script, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	if api == "messages" {
		model, err := anthropicmodel.New("script", &anthropicmodel.Options{BaseURL: strings.TrimSuffix(server.URL(), "/v1"), MaxRetries: -1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { model.Close() })
		return model
	}
	model, err := openaimodel.New("script", &openaimodel.Options{BaseURL: server.URL(), API: api, MaxRetries: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	return model
}

// isAnnouncement reports whether a line is the name of a call that begins, which the model
// of the files does not stream.
func isAnnouncement(line string) bool { return strings.Contains(line, `"invocation_announced"`) }

// normalised returns the lines of a transcript without the counts of tokens and without the
// metadata of a server.
func normalised(t *testing.T, transcript []byte) []string {
	t.Helper()
	_, sections, _ := strings.Cut(string(transcript), "-- tools --")
	var lines []string
	for line := range strings.Lines(sections) {
		line = strings.TrimSpace(line)
		var members map[string]any
		if json.Unmarshal([]byte(line), &members) != nil {
			lines = append(lines, line)
			continue
		}
		delete(members, "usage")
		if members["kind"] == "assistant" {
			delete(members, "metadata")
		}
		if members["kind"] == "invocation" && members["arguments"] == nil {
			members["arguments"] = "{}" // as models send no arguments
		}
		text, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(text))
	}
	return lines
}
