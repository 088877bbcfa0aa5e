// SPDX-License-Identifier: Apache-2.0

// Package handshake has the first request of the protocols before 2026-07-28.
package handshake

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Initialize returns the initialize request that a client sends for a version, under an ID
// that the SDK does not use.
func Initialize(ctx context.Context, client *mcp.Client, version string) (*jsonrpc.Request, error) {
	r := &recorder{over: make(chan struct{})}
	_, err := client.Connect(ctx, r, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if r.first == nil {
		return nil, err
	}
	id, err := jsonrpc.MakeID("consort-initialize")
	return &jsonrpc.Request{ID: id, Method: r.first.Method, Params: r.first.Params}, err
}

// recorder is a transport that records the first request and sends nothing.
type recorder struct {
	first *jsonrpc.Request
	once  sync.Once
	over  chan struct{}
}

func (r *recorder) Connect(context.Context) (mcp.Connection, error) { return r, nil }
func (r *recorder) SessionID() string                               { return "" }

func (r *recorder) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case <-r.over:
	case <-ctx.Done():
	}
	return nil, io.EOF
}

func (r *recorder) Write(_ context.Context, message jsonrpc.Message) error {
	if request, ok := message.(*jsonrpc.Request); ok && r.first == nil {
		r.first = request
	}
	return errors.New("recorded")
}

func (r *recorder) Close() error {
	r.once.Do(func() { close(r.over) })
	return nil
}
