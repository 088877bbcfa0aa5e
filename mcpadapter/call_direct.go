// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// firstDirect is the ID of the first request that the SDK does not send. The SDK counts its
// own from 1.
const firstDirect = 1 << 30

// send calls a tool. To a process it sends the request itself, because the SDK needs another
// goroutine, and more memory than everything else in a call. Only if the server answers that
// it needs another round (SEP-2322), it leaves the rest of the call to the SDK.
func (c *connection) send(ctx context.Context, x *exchange, params *mcp.CallToolParams) error {
	if _, isProcess := c.link.(*stdioLink); isProcess {
		if err := c.sendDirectly(ctx, x, params); err != nil || x.first == nil {
			return err
		}
		x.returned = nil
	}
	return c.requests.request(ctx, x, func(ctx context.Context) error {
		_, err := c.session.CallTool(ctx, params)
		return err
	})
}

// sendDirectly calls a tool without the SDK.
func (c *connection) sendDirectly(ctx context.Context, x *exchange, params *mcp.CallToolParams) error {
	text, err := c.encodeCall(params)
	if err != nil {
		return err
	}
	if !c.life.enter() {
		return errClosed
	}
	defer c.life.leave()
	sending, cancel := context.WithCancel(withExchange(ctx, x))
	defer cancel()
	defer context.AfterFunc(c.life.ctx, cancel)()
	id, _ := jsonrpc.MakeID(float64(firstDirect + c.serial.Add(1))) // a number is an ID
	x.returned = make(chan error, 2)                                // of the answer, and of sending it
	if err := c.interceptor.Write(sending, &jsonrpc.Request{ID: id, Method: "tools/call", Params: text}); err != nil {
		x.returned <- err
	}
	err = c.requests.await(ctx, x, x.returned)
	if ctx.Err() != nil && err == ctx.Err() && x.left.Load() {
		c.life.start(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wire.EndTimeout)
			defer cancel()
			c.interceptor.cancel(ctx, id, err.Error())
		})
	}
	return err
}

// encodeCall encodes the parameters of tools/call, with _meta first.
func (c *connection) encodeCall(params *mcp.CallToolParams) (json.RawMessage, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	meta := params.Meta
	if c.modern { // each request describes the client (SEP-2575)
		meta = maps.Clone(meta)
		for name, value := range c.requestMeta {
			if _, own := meta[name]; !own {
				meta[name] = value
			}
		}
	}
	err := encoder.Encode(struct {
		Meta      map[string]any `json:"_meta,omitempty"`
		Name      string         `json:"name"`
		Arguments any            `json:"arguments"`
	}{meta, params.Name, params.Arguments})
	return slices.Clip(bytes.TrimSpace(b.Bytes())), err
}
