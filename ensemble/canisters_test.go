// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
)

// TestPromptInConversation: whatever roles a prompt has, and in what order, a
// conversation takes it, and goes on.
func TestPromptInConversation(t *testing.T) {
	for _, roles := range []string{
		"user", "assistant", "user assistant", "assistant user", "user user", "assistant assistant", "system user", "user assistant user assistant",
	} {
		t.Run(roles, func(t *testing.T) {
			messages := &ensemble.Messages{}
			for i, role := range strings.Fields(roles) {
				messages.Messages = append(messages.Messages, ensemble.PromptMessage{Role: role, Content: canister.Texts(fmt.Sprint("m", i))})
			}
			model := conversetest.NewScript(conversetest.Line{Text: "fine"})
			talk := converse.New(model, nil, nil)
			defer talk.Close(context.Background())
			if err := talk.Add(t.Context(), messages.Canisters()...); err != nil {
				t.Fatalf("Add: %v", err)
			}
			if problems := sequence.Check(talk.History()); len(problems) > 0 {
				t.Errorf("Check: %v", problems)
			}
			for _, err := range talk.Send(t.Context(), canister.Text("go on")) {
				if err != nil {
					t.Fatalf("Send: %v", err)
				}
			}
			if problems := sequence.Check(talk.History()); len(problems) > 0 || len(talk.History()) != len(messages.Messages)+2 {
				t.Errorf("after a turn: %v, %d canisters", problems, len(talk.History()))
			}
		})
	}
}

// TestDocument: a resource with all its parts, that a conversation takes.
func TestDocument(t *testing.T) {
	options := ensembletest.ServerLibrary(nil)
	roster := newRoster(t, ensemble.New("l", options.Source(), nil))
	document, err := roster.Document(t.Context(), "test://greeting")
	if err != nil || document.Title != "Greeting" || document.URI != "test://greeting" || string(document.Metadata["ensemble/name"]) != `"l"` {
		t.Fatalf("Document: %+v, %v", document, err)
	}
	if part, ok := document.Content[0].(canister.ResourceContent); !ok || part.Text != "hello" || part.MIME != "text/plain" {
		t.Errorf("its content: %+v", document.Content)
	}
	talk := converse.New(conversetest.NewScript(), nil, nil)
	defer talk.Close(context.Background())
	if err := talk.Add(t.Context(), document); err != nil {
		t.Errorf("Add: %v", err)
	}
	if _, err := roster.Document(t.Context(), "test://nothing"); codeOf(t, err) != invoker.NotFound {
		t.Errorf("of what is not there: %v", err)
	}
}
