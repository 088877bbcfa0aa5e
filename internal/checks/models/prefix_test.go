// SPDX-License-Identifier: Apache-2.0

package models

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/anthropicmodel"
	"github.com/consort-go/consort/converse/findtools"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/internal/testing/raced"
)

// exchanges is how many exchanges a conversation has whose requests only grow. Later ones
// cost more than early ones.
var exchanges = raced.Fewer(1000)

// TestRequestsOnlyGrow: over a thousand exchanges with calls, images, files, failures and
// reasoning, the messages of each request begin with the bytes of the previous one, and
// the bytes after the messages are always the same. That holds in each process that
// continues the conversation. The strict server accepts the last request, and so all of
// its beginnings.
func TestRequestsOnlyGrow(t *testing.T) { requestsOnlyGrow(t, false) }

// The same holds for conversations that search for tools, and call what they find.
func TestRequestsOfSearchesOnlyGrow(t *testing.T) { requestsOnlyGrow(t, true) }

func requestsOnlyGrow(t *testing.T, searches bool) {
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			l := newLife(t, 1)
			g := &growing{t: t, life: l, api: api, searches: searches}
			script := openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{{Reply: openaiserver.Respond(g.answer)}}}
			g.strict = openaiserver.New(script, &openaiserver.Options{Record: -1})
			defer g.strict.Close()
			var history []canister.Canister
			for g.requests < exchanges && !t.Failed() {
				history = g.process(l.through(history))
			}
			res := g.ask(g.last)
			if text, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusOK {
				t.Errorf("the last of %d requests, %d bytes: %s", g.requests, len(g.last), text)
			}
			t.Logf("%d requests, the last has %d bytes", g.requests, len(g.last))
		})
	}
}

// growing is a server whose requests must only grow.
type growing struct {
	t        *testing.T
	life     *life
	api      string
	searches bool
	strict   *openaiserver.Server
	requests int
	last     []byte // the last request
	messages []byte // its beginning, with the messages
	tail     []byte // the rest
}

// process continues a conversation for fifty turns.
func (g *growing) process(history []canister.Canister) []canister.Canister {
	model, err := g.model()
	if err != nil {
		g.t.Fatal(err)
	}
	defer model.Close()
	local, err := g.life.tools()
	if err != nil {
		g.t.Fatal(err)
	}
	finding, err := findtools.Ensemble("tools", local)
	if err != nil {
		g.t.Fatal(err)
	}
	ensembles := []*ensemble.Ensemble{local, finding}
	if !g.searches {
		ensembles = ensembles[:1]
	}
	roster, err := ensemble.NewRoster(ensembles...)
	if err != nil {
		g.t.Fatal(err)
	}
	opts := &converse.Options{History: history, OwnRoster: true, NewID: g.life.newID, Limits: converse.Limits{ResultBytes: 400}}
	if history == nil {
		opts.Instructions = "Be brief."
	}
	talk := converse.New(g.asked(model), roster, opts)
	defer talk.Close(context.Background())
	for range 50 {
		if g.requests >= exchanges {
			break
		}
		if _, err := talk.Ask(context.Background(),
			append(contents[[]string{"png", "pdf", "blank", "address"}[g.life.upTo(4)]], canister.Text("Go on."))...); err != nil {
			g.t.Fatal(err)
		}
	}
	return talk.History()
}

// asked returns the model that the conversation asks.
func (g *growing) asked(model converse.Model) converse.Model {
	if !g.searches {
		return model
	}
	return findtools.New(model, &findtools.Options{Tools: "tools", Pinned: []string{"local__text"}})
}

func (g *growing) model() (closer, error) {
	client := &http.Client{Transport: g}
	if g.api == messages {
		return anthropicmodel.New("claude-test", &anthropicmodel.Options{APIKey: "key", HTTPClient: client, Thinking: "adaptive"})
	}
	return openaimodel.New("gpt-test", &openaimodel.Options{API: g.api, APIKey: "key", HTTPClient: client})
}

// answer returns an answer that a model could give: reasoning, text, and calls that go on
// for some exchanges.
func (g *growing) answer(*openaiserver.Request) openaiserver.Reply {
	items := []openaiserver.Item{{Kind: openaiserver.ReasoningItem, Text: "Hm."}}
	for i := range g.life.of(0, 1, 1, 2, 3) {
		if g.life.chance(3) {
			items = append(items, openaiserver.Item{Kind: openaiserver.RedactedItem})
		}
		call := g.call()
		call.ID = fmt.Sprintf("toolu_%d_%d", g.requests, i)
		items = append(items, openaiserver.Item{Kind: openaiserver.CallItem, Call: call})
	}
	if len(items) == 1 || g.life.chance(2) {
		items = append(items[:1:1], append([]openaiserver.Item{{Text: "Well."}}, items[1:]...)...)
	}
	return openaiserver.Message{Items: items, Delta: -1}
}

// call returns a call that a model could make.
func (g *growing) call() openaiserver.Call {
	name := "local__" + []string{"text", "fails", "content", "broken"}[g.life.upTo(4)]
	switch {
	case g.searches && g.life.chance(3):
		return openaiserver.Call{Name: "tools__find_tools", Arguments: `{"query":"something that fails"}`}
	case g.searches && name != "local__text":
		return openaiserver.Call{Name: "tools__call_tool", Arguments: `{"name": "` + name + `", "arguments": {}}`}
	}
	return openaiserver.Call{Name: name}
}

// RoundTrip compares a request with the one before, and answers it. The server reads a
// request with the same members and one message, because the whole is read at the end.
func (g *growing) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_ = r.Body.Close()
	if g.requests++; g.tail == nil {
		g.tail = body[g.endOfMessages(body):]
	}
	now, same := bytes.CutSuffix(body, g.tail)
	switch {
	case !same:
		g.t.Errorf("request %d does not end as the first one:\n%s\n%s", g.requests, body[max(0, len(body)-len(g.tail)):], g.tail)
	case !bytes.HasPrefix(now, g.messages):
		n := 0
		for n < len(now) && n < len(g.messages) && now[n] == g.messages[n] {
			n++
		}
		g.t.Errorf("request %d does not begin with the one before: from byte %d on it has\n%.200s\nand had\n%.200s", g.requests, n, now[n:], g.messages[n:])
	}
	g.last, g.messages = body, now
	name, _, _ := bytes.Cut(body, []byte(":"))
	short := append(bytes.Clone(name), `:[{"role":"user","content":"Go on."}`...)
	res := g.ask(append(short, g.tail...))
	res.Request = r
	return res, nil
}

// endOfMessages returns where the list of messages ends, which is the first member.
func (g *growing) endOfMessages(body []byte) int {
	at := bytes.IndexByte(body, ':') + 1
	var list json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(body[at:]))
	if err := decoder.Decode(&list); err != nil {
		g.t.Fatal(err)
	}
	return at + int(decoder.InputOffset()) - 1
}

// ask sends a request to the strict server.
func (g *growing) ask(body []byte) *http.Response {
	path := map[string]string{chat: "/v1/chat/completions", responses: "/v1/responses", messages: "/v1/messages"}[g.api]
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(body)))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Anthropic-Version", "2023-06-01")
	recorder := httptest.NewRecorder()
	g.strict.ServeHTTP(recorder, request)
	return recorder.Result()
}
