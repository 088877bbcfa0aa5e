// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi/internal/eventstream"
	"github.com/consort-go/consort/converse/httpapi/internal/lists"
	"github.com/consort-go/consort/converse/httpapi/internal/sentnotes"
	"github.com/consort-go/consort/internal/bodymemory"
	"github.com/consort-go/consort/internal/counter"
	"github.com/consort-go/consort/internal/hostnames"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/openstreams"
	"github.com/consort-go/consort/internal/unsent"
	"go.uber.org/zap"
)

// Options configure [New]. Nil, the zero value of a field, and a negative number mean the
// documented default.
type Options struct {
	// Open creates a conversation with its instructions. Pass the same function
	// to the engine (engine.NewLocal). Nil adds no instructions.
	Open converse.OpenFunc
	// Limits returns the limits of the conversations that Open creates now. They decide whether
	// a turn is over. Nil means the defaults of [converse.Limits].
	Limits func() converse.Limits
	// Owner returns the owner of the caller's conversations, given the context of a
	// request. It becomes [history.Info].Owner. Nil means one owner, with an empty name,
	// for all callers. An error refuses the request: an [invoker.Failure] with the code
	// UNAUTHORIZED with 401 and the challenge Bearer, unless a handler around this one has set
	// WWW-Authenticate, DENIED with 403, NOT_FOUND or TOOL_NOT_FOUND with 404, one with
	// UNAVAILABLE and RetryAfter with 429, and all others with 503.
	Owner func(ctx context.Context) (string, error)
	// Name returns the name under which the caller answers waits
	// ([canister.Answer].By); default "client".
	Name func(ctx context.Context) string
	// Admit is called for each message and each answer before it enters a conversation,
	// for example to count it against a budget. enter puts it into the log; an error of
	// Admit refuses the request as one of Owner does. Nil calls enter.
	Admit func(ctx context.Context, entry Entry, enter func(context.Context) error) error
	// Models returns the names that the OpenAI-compatible requests may use now; the first one is
	// the default. The engine decides which model answers. Nil means
	// "consort". The list must not be empty.
	Models func() []string
	// Hosts are the host names of the server, with or without a port: a request with any
	// other Host is refused (403), as a defence against DNS rebinding. Default: any name if
	// Owner is set, which must refuse callers that it cannot identify; otherwise the loopback
	// names of this machine. "*" allows any name and disables the defence.
	Hosts []string
	// Origins are the web origins, such as "https://app.example.com", whose scripts may
	// send requests, in addition to the server's own host. "*" allows any. Other origins
	// are refused (403). The handler sends no CORS headers and answers no preflight: a
	// handler around it does, for scripts of other origins.
	Origins []string
	// MaxBody bounds the body of a request, in bytes; default 4 MiB.
	MaxBody int64
	// MaxBodies bounds the total size of the bodies of all requests under way, in bytes, also while
	// messages wait for a turn; a stream counts with a part of its body, once it has begun;
	// default 64 MiB, or four times MaxBody if that is more. The requests of one owner from
	// one IP address, or IPv6 /64, may use a quarter of it, and at least one body of MaxBody.
	// Messages that wait may use half of both, so that answers can enter. A request that exceeds
	// the quarter is refused with 429, and one that exceeds the total with 503, both with
	// Retry-After.
	MaxBodies int64
	// MaxStreams bounds the streams of one owner that are open at once: the events of
	// conversations, streamed answers of the OpenAI-compatible API, and runs of AG-UI;
	// default 64. A request for one more is refused with 429 before anything is stored.
	MaxStreams int
	// Heartbeat is how often a silent stream sends a comment; default 15 s.
	Heartbeat time.Duration
	// Ending is cancelled when the process begins to shut down. The turns of requests that
	// end after that are left for the next process. Otherwise the turn of a request to the
	// OpenAI-compatible API or AG-UI is cancelled if its client leaves. Nil is never cancelled.
	Ending context.Context
	// Logger receives the errors that clients do not see; nil discards them.
	Logger *zap.Logger
}

// Entry is a message or an answer that a caller sends to a conversation, for Options.Admit.
type Entry struct {
	// Conversation is the ID of the conversation; empty if it begins with the entry.
	Conversation string
	// ForkedAt is not 0 if the entry does not enter Conversation, but a new fork of its first
	// ForkedAt canisters.
	ForkedAt int
	// Canister is a canister.User or a canister.Answer.
	Canister canister.Canister
	// Earlier is the past that the caller says the conversation has, if it begins with the
	// entry: instructions, messages, and calls with their results. It enters with the entry.
	Earlier []canister.Canister
}

// The defaults of [Options].
const (
	defaultBody   = 4 << 20
	defaultBodies = 64 << 20
)

// handler serves the requests.
type handler struct {
	Options
	feed    *Feed
	engine  engine.Engine
	store   history.Store
	routes  *http.ServeMux
	streams openstreams.PerOwner
	bodies  *bodymemory.Limit

	claimed  counter.Names // chats and responses that a request continues now
	followed counter.Names // conversations whose turn a request follows
	sent     sentnotes.Notes
}

// New returns a handler for the conversations of a feed. It may be used concurrently and
// starts nothing of its own: it can be dropped when its requests have ended. It serves the
// paths under /api/, /v1/ and /agui, which [http.StripPrefix] can put elsewhere.
func New(feed *Feed, options *Options) http.Handler {
	h := &handler{feed: feed, engine: feed.engine, store: feed.store}
	if options != nil {
		h.Options = *options
		h.Hosts, h.Origins = slices.Clone(h.Hosts), slices.Clone(h.Origins)
	}
	h.MaxBody = cmp.Or(max(h.MaxBody, 0), defaultBody)
	h.MaxBodies = cmp.Or(max(h.MaxBodies, 0), max(defaultBodies, 4*h.MaxBody))
	h.bodies = bodymemory.New(h.MaxBodies, h.MaxBody)
	h.MaxStreams = cmp.Or(max(h.MaxStreams, 0), openstreams.DefaultPerOwner)
	h.streams.Most = h.MaxStreams
	h.Heartbeat = cmp.Or(max(h.Heartbeat, 0), eventstream.DefaultHeartbeat)
	h.Logger = logevent.Logger(h.Logger)
	if h.Models == nil {
		h.Models = func() []string { return []string{"consort"} }
	}
	if h.Name == nil {
		h.Name = func(context.Context) string { return "client" }
	}
	h.Admit = admitWaiting(h.Admit)
	h.routes = h.mux()
	return h
}

// patterns returns what serves each route.
func (h *handler) patterns() map[string]func(http.ResponseWriter, *http.Request) error {
	o := openAI{h}
	return map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /api/openapi.json":                     h.describe,
		"POST /api/conversations":                   h.create,
		"GET /api/conversations":                    h.list,
		"GET /api/conversations/{id}":               h.show,
		"DELETE /api/conversations/{id}":            h.remove,
		"GET /api/conversations/{id}/history":       h.history,
		"GET /api/conversations/{id}/events":        h.events,
		"POST /api/conversations/{id}/messages":     h.createMessage,
		"POST /api/conversations/{id}/cancel":       h.cancel,
		"POST /api/conversations/{id}/fork":         h.fork,
		"GET /api/conversations/{id}/waits":         h.waits,
		"POST /api/conversations/{id}/waits/{wait}": h.answer,
		"GET /v1/models":                            o.models,
		"GET /v1/models/{model...}":                 o.oneModel,
		"POST /v1/chat/completions":                 o.chat,
		"POST /v1/responses":                        o.respond,
		"GET /v1/responses/{id}":                    o.response,
		"POST /v1/responses/{id}/cancel":            o.cancelResponse,
		"POST /agui":                                h.run,
	}
}

// mux returns the routes.
func (h *handler) mux() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, serve := range h.patterns() {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := serve(w, r); err != nil {
				h.refuse(w, r, err)
			}
		})
	}
	return mux
}

// ServeHTTP implements [http.Handler].
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if (len(h.Hosts) > 0 || h.Owner == nil) && !hostnames.Allow(h.Hosts, r.Host) {
		writeError(w, failure(http.StatusForbidden, "host_not_allowed", "The server does not have this name.", "Ask the operator of the server to add the name to its hosts."))
		return
	}
	if !hostnames.AllowPage(r, h.Origins) {
		writeError(w, failure(http.StatusForbidden, "origin_not_allowed", "Pages of this origin may not send requests.", "Ask the operator of the server to allow the origin."))
		return
	}
	if serve, pattern := h.routes.Handler(r); pattern == "" {
		h.refuseRoute(w, r, serve)
		return
	}
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil { // without a filter there would be more than was asked for
		writeError(w, failure(http.StatusBadRequest, "invalid_request", "The query of the address cannot be read.", "Escape % and ; in it."))
		return
	}
	body := &requestBody{ReadCloser: http.MaxBytesReader(w, r.Body, h.MaxBody), h: h, of: r}
	defer body.keep(0)
	r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, body))
	r.Body = body
	h.routes.ServeHTTP(w, r)
}

// refuseRoute answers a request that no route matches. serve is the answer of the mux,
// which knows the methods of the path.
func (h *handler) refuseRoute(w http.ResponseWriter, r *http.Request, serve http.Handler) {
	answer := unsent.Response{}
	serve.ServeHTTP(answer, r)
	if allow := answer.Header().Get("Allow"); allow != "" {
		w.Header().Set("Allow", allow)
		writeError(w, failure(http.StatusMethodNotAllowed, "method_not_allowed", "This path does not have the method "+r.Method+".", "Use one of: "+allow+"."))
		return
	}
	writeError(w, failure(http.StatusNotFound, "not_found", "There is nothing at this path.", "GET /api/openapi.json lists the paths."))
}

// refuse answers a request with an error, and logs the cause if the client does not see it.
func (h *handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	seen := new(apiError)
	if e := asError(err); e.status >= http.StatusInternalServerError && !errors.As(err, &seen) && r.Context().Err() == nil {
		logevent.Log(r.Context(), h.Logger, zap.WarnLevel, "a request for a conversation failed", logevent.APIRequestFailed, zap.String("path", r.Pattern), zap.Error(err))
	}
	writeError(w, openstreams.Explain(r.Context(), err))
}

// owner returns the owner of the caller's conversations.
func (h *handler) owner(ctx context.Context) (string, error) {
	if h.Owner == nil {
		return "", nil
	}
	return h.Owner(ctx)
}

// owned returns the conversation of a request, if it belongs to the caller.
func (h *handler) owned(r *http.Request) (history.Info, error) {
	return h.ownedBy(r.Context(), r.PathValue("id"))
}

func (h *handler) ownedBy(ctx context.Context, id string) (history.Info, error) {
	owner, err := h.owner(ctx)
	if err != nil {
		return history.Info{}, err
	}
	if history.CheckID(id) != nil {
		return history.Info{}, noConversation()
	}
	info, err := h.store.Info(ctx, id)
	if errors.Is(err, history.ErrNotFound) || err == nil && info.Owner != owner {
		return history.Info{}, noConversation()
	}
	return info, err
}

// parse reads the JSON body of a request.
func parse(w http.ResponseWriter, r *http.Request, form any) error {
	text, err := body(w, r)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, form); err != nil {
		return invalidBody(err)
	}
	return nil
}

// decode reads the JSON body of a request. A member that form does not have is an error.
func decode(w http.ResponseWriter, r *http.Request, form any) error {
	text, err := body(w, r)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(form); err != nil {
		return invalidBody(err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return failure(http.StatusBadRequest, "invalid_json", "Something follows the JSON object of the body.", "Send one JSON object.")
	}
	return nil
}

// invalidBody returns the error for a body that does not have the form of the request.
func invalidBody(err error) error {
	if errors.Is(err, lists.ErrTooLong) {
		return err
	}
	wrong := new(json.UnmarshalTypeError)
	isWrong := errors.As(err, &wrong)
	if isWrong && wrong.Field != "" {
		return invalid(strings.Replace(wrong.Field, "inputMessage.", "", 1), "It may not be a JSON "+wrong.Value+".", "See GET /api/openapi.json for its type.")
	}
	if name, is := strings.CutPrefix(err.Error(), "json: unknown field "); is {
		return invalid(strings.Trim(name, `"`), "The request has no such member.", "Leave it out; GET /api/openapi.json lists the members.")
	}
	message := fmt.Sprintf("The body of the request cannot be read as JSON: %v.", err)
	if isWrong {
		message = fmt.Sprintf("The body of the request is a JSON %s, not a JSON object.", wrong.Value)
	}
	return failure(http.StatusBadRequest, "invalid_json", message, "Send one JSON object; GET /api/openapi.json lists its members.")
}

// openStream counts a stream of the caller, if the answer is one; the caller must call end.
func (h *handler) openStream(owner string, isStream bool) (end func(), err error) {
	if !isStream {
		return func() {}, nil
	}
	end, ok := h.streams.Open(owner)
	if !ok {
		e := failure(http.StatusTooManyRequests, "too_many_streams", fmt.Sprintf("You have %d open streams, which is the limit.", h.MaxStreams), "Close one, or wait until one of the answers is complete, and send the request again.")
		e.retryAfter = 1
		return nil, e
	}
	return end, nil
}
