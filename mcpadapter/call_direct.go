// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"

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
func (c *connection) send(ctx context.Context, x *exchange, tool string) error {
	meta := ownMeta(c.options, c.modern, x)
	if _, isProcess := c.link.(*stdioLink); isProcess {
		if err := c.sendDirectly(ctx, x, tool, meta); err != nil || x.first == nil {
			return err
		}
		x.returned = nil
	}
	// The SDK writes into Meta, so each call needs its own map.
	params := &mcp.CallToolParams{Name: tool, Arguments: x.call.Arguments, Meta: mcp.Meta{}}
	for _, member := range meta {
		params.Meta[member.Name] = cmp.Or(member.Value, any(member.Text))
	}
	return c.requests.request(ctx, x, func(ctx context.Context) error {
		_, err := c.session.CallTool(ctx, params)
		return err
	})
}

// sendDirectly calls a tool without the SDK.
func (c *connection) sendDirectly(ctx context.Context, x *exchange, tool string, meta []wire.MetaMember) error {
	text, err := wire.EncodeCall(tool, x.call.Arguments, meta, c.callMeta)
	if err != nil {
		return err
	}
	sending, cancel := context.WithCancel(withExchange(ctx, x))
	defer cancel()
	defer context.AfterFunc(c.life.ctx, cancel)()
	id, _ := jsonrpc.MakeID(float64(firstDirect + c.serial.Add(1))) // a number is an ID
	x.returned = make(chan error, 2)                                // of the answer, and of sending it
	err = c.life.during(func() error {                              // not the rest of the call, which its listeners may delay
		return c.interceptor.Write(sending, &jsonrpc.Request{ID: id, Method: "tools/call", Params: text})
	})
	if err != nil {
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

// callMetaOf returns the members of _meta that are the same in all calls: in the newest
// protocol, each request describes the client (SEP-2575).
func callMetaOf(requestMeta map[string]json.RawMessage, sampleCalls bool) []byte {
	shared := maps.Clone(requestMeta)
	if sampleCalls {
		delete(shared, mcp.MetaKeyClientCapabilities) // depend on the call
	}
	text, err := json.Marshal(shared)
	if err != nil || len(shared) == 0 {
		return nil // cannot fail: the SDK has encoded it
	}
	return text[1 : len(text)-1]
}
