// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/consort-go/consort/ensemble"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

var _ ensemble.Pinger = (*connection)(nil)

// Ping implements [ensemble.Pinger] with the protocol's ping (MCP 2025-11-25,
// basic/utilities/ping). Protocol 2026-07-28 has no ping; there it uses server/discover
// (SEP-2575), which costs the server as little. Pings have no spans: there are many,
// and their result is visible as the state of the ensemble.
func (c *connection) Ping(ctx context.Context) error {
	x := &exchange{quiet: true}
	err := c.requests.request(ctx, x, func(ctx context.Context) error {
		if c.modern {
			return c.ask(ctx, x, fmt.Sprintf("ping-%d", c.serial.Add(1)), "server/discover", nil)
		}
		return c.session.Ping(ctx, nil)
	})
	switch {
	case err == nil, x.answer.Load() != nil:
		return nil
	case c.interceptor.forgotten(err):
		err = fmt.Errorf("%w: %w", errSessionGone, cleaned(err))
		c.interceptor.fail(err)
	case answeredAtAll(err):
		return nil
	}
	return fmt.Errorf("ping: %w", c.requests.because(cleaned(err)))
}

// forgotten reports whether an error says that the server no longer knows the session. It does so
// if it is the answer to a ping, which a server must accept; a call may have been refused for
// another reason. Such a server should answer 404 (MCP 2025-11-25, basic/transports § Session
// Management), but many answer 400, as if the request had no session ID. If the token has changed,
// the session may belong to the former user, and a server may answer 403.
func (i *interceptor) forgotten(err error) bool {
	over, ok := i.link.(*httpLink)
	inURL := ok && over.roundTripper.apart // with SSE, the URL for messages has the session
	var status *statusError
	return (inURL || i.SessionID() != "") && refusesToTell(err) && errors.As(err, &status) &&
		(!status.unauthorized() || status.status == http.StatusForbidden && status.otherToken)
}

// checkSession pings the server, which ends the connection if the session is forgotten.
func (c *connection) checkSession() {
	ctx, cancel := context.WithTimeout(c.life.ctx, defaultProbe)
	defer cancel()
	_ = c.Ping(ctx)
}

// answeredAtAll reports whether an error is an answer of the server over HTTP, and not
// a gateway's answer that the server is unreachable (RFC 9110, § 15.6.3, § 15.6.5).
func answeredAtAll(err error) bool {
	var status *statusError
	var broken *protocolError
	return errors.As(err, &broken) || errors.As(err, &status) && status.status != http.StatusBadGateway && status.status != http.StatusGatewayTimeout
}

// ask sends a request of the newest protocol that the SDK cannot send. It returns when
// the request is answered, or when ctx or the connection ends.
func (c *connection) ask(ctx context.Context, x *exchange, name, method string, params map[string]any) error {
	id, err := jsonrpc.MakeID(name)
	if err != nil {
		return err
	}
	full := map[string]any{"_meta": c.requestMeta}
	for member, value := range params {
		full[member] = value
	}
	text, err := json.Marshal(full)
	if err != nil {
		return err
	}
	over := make(chan error, 1)
	x.answered = func(_ string, response *jsonrpc.Response) { over <- response.Error }
	if err := c.interceptor.Write(withExchange(ctx, x), &jsonrpc.Request{ID: id, Method: method, Params: text}); err != nil {
		return err
	}
	select {
	case err := <-over:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-c.life.ctx.Done():
		return errClosed
	}
}
