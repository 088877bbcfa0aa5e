// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"

	"github.com/consort-go/consort/ensemble"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Link is one fresh connection over a transport of somebody else's (MCP
// 2025-11-25, basic/transports § Custom Transports). The SDK connects over it
// once. What it reads ends with an error that says why, io.EOF for an end in
// order; Read and Write return soon after their context ends, or the link does.
type Link interface {
	mcp.Transport
	// Close ends the link, politely until ctx ends, and then in any case. When it
	// returns nothing is left of it. It may be called again, and concurrently.
	Close(ctx context.Context) error
}

// Over returns an MCP server that is reached over a transport of somebody
// else's. Dial makes a fresh link, which outlives ctx; it returns soon after ctx
// ends. It is for the link to keep messages below ClientOptions.MaxMessage.
func Over(dial func(ctx context.Context) (Link, error), options *ClientOptions) ensemble.Source {
	s := &source{options: options.withDefaults("server")}
	s.pinned = s.options.Protocol
	s.dial = func(ctx context.Context) (link, error) {
		l, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		return overLink{l}, nil
	}
	return s
}

// overLink leaves the noticing of its end to Read.
type overLink struct{ Link }

func (overLink) lost() <-chan struct{}             { return nil }
func (overLink) err() error                        { return nil }
func (l overLink) close(ctx context.Context) error { return l.Close(ctx) }

func (l overLink) kill() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = l.Close(ended)
}
