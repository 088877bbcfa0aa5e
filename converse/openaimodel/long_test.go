// SPDX-License-Identifier: Apache-2.0

package openaimodel_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/internal/testing/raced"
	"github.com/consort-go/consort/invoker"
)

// A conversation of 200 turns with a server over a socket that takes so many tokens,
// in requests and answer together: it never fails, and never sends more once it
// knows. Between compactions each request begins with the one before, to the byte.
func TestOutgrowingTheWindow(t *testing.T) {
	t.Parallel()
	const small, large = 8192, 40000
	for _, test := range []struct {
		name    string
		server  int
		window  int64 // as the conversation knows it
		refused int   // at most
		stream  bool
		result  int // bytes
		cuts    int // at least
	}{
		{"known", small, small, 0, true, 2000, 0},
		{"not known", small, 0, 1, true, 2000, 0},
		{"whole answers", small, small, 0, false, 2000, 0},
		{"long results", large, large, 0, true, 12000, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			var refused, summaries, calls int
			respond := openaiserver.Respond(func(r *openaiserver.Request) openaiserver.Reply {
				tokens := len(r.Body) / 4
				if tokens > test.server {
					refused++
					return openaiserver.ContextLength()
				}
				usage := &openaiserver.Usage{PromptTokens: tokens, CompletionTokens: 20}
				last := r.Messages[len(r.Messages)-1]
				switch {
				case len(r.Tools) == 0:
					summaries++
					return openaiserver.Message{Text: "The user counts, and looks things up.", Usage: usage}
				case last.Role == "user" && strings.HasPrefix(last.Text, "look"):
					calls += 2
					return openaiserver.Message{Usage: usage, Calls: []openaiserver.Call{
						{ID: fmt.Sprint("call-", calls), Name: "local__look"}, {ID: fmt.Sprint("call-", calls+1), Name: "local__look"},
					}}
				}
				return openaiserver.Message{Text: "Done: " + strings.Repeat("so ", 50), Usage: usage}
			})
			server, err := openaiserver.Start(openaiserver.Script{Steps: []openaiserver.Step{{Reply: respond}}, Repeat: true}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			model, err := openaimodel.New("m", &openaimodel.Options{BaseURL: server.URL(), NoStream: !test.stream})
			if err != nil {
				t.Fatal(err)
			}
			defer model.Close()
			look, err := invoker.New("look", "Look.",
				func(context.Context, struct{}) (string, error) { return strings.Repeat("word ", test.result/5), nil }, nil)
			if err != nil {
				t.Fatal(err)
			}
			roster, err := ensemble.NewRoster(ensemble.Local("local", look))
			if err != nil {
				t.Fatal(err)
			}
			defer roster.Close(context.Background())
			talk := converse.New(model, roster, &converse.Options{Compaction: &converse.Compaction{Window: test.window}})
			defer talk.Close(context.Background())
			compactions, cuts := 0, 0
			for i := range raced.Fewer(400) {
				for event, err := range talk.Send(t.Context(), canister.Text(fmt.Sprintf("%s %d", []string{"look", "say"}[i%2], i))) {
					if err != nil {
						t.Fatalf("turn %d: %v", i, err)
					}
					if compaction, ok := event.(converse.CompactionCompleted); ok {
						compactions++
						cuts += min(compaction.Trimmed, 1)
					}
				}
			}
			if faults := server.Faults(); len(faults) > 0 {
				t.Fatal(faults)
			}
			if refused > test.refused {
				t.Errorf("refused %d times", refused)
			}
			if broken := breaks(t, server.Requests()); broken > compactions {
				t.Errorf("%d requests that do not begin with the one before, for %d compactions", broken, compactions)
			}
			cut, requests := 0, server.Requests()
			for i := 1; i < len(requests); i++ {
				if bytes.Count(requests[i].Body, []byte("[cut: ")) > bytes.Count(requests[i-1].Body, []byte("[cut: ")) {
					cut++
				}
			}
			if cuts < test.cuts || cut < cuts {
				t.Errorf("%d cuts, %d requests with more of them", cuts, cut)
			}
			if summaries < 3 || compactions != summaries+cuts || compactions > 100 {
				t.Errorf("%d compactions, %d summaries", compactions, summaries)
			}
			t.Logf("%d canisters, %d compactions, %d of them summaries, refused %d times", len(talk.History()), compactions, summaries, refused)
		})
	}
}

// breaks counts the requests of a conversation whose messages do not begin with
// those of the one before.
func breaks(t *testing.T, requests []openaiserver.Recorded) (broken int) {
	t.Helper()
	var before []byte
	for _, request := range requests {
		if !bytes.Contains(request.Body, []byte(`"tools":[`)) {
			continue // a summary
		}
		messages, _, ok := bytes.Cut(request.Body, []byte(`],"model"`))
		if !ok {
			if messages, _, ok = bytes.Cut(request.Body, []byte(`],"`)); !ok {
				t.Fatalf("no messages: %.200s", request.Body)
			}
		}
		if !bytes.HasPrefix(messages, before) {
			broken++
		}
		before = bytes.Clone(messages)
	}
	return broken
}
