// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"context"
	"io"
	"net"
	"sync"
)

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// shareBuffers makes the connections of dial share the buffers through which net/http sends
// bodies. Otherwise it allocates one for each request, which costs more than the rest of a
// request.
func shareBuffers(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &sharingConn{c}, nil
	}
}

type sharingConn struct{ net.Conn }

// bodyBuffer is as large as the buffer that net/http would allocate.
type bodyBuffer [32 << 10]byte

// bodyBuffers has buffers that no connection uses at the moment.
var bodyBuffers = sync.Pool{New: func() any { return new(bodyBuffer) }}

// ReadFrom implements [io.ReaderFrom].
func (c *sharingConn) ReadFrom(r io.Reader) (int64, error) {
	buffer := bodyBuffers.Get().(*bodyBuffer)
	defer bodyBuffers.Put(buffer)
	return io.CopyBuffer(struct{ io.Writer }{c.Conn}, r, buffer[:]) // without the ReadFrom of the connection
}
