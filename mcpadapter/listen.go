// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"time"

	"github.com/consort-go/consort/internal/sse"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// The pause before a stream is opened again: the first one, and the longest. The pause
// doubles after each stream that ended at once.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// maxRefused is how many attempts in a row may fail to connect, or may be refused, before the
// server, and the session that it kept, count as gone.
const maxRefused = 3

// streamWait bounds how long connecting waits until the server can send messages on its
// own. A server may delay its answer until it has a message.
const streamWait = 2 * time.Second

// waitFor waits for heard, for streamWait, or until ctx ends.
func waitFor(ctx context.Context, heard <-chan struct{}) {
	select {
	case <-heard:
	case <-time.After(streamWait):
	case <-ctx.Done():
	}
}

// errNoStream says that the server did not answer a GET with a stream.
var errNoStream = errors.New("the server offers no stream to listen to")

// listen keeps the standalone stream of a server of the older protocols open (MCP
// 2025-11-25, basic/transports § Listening for Messages from the Server) until the
// connection stops. A server need not offer one. tried is called when it is known
// whether it does; missed when messages may have been lost, because the stream was
// opened again or was first opened after late. failIdle ends the connection, unless requests
// wait for their answers, and reports whether it did.
func (c *httpConnection) listen(late time.Time, tried, missed func(), failIdle func(error) bool) {
	defer tried()
	wait, unreachable, refused, opened, lastID := firstRetry, 0, 0, false, ""
	for {
		began := time.Now()
		resp, err := c.openStream(lastID)
		tried()
		if err != nil {
			if unreachable++; !nobodyThere(err) {
				unreachable = 0
			}
			if refused++; !refusesStream(err) {
				refused = 0
			}
			if c.gaveUp(err, unreachable, opened) {
				return
			}
			if lastID != "" && refused >= maxRefused && failIdle(errors.New("the server refuses to continue its stream: "+cleaned(err).Error())) {
				return
			}
			wait = min(2*wait, lastRetry)
		} else {
			if opened || time.Now().After(late) {
				missed()
			}
			opened, unreachable, refused = true, 0, 0
			var retry time.Duration
			lastID, retry = c.follow(resp, lastID)
			wait = nextWait(wait, retry, time.Since(began))
		}
		if !paused(c.ctx, wait) {
			return
		}
	}
}

// nextWait returns the pause after a stream that lasted for lived: the one that the
// server asked for, but at least firstRetry, or an increasing one if streams keep ending at
// once.
func nextWait(last, asked, lived time.Duration) time.Duration {
	switch {
	case asked > 0:
		return min(max(asked, firstRetry), lastRetry)
	case lived > time.Second:
		return firstRetry
	}
	return min(2*last, lastRetry)
}

// gaveUp reports whether to stop trying to open the stream, which was opened before or not.
// If the connection has ended, it makes Read fail first. Status 405 says that the server offers
// no stream (MCP 2025-11-25, basic/transports § Listening for Messages from the Server). Others
// say so before a stream was opened; later, the server may not have noticed the end of the last one.
func (c *httpConnection) gaveUp(err error, unreachable int, opened bool) bool {
	var status *statusError
	switch {
	case c.ctx.Err() != nil, errors.Is(err, errNoStream) && !opened:
		return true
	case errors.Is(err, errSessionGone):
		c.fail(err)
		return true
	case errors.As(err, &status):
		return status.status == http.StatusMethodNotAllowed || refusesToTell(err) && !opened
	case unreachable >= maxRefused:
		c.fail(fmt.Errorf("the connection is closing: %w", cleaned(err)))
		return true
	}
	return false
}

// refusesStream reports whether err may be a refusal for good. A server that has dropped the event
// of the Last-Event-ID refuses it each time: the SDK for Go answers 400, those for TypeScript and
// Python answer 500. The ID is never left out: the SDK for Go would send all requests of the session
// again that it still has. Statuses 401 and 403 refuse the token, and 409 a second stream. Without
// an ID, a refusal does not end the connection: servers of the SDK for C# allow one stream in a session.
func refusesStream(err error) bool {
	var status *statusError
	return errors.As(err, &status) && !status.unauthorized() && status.status != http.StatusConflict &&
		(status.status == http.StatusInternalServerError || refusesToTell(err))
}

func (c *httpConnection) openStream(lastID string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(c.ctx, http.MethodGet, c.roundTripper.origin.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if id := c.SessionID(); id != "" {
		req.Header.Set("Mcp-Session-Id", id)
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := c.roundTripper.client().Do(req)
	if err != nil {
		return nil, err
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		resp.Body.Close()
		return nil, errNoStream
	}
	return resp, nil
}

// follow passes on the messages of one stream until it ends. It drops answers, which a server
// must not send on it (MCP 2025-11-25, basic/transports § Listening for Messages from the
// Server): an answer to an earlier connection could be taken for the answer to a call of this
// one, because the IDs of each connection begin anew.
func (c *httpConnection) follow(resp *http.Response, lastID string) (string, time.Duration) {
	defer resp.Body.Close()
	events := sse.NewReader(resp.Body, c.roundTripper.limit)
	var retry time.Duration
	for {
		e, err := events.Next()
		if errors.Is(err, sse.ErrTooLarge) {
			c.fail(&tooLargeError{c.roundTripper.limit})
		}
		if err != nil {
			return lastID, retry
		}
		var message jsonrpc.Message
		if len(e.Data) > 0 && (e.Name == "" || e.Name == "message") {
			message, err = jsonrpc.DecodeMessage(e.Data)
		}
		if e.IsPartial && (err != nil || message == nil) {
			return lastID, retry // the event is requested again, by the ID before it
		}
		if e.ID != "" {
			lastID = e.ID
		}
		if e.Retry > 0 {
			retry = e.Retry
		}
		if err == nil && message == nil {
			continue
		}
		if err != nil {
			c.fail(&protocolError{what: "an event on its stream is not a JSON-RPC message"})
			return lastID, retry
		}
		if _, isAnswer := message.(*jsonrpc.Response); isAnswer {
			continue
		}
		if !c.pass(message) {
			return lastID, retry
		}
	}
}

// paused waits for d; it returns false if ctx ended first.
func paused(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
