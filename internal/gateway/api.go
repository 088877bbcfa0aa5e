// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/httpapi"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/conversetool"
	"github.com/consort-go/consort/internal/notes"
	"github.com/consort-go/consort/internal/openstreams"
	"github.com/consort-go/consort/invoker"
	mcpserver "github.com/consort-go/consort/mcpadapter/server"
)

// maxStreams is how many streams of the API a client may have open. A front end may have one token
// for all its people.
const maxStreams = 1000

// api serves the stored conversations over HTTP, next to MCP, to the clients that may use the
// tool converse, with the same conversations. Each message counts as a call of that tool.
type api struct {
	server        *server
	conversations *conversations
	feed          *httpapi.Feed
}

// mount adds the paths of the API to a mux.
func (a *api) mount(web *web, servers *servers) {
	s, mcp := a.server, servers.mcp
	handler := httpapi.New(a.feed, &httpapi.Options{
		Open:   a.conversations.open,
		Limits: s.Assembly.ServedLimits,
		Owner:  a.owner,
		Name:   func(ctx context.Context) string { return cmp.Or(access.NameFrom(ctx), "client") },
		Models: func() []string {
			return []string{cmp.Or(servers.config.Load(), s.Config).Model.Name.Reveal(), "consort"}
		},
		Origins: []string{"*"}, // Identify refuses foreign ones
		MaxBody: s.settings.MaxBody, MaxBodies: s.settings.MaxBodies,
		MaxStreams: maxStreams,
		Ending:     s.ending,
		Logger:     s.Assembly.Logger,
		Admit:      a.admit(mcp),
	})
	allowed := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if w.Header().Get("Access-Control-Allow-Origin") != "" { // without it a browser's openai client repeats what must not be repeated
			w.Header().Add("Access-Control-Expose-Headers", "Consort-Conversation, Consort-Ignored, Location, X-Should-Retry")
		}
		mayUse := func() error { return mcp.Perform(r.Context(), conversetool.Name, nil, nil) }
		openstreams.Require(r.Context(), mayUse)
		if err := mayUse(); err != nil {
			httpapi.WriteError(w, err)
			return
		}
		handler.ServeHTTP(w, r)
	})
	identified := mcp.Identify(allowed)
	for _, path := range []string{"/api/", "/v1/", "/agui"} {
		web.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			identified.ServeHTTP(&refusalWriter{ResponseWriter: w}, r)
		})
	}
	web.offers("conversations at /api/conversations, /v1 and /agui")
}

// admit returns a function that lets a message or an answer of a caller enter as a call of the
// tool converse, and records the sender of a message. An operator of the console who cannot have
// conversations is not recorded in the conversations of others.
func (a *api) admit(mcp *mcpserver.Server) func(context.Context, httpapi.Entry, func(context.Context) error) error {
	return func(ctx context.Context, entry httpapi.Entry, enter func(context.Context) error) error {
		if _, isMessage := entry.Canister.(canister.User); isMessage {
			marked, err := a.conversations.withSender(ctx)
			denied := new(invoker.Failure)
			switch {
			case err == nil:
				ctx = marked
			case entry.Conversation == "" || !errors.As(err, &denied) || denied.Code != invoker.Denied:
				return err
			}
		}
		arguments, err := argumentsOf(entry)
		if err != nil {
			return &invoker.Failure{Code: invoker.InvalidArguments, Message: "The message or answer has no JSON form.", Cause: err}
		}
		return mcp.Perform(ctx, conversetool.Name, arguments, enter)
	}
}

// owner returns the owner of the caller's conversations in the store.
func (a *api) owner(ctx context.Context) (string, error) {
	known, err := a.conversations.owner(ctx)
	return a.conversations.store.Owner(known), err
}

// admittedArguments are the arguments of the tool converse for an incoming message or answer. The past that a
// new conversation brings comes last, because the audit cuts long arguments off.
type admittedArguments struct {
	Conversation string           `json:"conversation,omitempty"`
	ForkedAt     int              `json:"forked_at,omitempty"`
	Message      *string          `json:"message,omitempty"`
	Verdict      canister.Verdict `json:"verdict,omitempty"`
	Wait         string           `json:"wait,omitempty"`
	Reason       string           `json:"reason,omitempty"`
	Arguments    json.RawMessage  `json:"arguments,omitempty"`
	Content      []part           `json:"content,omitempty"`
	Tools        json.RawMessage  `json:"tools,omitempty"`
	Earlier      []earlierMessage `json:"earlier,omitempty"`
}

// earlierMessage is a canister of the past. Its text has the same name as the new message has, for
// audits that omit it.
type earlierMessage struct {
	Kind    canister.Kind   `json:"kind"`
	Message string          `json:"message"`
	Content []part          `json:"content,omitempty"`
	Tools   json.RawMessage `json:"tools,omitempty"`
}

// part is a content of a message or an answer. A digest stands for its bytes.
type part struct {
	Type        string          `json:"type"`
	MIME        string          `json:"mime,omitempty"`
	URI         string          `json:"uri,omitempty"`
	Name        string          `json:"name,omitempty"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Bytes       int             `json:"bytes,omitempty"`
	SHA256      string          `json:"sha256,omitempty"`
	Text        string          `json:"text,omitempty"`
	JSON        json.RawMessage `json:"json,omitempty"`
}

// argumentsOf returns the arguments of the tool converse for an incoming message or answer: all that enters,
// so that an approval holds for nothing else.
func argumentsOf(entry httpapi.Entry) (json.RawMessage, error) {
	form := admittedArguments{Conversation: entry.Conversation, ForkedAt: entry.ForkedAt}
	switch c := entry.Canister.(type) {
	case canister.User:
		text := canister.TextOf(c.Content)
		form.Message, form.Content, form.Tools = &text, partsOf(c.Content, false), c.Metadata[notes.ClientToolsKey]
	case canister.Answer:
		form.Wait, form.Verdict, form.Reason, form.Arguments, form.Content = c.Wait, c.Verdict, c.Reason, c.Arguments, partsOf(c.Content, true)
	}
	for _, c := range entry.Earlier {
		content := canister.ContentOf(c)
		one := earlierMessage{Kind: c.Kind(), Message: canister.TextOf(content), Content: partsOf(content, false), Tools: c.Header().Metadata[notes.ClientToolsKey]}
		if call, is := c.(canister.Invocation); is {
			one.Message = call.Name + " " + call.Arguments
		}
		form.Earlier = append(form.Earlier, one)
	}
	return json.Marshal(form)
}

// partsOf returns the parts of contents, with texts or without.
func partsOf(contents []canister.Content, texts bool) (parts []part) {
	for _, content := range contents {
		p := canister.PayloadOf(content)
		if p.Type == "text" && !texts {
			continue
		}
		one := part{Type: p.Type, MIME: p.MIME, URI: p.URI, Name: p.Name, Title: p.Title, Description: p.Description, Text: p.Text, JSON: p.JSON}
		if p.Data != nil {
			sum := sha256.Sum256(p.Data)
			one.Bytes, one.SHA256 = len(p.Data), hex.EncodeToString(sum[:])
		}
		parts = append(parts, one)
	}
	return parts
}

// refusalWriter writes the refusals of the server, which are plain text, as the errors of the
// API.
type refusalWriter struct {
	http.ResponseWriter
	status int // of a refusal; 0 for other responses
}

// WriteHeader implements [http.ResponseWriter].
func (w *refusalWriter) WriteHeader(status int) {
	if status >= http.StatusBadRequest && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.status = status
		w.Header().Set("Content-Type", "application/json")
		w.Header().Del("Content-Length")
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *refusalWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		return w.ResponseWriter.Write(p)
	}
	_, err := w.ResponseWriter.Write(httpapi.ErrorBody(w.status, string(bytes.TrimSpace(p))))
	return len(p), err
}

// Unwrap gives http.ResponseController access to the methods that this writer lacks.
func (w *refusalWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
