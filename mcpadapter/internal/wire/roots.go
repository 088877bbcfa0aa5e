// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Older protocols are supported too, with features that the newest one deprecates.

package wire

import (
	"context"

	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Asker sends a question to the client and waits for the answer. The key is the one the
// tool chose for the question; empty if it has none.
type Asker func(ctx context.Context, key string, question mcp.InputRequest) (mcp.InputResponse, error)

// AskRoots asks the client for its roots, without their _meta.
func AskRoots(ctx context.Context, ask Asker) ([]*mcp.Root, error) {
	answer, err := ask(ctx, "", &mcp.ListRootsParams{})
	if err != nil {
		return nil, err
	}
	result, ok := answer.(*mcp.ListRootsResult)
	if !ok {
		return nil, invoker.Failf(invoker.Protocol, "The client was asked for its roots and answered something else.")
	}
	roots := []*mcp.Root{}
	for _, r := range result.Roots {
		if r != nil {
			roots = append(roots, &mcp.Root{URI: r.URI, Name: r.Name})
		}
	}
	return roots, nil
}

type rootsKey struct{}

// RootsAsker returns the asker for the client that ctx works for; nil if the client has
// no roots capability.
func RootsAsker(ctx context.Context) Asker {
	ask, _ := ctx.Value(rootsKey{}).(Asker)
	return ask
}

// WithRoots gives ctx an asker for the client that it works for.
func WithRoots(ctx context.Context, ask Asker) context.Context {
	return context.WithValue(ctx, rootsKey{}, ask)
}
