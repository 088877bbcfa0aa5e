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

// straggle bounds how long gRPC may take to let go of its sockets.
const straggle = 2 * time.Second

var (
	errClosed  = errors.New("the connection is closed")
	errEnded   = errors.New("the server ended the connection")
	errOutside = errors.New("sockets of the connection are still open")
)

// connection is one life of a server: a channel of gRPC, which may go through
// several HTTP/2 connections as long as there are calls on it.
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
	first    *toolspb.ListToolsResponse // what connecting listed; nil once it was used
	calls    int
	shaken   bool // the HTTP/2 connection is not, or not only, the first one
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

// enter begins a request; leave ends it.
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

// watch notices what becomes of the HTTP/2 connection. One that the server
// winds up (GOAWAY) answers what is under way: gRPC makes another for new calls,
// and this connection is lost when there is no call on it.
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

// steady says that the tools may be others if there is another HTTP/2
// connection: it may lead to another copy of the server.
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

// settle ends the connection if it was shaken and is quiet. c.mu is held.
func (c *connection) settle() {
	if c.shaken && c.calls == 0 {
		c.lose(errEnded)
	}
}

// lose ends the connection, nil for on request. c.mu is held.
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

// Ping implements [ensemble.Pinger] by the standard health service. Whether
// the server has one does not matter, nor whether it wants a token, which is not
// sent: any answer is a sign of life.
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

// Close implements [ensemble.Connection]. gRPC tells the server and is brief
// about it, so that ctx has nothing to shorten.
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
