// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Roots are deprecated (SEP-2577), and clients have them still.

package mcpadapter

import (
	"context"
	"errors"

	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ClientRoots returns the places that the client of a [Server] says it works on
// (MCP 2025-11-25, client/roots). ctx is that of the function of a tool, or of a
// prompt, which runs for the client. The client is asked, and the time limits of
// the call stand still meanwhile. The error is an [invoker.Failure]: Unavailable
// if the client has no roots to tell, as there is no client outside of a server.
func ClientRoots(ctx context.Context) ([]Root, error) {
	ask := rootsAsker(ctx)
	if ask == nil {
		return nil, &invoker.Failure{Code: invoker.Unavailable, Message: "The tool needs the roots of the client, which tells none.", Cause: errNoRoots}
	}
	defer invoker.CallFrom(ctx).Hold()()
	return rootsFrom(ctx, ask)
}

// rootsFrom asks for roots.
func rootsFrom(ctx context.Context, ask asker) ([]Root, error) {
	answer, err := ask(ctx, "", &mcp.ListRootsParams{})
	if err != nil {
		return nil, err
	}
	result, ok := answer.(*mcp.ListRootsResult)
	if !ok {
		return nil, invoker.Failf(invoker.Protocol, "The client was asked for its roots and answered something else.")
	}
	var roots []Root
	for _, r := range result.Roots {
		if r != nil {
			roots = append(roots, Root{URI: r.URI, Name: r.Name})
		}
	}
	return roots, nil
}

var errNoRoots = errors.New("the client tells no roots")

type rootsKey struct{}

// rootsAsker returns what asks the client that ctx works for; nil if it tells no roots.
func rootsAsker(ctx context.Context) asker {
	ask, _ := ctx.Value(rootsKey{}).(asker)
	return ask
}

func withRoots(ctx context.Context, ask asker) context.Context {
	return context.WithValue(ctx, rootsKey{}, ask)
}

func hasRoots(caps *mcp.ClientCapabilities) bool {
	return caps.RootsV2 != nil || caps.Roots.ListChanged
}
