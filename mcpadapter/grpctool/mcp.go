// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"cmp"
	"context"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/mcpadapter"
)

// MCP returns the source of an MCP server that is reached over gRPC, with all features
// of MCP; see [DialMCP] for the stream, and package mcpadapter for the rest. The
// server's name and its logger are taken from options if client does not set them. The
// message limit of the stream is the one in options, or else the one in client. Both
// may be nil.
func MCP(address string, options *Options, client *mcpadapter.ClientOptions) ensemble.Source {
	return overStream(address, options, client, func(o *Options) *source { return at(address, o) })
}

// overStream returns an MCP source that uses the stream of a gRPC source.
func overStream(name string, options *Options, client *mcpadapter.ClientOptions, from func(*Options) *source) ensemble.Source {
	var o Options
	if options != nil {
		o = *options
	}
	var c mcpadapter.ClientOptions
	if client != nil {
		c = *client
	}
	c.Server = cmp.Or(c.Server, o.Server, name)
	c.Logger = cmp.Or(c.Logger, o.Logger)
	o.MaxMessage = cmp.Or(o.MaxMessage, c.MaxMessage)
	s := from(&o)
	return mcpadapter.Custom(func(ctx context.Context) (mcpadapter.Link, error) {
		link, err := s.stream(ctx)
		if err != nil {
			return nil, err
		}
		return link, nil
	}, &c)
}
