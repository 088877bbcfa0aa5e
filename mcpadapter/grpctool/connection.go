// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// straggle bounds how long gRPC may take to close its sockets.
const straggle = 2 * time.Second

var (
	errClosed  = errors.New("the connection is closed")
	errEnded   = errors.New("the server ended the connection")
	errOutside = errors.New("sockets of the connection are still open")
)

// connection is one connection to a server: a gRPC channel. It may use several HTTP/2
// connections, one after the other, as long as calls are under way.
type connection struct {
	source     *source
	peer       telemetry.Peer
	conn       *grpc.ClientConn
	transports *transports
	service    string

	life context.Context // ends when the connection is lost
	end  context.CancelFunc
	work sync.WaitGroup

	mu       sync.Mutex
	first    *toolspb.ListToolsResponse // the tools listed while connecting; nil once used
	calls    int
	shaken   bool // the first HTTP/2 connection was lost or is being drained
	isLost   bool
	lostErr  error
	lost     chan struct{}
	changed  chan struct{}
	closing  sync.Once
	closeErr error
}

var (
	_ ensemble.Connection = (*connection)(nil)
	_ ensemble.Pinger     = (*connection)(nil)
)

func newConnection(s *source, conn *grpc.ClientConn, transports *transports) *connection {
	c := &connection{source: s, peer: s.peer, conn: conn, transports: transports, lost: make(chan struct{}), changed: make(chan struct{}, 1)}
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// enter begins a request; the caller must call leave when it ends.
func (c *connection) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isLost {
		return errClosed
	}
	c.calls++
	return nil
}

func (c *connection) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls--
	c.settle()
}

// watch follows the state of the HTTP/2 connection. A connection that the server drains
// (GOAWAY) still answers the calls under way. Meanwhile gRPC opens another one for new
// calls. This connection is lost when no call is under way.
func (c *connection) watch() {
	for {
		state := c.conn.GetState()
		switch state {
		case connectivity.Ready:
			c.steady()
		case connectivity.Connecting:
		default:
			c.shake()
			c.conn.Connect()
		}
		if !c.conn.WaitForStateChange(c.life, state) {
			return
		}
		if state == connectivity.Ready {
			c.shake()
		}
	}
}

func (c *connection) shake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shaken = true
	c.settle()
}

// steady signals on changed that the tools may have changed if this is not the first
// HTTP/2 connection: a new one may lead to another copy of the server.
func (c *connection) steady() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shaken {
		select {
		case c.changed <- struct{}{}:
		default:
		}
	}
}

// settle ends the connection if it was shaken and no call is under way. The caller must
// hold c.mu.
func (c *connection) settle() {
	if c.shaken && c.calls == 0 {
		c.lose(errEnded)
	}
}

// lose ends the connection; cause is nil if it was closed on request. The caller must
// hold c.mu.
func (c *connection) lose(cause error) {
	if c.isLost {
		return
	}
	c.isLost, c.lostErr = true, cause
	close(c.lost)
	c.end()
}

// Changed implements [ensemble.Connection].
func (c *connection) Changed() <-chan struct{} { return c.changed }

// Lost implements [ensemble.Connection].
func (c *connection) Lost() <-chan struct{} { return c.lost }

// Err implements [ensemble.Connection].
func (c *connection) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lostErr == nil {
		return nil
	}
	return fmt.Errorf("server %q: %w", c.source.options.Server, c.lostErr)
}

// Peer implements [ensemble.Connection].
func (c *connection) Peer() ensemble.Peer {
	name, _, _ := strings.Cut(c.service, ".McpToolService")
	return ensemble.Peer{Name: c.source.options.Server, Protocol: "gRPC " + name}
}

// Ping implements [ensemble.Pinger] with the standard health service. The server need
// not have that service, and may ask for the token, which is not sent: any response
// shows that the server is alive.
func (c *connection) Ping(ctx context.Context) error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.leave()
	ctx = metadata.NewOutgoingContext(ctx, c.source.standing())
	_, err := healthpb.NewHealthClient(c.conn).Check(ctx, &healthpb.HealthCheckRequest{})
	switch status.Code(err) {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded:
		return err
	}
	return nil
}

// Close implements [ensemble.Connection]. It ignores ctx because gRPC notifies the
// server and closes quickly.
func (c *connection) Close(context.Context) error {
	c.closing.Do(func() {
		c.mu.Lock()
		c.lose(nil)
		c.mu.Unlock()
		err := c.conn.Close()
		c.work.Wait()
		select {
		case <-c.transports.gone():
		case <-time.After(straggle):
			err = errors.Join(err, errOutside)
		}
		if err != nil {
			c.closeErr = fmt.Errorf("server %q: %w", c.source.options.Server, err)
		}
	})
	return c.closeErr
}
