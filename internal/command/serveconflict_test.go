// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stores are tables of stores that several processes may have open.
var stores = map[string]string{
	"sqlite": historyTable,
	"files":  "[history]\nstore = \"files\"\npath = \"talks\"\n",
}

// asking is a call of the tool converse that is under way.
type asking struct {
	conversation string
	folder       string      // of the tool that holds it
	told         chan string // the text of its result, as it comes
}

// asks has a client of a server say something that keeps a tool waiting.
func asks(t *testing.T, s *service, path, folder string) *asking {
	t.Helper()
	a := &asking{folder: folder, told: make(chan string, 1)}
	session := s.connect(adaToken)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	go func() {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "converse", Arguments: json.RawMessage(`{"message":"Go."}`)})
		if err != nil {
			a.told <- "no answer: " + err.Error()
			return
		}
		a.told <- result.Content[0].(*mcp.TextContent).Text
	}()
	waitFor(t, "a call", func() bool { return isThere(filepath.Join(folder, "waiting")) })
	var list struct {
		Conversations []struct{ ID string }
	}
	if err := json.Unmarshal([]byte(consortBesideDone(t, "history", "list", "--json", "--config", path)), &list); err != nil || len(list.Conversations) != 1 {
		t.Fatalf("%v: %+v", err, list)
	}
	a.conversation = list.Conversations[0].ID
	return a
}

// TestAServedConversationIsDeleted: whoever waits for the answer is told, while the
// tool is still at work, and nothing brings the conversation back.
func TestAServedConversationIsDeleted(t *testing.T) {
	t.Parallel()
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			table, folder := library(t, "")
			path := file(t, table, model(t, says("", calls("library__wait", "{}")), says("Done.")), store, people,
				"[conversation]\ninstructions = \"Be short.\"\n")
			s := serve(t, true, "--config", path)
			a := asks(t, s, path, folder)
			consortBesideDone(t, "history", "delete", a.conversation, "--config", path)
			contains(t, "the answer", <-a.told, "The conversation was deleted")
			touch(filepath.Join(folder, "go"))
			if _, failure := s.says(adaToken, "Are you there?", a.conversation); !strings.Contains(failure, "no such conversation") {
				t.Errorf("a message to what was deleted: %s", failure)
			}
			if h, failure := s.says(adaToken, "And now?", ""); h.Conversation == "" {
				t.Errorf("a new conversation: %+v, %s", h, failure)
			}
			s.signal(os.Interrupt)
			s.ends(exit.Done)
			lacks(t, "what is kept", consort(t, "history", "list", "--json", "--config", path).stdout, a.conversation)
		})
	}
}

// TestAServedConversationIsContinuedElsewhere: whoever waits for the answer is told
// that another process went on, and can have the answer to what that said.
func TestAServedConversationIsContinuedElsewhere(t *testing.T) {
	t.Parallel()
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			table, folder := library(t, "")
			path := file(t, table, model(t, says("", calls("library__wait", "{}")), expecting("Hello from run.", "Say hello.")), store, people)
			s := serve(t, true, "--config", path)
			a := asks(t, s, path, folder)
			if out := consortBesideDone(t, "run", "--conversation", a.conversation, "Say hello.", "--config", path); out != "Hello from run.\n" {
				t.Errorf("run: %q", out)
			}
			contains(t, "the answer", <-a.told, "continued the conversation", a.conversation, "without a message")
			touch(filepath.Join(folder, "go"))
			if h, failure := s.says(adaToken, "", a.conversation); h.Answer != "Hello from run." {
				t.Errorf("what was said last: %+v, %s", h, failure)
			}
			s.signal(os.Interrupt)
			s.ends(exit.Done)
		})
	}
}

// TestAMessageIsAnsweredElsewhere: where another process says something before the
// model has answered, its turn answers both messages, and whoever waits has that.
func TestAMessageIsAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	first := openaiserver.Step{Reply: openaiserver.Respond(func(r *openaiserver.Request) openaiserver.Reply {
		if !strings.Contains(string(r.Body), "Say hello.") {
			close(asked)
			<-answer
			return openaiserver.Message{Text: "Nobody hears this."}
		}
		return openaiserver.Message{Text: "Hello to both."}
	})}
	path := file(t, model(t, first), historyTable, people)
	s := serve(t, true, "--config", path)
	told := make(chan heard, 1)
	go func() {
		h, _ := s.says(adaToken, "Go.", "")
		told <- h
	}()
	<-asked
	id := all(t, open(t, path))[0].ID
	consortBesideDone(t, "run", "--conversation", id, "Say hello.", "--config", path)
	close(answer)
	if h := <-told; h.Answer != "Hello to both." || h.Conversation != id {
		t.Errorf("%+v", h)
	}
	s.signal(os.Interrupt)
	s.ends(exit.Done)
}
