// SPDX-License-Identifier: Apache-2.0

package models

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/anthropicmodel"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/tidwall/gjson"
)

// The APIs.
const (
	chat      = "chat"
	responses = "responses"
	messages  = "messages"
)

var apis = []string{chat, responses, messages}

const mistral = "https://api.mistral.ai/v1"

// callIDs are the IDs of calls that hosts with Chat Completions accept: OpenAI takes up to
// 40 characters (github.com/vercel/ai/issues/5171), and Mistral nine letters and digits
// (github.com/langchain-ai/langchain/pull/24668).
var callIDs = map[string]*regexp.Regexp{
	"https://api.openai.com/v1": regexp.MustCompile(`^.{1,40}$`), mistral: regexp.MustCompile(`^[a-zA-Z0-9]{9}$`),
}

// server is a strict server of one API at one host, without a socket. Its models refuse
// what another model has signed or encrypted.
type server struct {
	api, base string
	models    []string
	strict    *openaiserver.Server
	life      *life
	away      atomic.Bool // it answers that it is overloaded

	mu       sync.Mutex
	requests int
	refused  []string // reasons, with the requests
}

// serversOf returns the servers of an API: the provider's own, and others.
func serversOf(api string, l *life) []*server {
	bases := map[string][]string{
		chat:      {"https://api.openai.com/v1", "http://localhost:8080/v1", mistral},
		responses: {"https://api.openai.com/v1", "https://res.openai.azure.com/openai/v1"},
		messages:  {"https://api.anthropic.com", "https://claude.example"},
	}
	var all []*server
	for i, base := range bases[api] {
		s := &server{api: api, base: base, models: []string{fmt.Sprint(api, "-", i, "-large"), fmt.Sprint(api, "-", i, "-small")}, life: l}
		script := openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{{Reply: openaiserver.Respond(l.answer(s))}}}
		s.strict = openaiserver.New(script, &openaiserver.Options{Record: -1})
		all = append(all, s)
	}
	return all
}

// mark is part of all reasoning of the server. Nobody else may see it.
func (s *server) mark() string { return "thought at " + s.models[0] }

// RoundTrip lets the strict server answer.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_ = r.Body.Close()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	s.life.leaks(s, body)
	for what, mark := range marks[s.api] {
		if bytes.Contains(body, []byte(mark)) {
			s.life.note(what)
		}
	}
	again := r.Clone(r.Context())
	_, path, _ := strings.Cut(again.URL.Path, "/v1/")
	again.URL.Path = "/v1/" + path
	again.Body = io.NopCloser(bytes.NewReader(body))
	recorder := httptest.NewRecorder()
	before := len(s.strict.Faults())
	s.strict.ServeHTTP(recorder, again)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if faults := s.strict.Faults(); len(faults) > before {
		s.refused = append(s.refused, fmt.Sprintf("%s\nof the request\n%s", strings.Join(faults[before:], "\n"), body))
	}
	if reason := s.rejects(body); reason != "" {
		s.refused = append(s.refused, fmt.Sprintf("%s in the request\n%s", reason, body))
	}
	res := recorder.Result()
	res.Request = r
	answer, _ := io.ReadAll(res.Body)
	s.life.learn(s, answer)
	res.Body = io.NopCloser(bytes.NewReader(answer))
	if res.StatusCode == http.StatusOK && s.life.chance(25) {
		res.Body = io.NopCloser(io.MultiReader(bytes.NewReader(answer[:s.life.upTo(len(answer))]), cutOff{}))
	}
	return res, nil
}

// rejects returns an error for requests that the host rejects although the strict server
// accepts them. Mistral requires an answer after the results of calls
// (github.com/avante-corp/avante.nvim/pull/2695).
func (s *server) rejects(body []byte) string {
	legal, before := callIDs[s.base], ""
	if s.api != chat || legal == nil {
		return ""
	}
	for _, message := range gjson.GetBytes(body, "messages").Array() {
		role := message.Get("role").String()
		if s.base == mistral && before == "tool" && role != "tool" && role != "assistant" {
			return "the role " + role + " after tool"
		}
		for _, call := range message.Get("tool_calls").Array() {
			if id := call.Get("id").String(); !legal.MatchString(id) {
				return fmt.Sprintf("the ID %q of a call", id)
			}
		}
		before = role
	}
	return ""
}

// cutOff is a connection that was lost.
type cutOff struct{}

func (cutOff) Read([]byte) (int, error) { return 0, errors.New("connection reset by peer") }

// closer is a model that can be closed.
type closer interface {
	converse.Model
	Close() error
}

// model returns a model of the server with random options.
func (s *server) model() (closer, error) {
	l := s.life
	name := s.models[l.of(0, 0, 0, 1)]
	if s.api == messages {
		o := anthropicmodel.Options{
			BaseURL: s.base, APIKey: "key", HTTPClient: &http.Client{Transport: s}, NoStream: l.chance(2),
			Thinking: []string{"", "adaptive", "2048", "off"}[l.of(0, 1, 2, 3)], NoCache: l.chance(4), NoImages: l.chance(8),
		}
		if l.chance(2) {
			o.HostedTools = []map[string]any{{"type": "web_search_20250305", "name": "web_search"}}
		}
		return anthropicmodel.New(name, &o)
	}
	o := openaimodel.Options{
		BaseURL: s.base, API: s.api, APIKey: "key", HTTPClient: &http.Client{Transport: s}, NoStream: l.chance(2),
		NoImages: l.chance(8), ReasoningEffort: []string{"", "low", "high"}[l.of(0, 1, 2)],
	}
	switch {
	case s.api == chat:
		o.Audio = l.chance(4)
	default:
		o.ReasoningSummary = []string{"", "auto"}[l.of(0, 1)]
		if l.chance(2) {
			o.HostedTools = []map[string]any{{"type": "web_search"}}
		}
	}
	return openaimodel.New(name, &o)
}

// close ends the server and returns how many requests it got and which it refused.
func (s *server) close() (requests int, refused []string) {
	_ = s.strict.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests, slices.Clone(s.refused)
}

// marks are texts in requests that prove a feature of a conversation, by API.
var marks = map[string]map[string]string{
	chat: {"images": `"type":"image_url"`, "failures": `There is no tool`, "reasoning": `"reasoning_content"`, "signed calls": `"extra_content"`},
	responses: {
		"images": `"type":"input_image"`, "files": `"type":"input_file"`, "failures": `There is no tool`, "reasoning": `"encrypted_content"`,
		"hosted tools": `"type":"web_search_call"`,
	},
	messages: {
		"images": `"type":"image"`, "files": `"type":"document"`, "failures": `"is_error":true`, "reasoning": `"type":"thinking"`,
		"redacted reasoning": `"type":"redacted_thinking"`, "hosted tools": `"type":"web_search_tool_result"`,
	},
}

// secrets knows what each server has signed, encrypted or numbered.
type secrets struct {
	mu     sync.Mutex
	owners map[string]*server
	found  []string
}

// sealed matches what only its server can read, and the identities of items that only it
// knows. Calls are not among them: their IDs link calls and results at every server.
var (
	sealed = regexp.MustCompile(`"(?:encrypted_[a-z]+|signature|data|thought_signature)": ?"([A-Za-z0-9+/=]{16,})"`)
	base64 = regexp.MustCompile(`[A-Za-z0-9+/=]{16,}`)
	itemID = regexp.MustCompile(`\b(?:rs|msg|fc|ws|resp|srvtoolu)_[0-9][0-9_]*`)
)

// idOwners are the APIs whose items have IDs.
var idOwners = map[string]string{"rs": responses, "fc": responses, "ws": responses, "resp": responses, "msg": responses, "srvtoolu": messages}

// learn notes the opaque values of an answer.
func (l *life) learn(s *server, answer []byte) {
	l.secrets.mu.Lock()
	defer l.secrets.mu.Unlock()
	for _, match := range sealed.FindAllSubmatch(answer, -1) {
		l.secrets.owners[string(match[1])] = s
	}
}

// leaks looks for what another server has signed, encrypted or numbered.
func (l *life) leaks(s *server, body []byte) {
	l.secrets.mu.Lock()
	defer l.secrets.mu.Unlock()
	leak := func(what string) {
		l.secrets.found = append(l.secrets.found, fmt.Sprintf("%s is in a request to %s (%s):\n%s", what, s.base, s.api, body))
	}
	for _, text := range base64.FindAll(body, -1) {
		if owner := l.secrets.owners[string(text)]; owner != nil && owner != s {
			leak(fmt.Sprintf("%s of %s", text, owner.models[0]))
		}
	}
	for _, other := range l.servers {
		if other != s && bytes.Contains(body, []byte(other.mark())) {
			leak("reasoning of " + other.models[0])
		}
	}
	for _, id := range itemID.FindAll(body, -1) {
		kind, _, _ := strings.Cut(string(id), "_")
		if idOwners[kind] != s.api {
			leak("the ID " + string(id))
		}
	}
}

var _ http.RoundTripper = (*server)(nil)
