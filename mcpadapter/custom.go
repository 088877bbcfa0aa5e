// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"

	"github.com/consort-go/consort/ensemble"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Link is one new connection over a custom transport (MCP 2025-11-25, basic/transports
// § Custom Transports). The SDK connects over it once. When the link has ended, Read
// returns the reason, or io.EOF after an orderly end. Read and Write return soon after
// their context or the link ends.
type Link interface {
	mcp.Transport
	// Close ends the link: gracefully until ctx ends, and then forcibly. When it
	// returns, nothing of the link is left. It may be called repeatedly and
	// concurrently.
	Close(ctx context.Context) error
}

// Custom returns the source of an MCP server that is reached over a custom transport.
// dial makes a new link, which outlives ctx, and returns soon after ctx ends. The link
// must keep messages below ClientOptions.MaxMessage.
func Custom(dial func(ctx context.Context) (Link, error), options *ClientOptions) ensemble.Source {
	s := &source{options: options.withDefaults("server")}
	s.pinned = s.options.Protocol
	s.dial = func(ctx context.Context) (link, error) {
		l, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		return customLink{l}, nil
	}
	return s
}

// customLink leaves it to Read to notice the end of the link.
type customLink struct{ Link }

func (customLink) lost() <-chan struct{}             { return nil }
func (customLink) err() error                        { return nil }
func (l customLink) close(ctx context.Context) error { return l.Close(ctx) }

func (l customLink) kill() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = l.Close(ended)
}
