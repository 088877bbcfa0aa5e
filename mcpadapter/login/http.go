// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/consort-go/consort/internal/hostnames"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/mcpadapter/internal/dpop"
	"github.com/consort-go/consort/mcpadapter/internal/netguard"
)

const (
	requestTimeout = 30 * time.Second
	maxBody        = 1 << 20 // bytes of one response
	maxRedirects   = 5       // of a document
)

// statusError is a response without the expected document.
type statusError struct{ status int }

func (e *statusError) Error() string {
	return fmt.Sprintf("it answered with status %d %s", e.status, http.StatusText(e.status))
}

var errNotJSON = errors.New("its answer is not the expected JSON")

// missing reports whether the server has no document at a well-known place, and not a problem of
// its own. Many web applications answer such a place with their page.
func missing(err error) bool { return refused(err) || errors.Is(err, errNotJSON) }

// refused reports whether the server answered that there is no such document.
func refused(err error) bool {
	answer, ok := errors.AsType[*statusError](err)
	return ok && answer.status >= 400 && answer.status < 500 && answer.status != http.StatusRequestTimeout && answer.status != http.StatusTooManyRequests
}

// wire sends the requests of a client.
type wire struct {
	transport http.RoundTripper
	local     bool // the MCP server is on this machine: plain HTTP to this machine is allowed
	nonces    dpop.Nonces
}

// newWire returns the wire of a client. If the program does not bring its own HTTP client
// and the MCP server has a public address, connections to addresses that are not public
// are refused unless trusted is set: a server must not make this machine send requests
// inside its own network (MCP, security best practices § SSRF).
func newWire(server *url.URL, own *http.Client, trusted bool) *wire {
	w := &wire{transport: http.DefaultTransport, local: hostnames.IsThisMachine(server.Hostname())}
	if own != nil {
		if own.Transport != nil {
			w.transport = own.Transport
		}
		return w
	}
	standard, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return w
	}
	t := standard.Clone()
	w.transport = t
	if !trusted && !w.local && (t.Proxy == nil || !proxied(t, server)) {
		t.DialContext = netguard.New(server.Hostname()).Dial
	}
	return w
}

// proxied reports whether a proxy connects to the server; it decides about addresses then.
func proxied(t *http.Transport, server *url.URL) bool {
	proxy, err := t.Proxy(&http.Request{URL: server})
	return err == nil && proxy != nil
}

// checkEndpoint returns an error if requests must not be sent to an address.
func (w *wire) checkEndpoint(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Host == "":
		return errors.New("is not a URL")
	case u.Scheme == "https", u.Scheme == "http" && w.local && hostnames.IsThisMachine(u.Hostname()):
		return nil
	}
	return fmt.Errorf("does not begin with https:// (%s)", redact.URI(address))
}

// document fetches a JSON document. It follows redirects to HTTPS.
func (w *wire) document(ctx context.Context, address string, to any) error {
	if err := w.checkEndpoint(address); err != nil {
		return fmt.Errorf("its address %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	client := &http.Client{Transport: w.transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if len(via) >= maxRedirects {
			return errors.New("it redirects too often")
		}
		if err := w.checkEndpoint(next.URL.String()); err != nil {
			return fmt.Errorf("it redirects to an address that %w", err)
		}
		return nil
	}}
	resp, err := client.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return &statusError{resp.StatusCode}
	}
	return decode(resp.Body, to)
}

// direct returns a client that follows no redirects, for requests with secrets.
func (w *wire) direct() *http.Client {
	return &http.Client{Transport: w.transport, Timeout: requestTimeout, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// close closes idle connections.
func (w *wire) close() {
	if t, ok := w.transport.(interface{ CloseIdleConnections() }); ok && w.transport != http.DefaultTransport {
		t.CloseIdleConnections()
	}
}

func decode(body io.Reader, to any) error {
	raw, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	switch {
	case err != nil:
		return err
	case len(raw) > maxBody:
		return fmt.Errorf("its answer has more than %d bytes", maxBody)
	case json.Unmarshal(raw, to) != nil:
		return errNotJSON
	}
	return nil
}

// withoutURL removes the URL from an error of net/http: it may hold a secret.
func withoutURL(err error) error {
	if sent, ok := errors.AsType[*url.Error](err); ok {
		return sent.Err
	}
	return err
}
