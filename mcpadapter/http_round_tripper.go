// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/retryafter"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/internal/challenge"
	"github.com/consort-go/consort/mcpadapter/internal/dpop"
	"github.com/consort-go/consort/mcpadapter/internal/opencount"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"golang.org/x/oauth2"
)

// roundTripper is the round tripper of one connection. It adds the configured headers and
// tokens, for the server's own origin only. It turns responses that are not MCP messages
// into errors with a reason, where the SDK would end the session. It ends all requests
// when the link is killed.
type roundTripper struct {
	origin  *url.URL
	headers map[string]string
	trusted map[string]string // header -> name of a trusted value
	token   func(context.Context) (string, error)
	oauth   auth.OAuthHandler
	custom  *http.Client // the embedder's; may be nil
	base    http.RoundTripper
	limit   int  // of one body, in bytes
	apart   bool // answers arrive on another stream, as with SSE

	version   atomic.Value          // string: the negotiated protocol version
	opener    atomic.Value          // string: the Authorization header of the handshake
	refusal   atomic.Value          // *authError: why no token could be obtained
	streamErr atomic.Pointer[error] // why the stream that is not for one request was ended
	asking    chan struct{}         // holds a value while a token is requested

	life    context.Context
	endLife context.CancelFunc
	open    opencount.Count
}

func newRoundTripper(origin *url.URL, o *HTTPOptions, limit int) *roundTripper {
	t := &roundTripper{
		origin:  origin,
		headers: o.Headers, trusted: o.TrustedHeaders,
		token: o.Token, oauth: o.OAuth,
		custom: o.Client,
		limit:  limit,
		asking: make(chan struct{}, 1),
	}
	if t.token == nil && t.oauth == nil && o.BearerToken != "" {
		t.token = func(context.Context) (string, error) { return o.BearerToken, nil }
	}
	t.life, t.endLife = context.WithCancel(context.Background())
	t.open.Init()
	t.base = http.DefaultTransport
	if o.Client != nil && o.Client.Transport != nil {
		t.base = o.Client.Transport
	} else if own, ok := t.base.(*http.Transport); ok {
		t.base = own.Clone() // so that its idle connections can be closed
	}
	return t
}

// client returns the HTTP client for the SDK.
func (t *roundTripper) client() *http.Client {
	c := &http.Client{Transport: t, CheckRedirect: t.checkRedirect}
	if t.custom != nil {
		c.Jar = t.custom.Jar
	}
	return c
}

// checkRedirect follows redirects only within the origin, because no other server may
// see the arguments of calls.
func (t *roundTripper) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return &protocolError{what: "it redirects more than 10 times"}
	}
	if !t.sameOrigin(req.URL) {
		return &protocolError{what: fmt.Sprintf("it redirects to another origin (%s), which this client does not follow; if that is intended, set the URL to it", req.URL.Host)}
	}
	if req.Method != via[0].Method {
		return &protocolError{fmt.Sprintf("it redirects with status %d, which drops the body; set the URL to the destination", req.Response.StatusCode), true}
	}
	return nil
}

// sameOrigin compares as RFC 6454 specifies, but allows http to become https on the
// default ports.
func (t *roundTripper) sameOrigin(u *url.URL) bool {
	if !strings.EqualFold(u.Hostname(), t.origin.Hostname()) {
		return false
	}
	if u.Scheme == t.origin.Scheme {
		return port(u) == port(t.origin)
	}
	return u.Scheme == "https" && port(u) == "443" && port(t.origin) == "80"
}

func portNumber(u *url.URL) int {
	n, _ := strconv.Atoi(port(u)) // 0, which is not recorded, if it is not a number
	return n
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// RoundTrip implements http.RoundTripper.
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.sameOrigin(req.URL) {
		closeBody(req)
		return nil, &protocolError{what: fmt.Sprintf("the server wants messages to be sent to another origin (%s), which this client refuses", req.URL.Host)}
	}
	if !t.open.Add() {
		closeBody(req)
		return nil, errClosed
	}
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(t.life, cancel)
	release := sync.OnceFunc(func() {
		stop()
		cancel()
		t.open.Done()
	})
	resp, err := t.contained(req.Clone(ctx))
	if err == nil {
		resp, err = t.inspect(req, resp)
	}
	if err != nil {
		release()
		return nil, err
	}
	resp.Body = &heldBody{resp.Body, release}
	return resp, nil
}

// heldBody releases the request when its body is closed.
type heldBody struct {
	io.ReadCloser
	release func()
}

func (b *heldBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// authorized sends the request, and sends it again if a token was asked for and
// obtained (MCP 2025-11-25, basic/authorization). If that one is refused too, the error of
// a handler of package login says why.
func (t *roundTripper) authorized(req *http.Request) (*http.Response, error) {
	again, err := rewound(req)
	if err != nil {
		return nil, err
	}
	resp, err := t.send(req)
	if err != nil || !t.wantsToken(resp) {
		return resp, err
	}
	if refused, ok := t.refusal.Load().(*authError); ok && t.agreed() == "" {
		resp.Body.Close()
		return nil, refused // do not ask a person who refused again in the next step of the same attempt
	}
	if err := t.authorize(req, resp); err != nil {
		return nil, err
	}
	resp, err = t.send(again)
	if err != nil || t.token == nil || !t.wantsToken(resp) {
		return resp, err // a handler that has the tokens itself may ask a person: it is called once
	}
	return resp, t.authorize(again, resp)
}

// wantsToken reports whether another token may help. It cannot if the server refuses a request
// (403) for another reason than too few scopes; such a request must not be sent again.
func (t *roundTripper) wantsToken(resp *http.Response) bool {
	return t.oauth != nil && (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden && challenge.LacksScope(resp.Header))
}

// authorize obtains a token for one request at a time; requests that waited use the
// token that the first one got.
func (t *roundTripper) authorize(req *http.Request, resp *http.Response) error {
	select {
	case t.asking <- struct{}{}:
		defer func() { <-t.asking }()
	case <-req.Context().Done():
		resp.Body.Close()
		return req.Context().Err()
	}
	probe := (&http.Request{Header: make(http.Header)}).WithContext(req.Context())
	if _, err := t.addToken(probe); err == nil && probe.Header.Get("Authorization") != req.Header.Get("Authorization") {
		resp.Body.Close()
		return nil
	}
	if err := t.oauth.Authorize(req.Context(), req, resp); err != nil {
		refused := &authError{err}
		t.refusal.Store(refused)
		return refused
	}
	return nil
}

// rewound returns a copy of the request that can be sent after req.
func rewound(req *http.Request) (*http.Request, error) {
	again := req.Clone(req.Context())
	if req.GetBody == nil {
		return again, nil
	}
	body, err := req.GetBody()
	again.Body = body
	return again, err
}

// send adds the headers and sends the request.
func (t *roundTripper) send(req *http.Request) (*http.Response, error) {
	out := outgoingFrom(req.Context())
	if out.traced {
		telemetry.Inject(req.Context(), wire.HeaderCarrier{Header: req.Header})
	}
	for name, value := range t.headers {
		req.Header.Set(name, value)
	}
	prover, err := t.addToken(req)
	if err != nil {
		closeBody(req)
		return nil, &authError{err}
	}
	if t.agreed() == "" {
		t.opener.Store(req.Header.Get("Authorization"))
	}
	if err := t.addTrusted(req); err != nil {
		closeBody(req)
		return nil, err
	}
	if x := exchangeFrom(req.Context()); x != nil {
		secrets := t.secrets(req) // now, because headers of req are set below
		x.clean.Store(new(func(text string) string { return redact.Sent(secrets...)(text) }))
	}
	if version := t.agreed(); version != "" && req.Header.Get("Mcp-Protocol-Version") == "" {
		req.Header.Set("Mcp-Protocol-Version", version)
	}
	// SEP-2243: the method is also sent in a header, even for notifications.
	if out.method != "" && req.Header.Get("Mcp-Protocol-Version") >= wire.Modern {
		req.Header.Set("Mcp-Method", out.method)
	}
	trip := t.base.RoundTrip
	if prover != nil {
		trip = func(req *http.Request) (*http.Response, error) { return prover.Send(req, t.base.RoundTrip) }
	}
	resp, err := trip(req)
	if resp != nil {
		resp.Request = req // secrets reads its headers
	}
	return resp, err
}

// contained calls authorized and recovers panics of a Token, an OAuth handler or a
// Client: the SDK also makes requests on its own goroutines, where a panic would end
// the process.
func (t *roundTripper) contained(req *http.Request) (resp *http.Response, err error) {
	panicked := contain.Call("the program's Token, OAuth handler or Client", func() { resp, err = t.authorized(req) })
	if panicked != nil {
		return nil, panicked
	}
	return resp, contain.Error(err)
}

// addToken adds the token to the header. It returns the prover of the key that the token is bound
// to; nil for a bearer token.
func (t *roundTripper) addToken(req *http.Request) (*dpop.Prover, error) {
	if t.token != nil {
		ctx, prover := dpop.Expect(req.Context())
		token, err := t.token(ctx)
		err = contain.Error(err)
		if err != nil || token == "" {
			return nil, err
		}
		return authorizeWith(req, token, prover()), nil
	}
	if t.oauth == nil {
		return nil, nil
	}
	ctx, prover := dpop.Expect(t.life)
	tokens, err := t.oauth.TokenSource(ctx)
	if err != nil || tokens == nil {
		return nil, err
	}
	token, err := tokens.Token()
	var rejected *oauth2.RetrieveError
	switch {
	case errors.As(err, &rejected) && rejected.ErrorCode == "invalid_grant":
		return nil, nil // RFC 6749, § 5.2: the server will answer 401, and then a new token is requested
	case err != nil || token == nil:
		return nil, err
	}
	return authorizeWith(req, token.AccessToken, prover()), nil
}

func authorizeWith(req *http.Request, token string, prover *dpop.Prover) *dpop.Prover {
	scheme := "Bearer"
	if prover != nil {
		scheme = dpop.Scheme // RFC 9449, section 7.1
	}
	req.Header.Set("Authorization", scheme+" "+token)
	return prover
}

// negotiated records the negotiated protocol version.
func (t *roundTripper) negotiated(version string) { t.version.Store(version) }

func (t *roundTripper) agreed() string {
	version, _ := t.version.Load().(string)
	return version
}

// inspect turns responses that are not MCP messages into errors.
func (t *roundTripper) inspect(req *http.Request, resp *http.Response) (*http.Response, error) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case req.Method == http.MethodDelete:
		return resp, nil
	case resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.Header.Get("Location") != "":
		return resp, nil // the HTTP client handles it
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return t.refused(req, resp)
	case t.apart && kind == "text/event-stream":
		resp.Body = t.checkStream(req.Context(), resp.Body)
		return resp, nil
	case t.apart || !outgoingFrom(req.Context()).id.IsValid():
		return resp, nil
	case kind == "text/event-stream":
		resp.Body = t.checkStream(req.Context(), resp.Body)
		return resp, nil
	case kind == "application/json":
		return t.checkJSON(req, resp)
	}
	resp.Body.Close()
	return nil, &protocolError{fmt.Sprintf("it answered a request with status %d and the content type %q", resp.StatusCode, kind), true}
}

// refused handles a response with a status other than success. A JSON-RPC error in it
// is an answer like any other (SEP-2575), unless the status is more specific.
func (t *roundTripper) refused(req *http.Request, resp *http.Response) (*http.Response, error) {
	if resp.StatusCode == http.StatusNotFound && req.Header.Get("Mcp-Session-Id") != "" {
		resp.Body.Close()
		return nil, errSessionGone // MCP 2025-11-25, basic/transports § Session Management
	}
	const most = 64 << 10
	body, _ := io.ReadAll(io.LimitReader(resp.Body, most))
	resp.Body.Close()
	wait, _ := retryafter.Parse(resp.Header.Get("Retry-After"), time.Now(), 24*time.Hour)
	e := &statusError{status: resp.StatusCode, retryAfter: wait.Round(time.Second), otherToken: resp.Request.Header.Get("Authorization") != t.opener.Load()}
	var message struct{ Error *jsonrpc.Error }
	if json.Unmarshal(body, &message) == nil && message.Error != nil {
		own, _ := jsonrpc.DecodeMessage(body)
		if e.refused() && !e.transient() && !e.unauthorized() && !t.apart && answers(own, req) {
			return answered(resp, body), nil
		}
		e.message = textcut.Bytes(redact.Sent(t.secrets(resp.Request)...)(message.Error.Message), wire.MaxQuoted)
	}
	return nil, e
}

// answers reports whether a message is the answer to a request: it has the ID of the request
// (JSON-RPC 2.0, § 5). The Python SDK gives all errors of its transport the ID
// "server-error", and the SDK would wait on for an answer.
func answers(message jsonrpc.Message, req *http.Request) bool {
	response, ok := message.(*jsonrpc.Response)
	id := outgoingFrom(req.Context()).id
	return ok && id.IsValid() && response.ID == id
}

// answered replaces the status and body of resp by ones that the SDK reads.
func answered(resp *http.Response, body []byte) *http.Response {
	resp.StatusCode, resp.Status = http.StatusOK, "200 OK"
	resp.Header.Set("Content-Type", "application/json")
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp
}

// checkJSON reads the body and checks that it is the answer to the request, within the limit.
// The SDK has no limit, and would end the session if it were not a message.
func (t *roundTripper) checkJSON(req *http.Request, resp *http.Response) (*http.Response, error) {
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(t.limit)+1))
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if len(body) > t.limit {
		return nil, &tooLargeError{t.limit}
	}
	message, err := jsonrpc.DecodeMessage(body)
	switch response, _ := message.(*jsonrpc.Response); {
	case err != nil:
		return nil, &protocolError{"it answered with JSON that is not a JSON-RPC message", true}
	case answers(message, req):
		return answered(resp, body), nil
	case response != nil && response.Error != nil:
		return nil, &protocolError{"it answered with an error that has another ID: " + textcut.Bytes(redact.Sent(t.secrets(resp.Request)...)(response.Error.Error()), wire.MaxQuoted), true}
	}
	return nil, &protocolError{"it answered with a message that is not the answer to the request", true}
}

// secrets returns the secrets of a request that is sent or was, for [redact.Sent].
func (t *roundTripper) secrets(req *http.Request) []string {
	return slices.Concat(slices.Collect(maps.Values(t.headers)), t.trustedIn(req), req.Header.Values("Authorization"))
}

// kill ends all requests and refuses further ones.
func (t *roundTripper) kill() {
	t.open.Close()
	t.endLife()
}

// drain waits until no request is left, at most for endTimeout, and closes idle
// connections.
func (t *roundTripper) drain() {
	t.open.Wait(wire.EndTimeout)
	if t.custom == nil || t.custom.Transport == nil {
		if own, ok := t.base.(*http.Transport); ok {
			own.CloseIdleConnections()
		}
	}
}

func (t *roundTripper) err() error {
	if err := t.streamErr.Load(); err != nil {
		return *err
	}
	return nil
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}
