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
		refusal, err := c.subscription(serial)
		c.answered()
		if c.life.Err() != nil {
			return
		}
		if refusal != nil || refusesToTell(err) {
			c.log.Warn("the server does not tell of changes of its tools", zap.Error(cleaned(err)))
			return
		}
		wait = nextWait(wait, 0, time.Since(began))
		if !paused(c.life, wait) {
			return
		}
	}
}

// subscription makes one request to listen and returns when it is over; a
// refusal is the server's own.
func (c *connection) subscription(serial int) (refusal *jsonrpc.Error, err error) {
	ctx, cancel := context.WithCancel(c.life)
	defer cancel()
	x := new(exchange)
	defer c.wire.forget(x)
	c.subscriptions.Store(int64(serial))
	err = c.ask(ctx, x, fmt.Sprintf("listen-%d", serial), "subscriptions/listen", map[string]any{
		"notifications": map[string]bool{"toolsListChanged": true},
	})
	return x.refusal(), err
}

// refusesToTell reports whether asking again would bring the same status.
func refusesToTell(err error) bool {
	var status *statusError
	return errors.As(err, &status) && status.refused() && !status.transient()
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
