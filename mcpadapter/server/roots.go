// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Roots are deprecated (SEP-2577), but clients still have them.

package server

import (
	"context"
	"errors"

	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ClientRoots returns the roots that the client of a [Server] declares (MCP 2025-11-25,
// client/roots). ctx must be the context of a tool or prompt function that runs for the
// client. ClientRoots asks the client, and the time limits of the call are suspended
// meanwhile. The error is an [invoker.Failure]: Unavailable if the client has no roots
// capability, or if ctx does not belong to a server's call.
func ClientRoots(ctx context.Context) ([]mcpadapter.Root, error) {
	ask := wire.RootsAsker(ctx)
	if ask == nil {
		return nil, &invoker.Failure{Code: invoker.Unavailable, Message: "The tool needs the roots of the client, which provides none.", Cause: errNoRoots}
	}
	defer invoker.CallFrom(ctx).Hold()()
	declared, err := wire.AskRoots(ctx, ask)
	if err != nil {
		return nil, err
	}
	var roots []mcpadapter.Root
	for _, r := range declared {
		roots = append(roots, mcpadapter.Root{URI: r.URI, Name: r.Name})
	}
	return roots, nil
}

var errNoRoots = errors.New("the client provides no roots")

func hasRoots(caps *mcp.ClientCapabilities) bool {
	return caps.RootsV2 != nil || caps.Roots.ListChanged
}
