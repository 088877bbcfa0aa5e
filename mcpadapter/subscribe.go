// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
)

// subscribe keeps a subscription for changes of the tools (MCP 2026-07-28,
// SEP-2575, subscriptions/listen) for as long as the connection lives. The SDK
// would ask once, and never again after the stream was cut.
func (c *connection) subscribe() {
	wait := firstRetry
	for serial := 1; ; serial++ {
		began := time.Now()
		err := c.subscription(serial)
		if c.life.Err() != nil {
			return
		}
		if refusesToTell(err) {
			c.log.Warn("the server does not tell of changes of its tools", zap.Error(cleaned(err)))
			return
		}
		wait = nextWait(wait, 0, time.Since(began))
		if !paused(c.life, wait) {
			return
		}
	}
}

// subscription makes one request to listen and returns when its answer says
// that it is over.
func (c *connection) subscription(serial int) error {
	params, err := json.Marshal(map[string]any{
		"_meta":         c.requestMeta,
		"notifications": map[string]bool{"toolsListChanged": true},
	})
	if err != nil {
		return err
	}
	id, err := jsonrpc.MakeID(fmt.Sprintf("listen-%d", serial))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(c.life)
	defer cancel()
	over := make(chan error, 1)
	x := &exchange{answer: func(_ string, response *jsonrpc.Response) { over <- response.Error }}
	c.subscriptions.Store(int64(serial))
	if err := c.wire.Write(withExchange(ctx, x), &jsonrpc.Request{ID: id, Method: "subscriptions/listen", Params: params}); err != nil {
		c.wire.forget("", x)
		return err
	}
	select {
	case err = <-over:
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.wire.forget("", x)
	return err
}

// refusesToTell reports whether asking again would bring the same answer.
func refusesToTell(err error) bool {
	var rpc *jsonrpc.Error
	var status *statusError
	switch {
	case errors.As(err, &rpc):
		return true
	case errors.As(err, &status):
		return status.refused() && !status.transient()
	}
	return false
}

// metaOf is what each request of the new protocol carries: the version, and
// who we are and what we can do, which the SDK has just told the server.
func metaOf(discover *jsonrpc.Request) map[string]json.RawMessage {
	var params struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(discover.Params, &params) != nil {
		return nil
	}
	return params.Meta
}

// speak sets the version that was agreed upon.
func (c *connection) speak(version string) {
	if c.requestMeta != nil {
		text, _ := json.Marshal(version) // a string
		c.requestMeta[mcp.MetaKeyProtocolVersion] = text
	}
}
