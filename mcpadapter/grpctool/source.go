// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker/telemetry"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// Source returns the source of a tool server that is reached over gRPC. The address is
// host:port, or another gRPC target such as unix:/run/tools.sock. Open reports errors
// in the address or the options.
func Source(address string, options *Options) ensemble.Source { return at(address, options) }

func at(address string, options *Options) *source {
	s := newSource(address, options.withDefaults(address))
	s.wrong = s.check()
	return s
}

// source opens connections to one server and remembers the service name that the server
// supports.
type source struct {
	target  string
	options Options
	own     map[string]string // additional metadata, not from the options
	secret  bool              // own contains a secret
	wrong   error             // errors in target or options
	peer    telemetry.Peer
	dial    func(context.Context, string) (net.Conn, error) // nil uses gRPC's dialer; set by tests

	mu    sync.Mutex
	known string // the service name of the last connection; may be empty
}

func newSource(target string, options Options) *source {
	s := &source{target: target, options: options, peer: serverAt(target)}
	s.peer.Ensemble = options.Server
	return s
}

// Open implements [ensemble.Source].
func (s *source) Open(ctx context.Context) (ensemble.Connection, error) {
	if s.wrong != nil {
		return nil, fmt.Errorf("server %q: %w", s.options.Server, s.wrong)
	}
	c, err := s.connect(ctx)
	if err != nil {
		through := ""
		if s.peer.Application != "" {
			through = " through the Dapr sidecar at " + s.target
		}
		return nil, fmt.Errorf("server %q: connecting%s: %w", s.options.Server, through, err)
	}
	return c, nil
}

// connect opens a connection and lists the tools, which shows that the server is
// reachable, accepts our credentials and supports the service.
func (s *source) connect(ctx context.Context) (*connection, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	transports := newTransports()
	conn, err := grpc.NewClient(s.target, append(s.dialOptions(), grpc.WithStatsHandler(transports))...)
	if err != nil {
		return nil, err
	}
	c := newConnection(s, conn, transports)
	c.peer.Ensemble = cmp.Or(telemetry.Ensemble(ctx), c.peer.Ensemble)
	var last error
	for _, name := range s.services() {
		c.service = name
		c.first, last = c.list(ctx)
		if last == nil {
			s.remember(name)
			c.work.Go(c.watch)
			return c, nil
		}
		if status.Code(last) != codes.Unimplemented {
			break
		}
	}
	_ = c.Close(ctx)
	return nil, explained(last)
}

// explained adds gRPC's error message to the message for the model.
func explained(err error) error {
	said := status.Convert(errors.Unwrap(err)).Message()
	if said == "" || strings.Contains(err.Error(), said) {
		return err
	}
	return fmt.Errorf("%w (%s)", err, textcut.Bytes(said, maxQuoted))
}

// dialOptions disable service configurations from resolvers and control planes: one of
// these could make gRPC send a call twice, and gRPC does not know which tools allow
// that. By itself, gRPC resends only requests that the server has certainly not
// processed (gRPC A6, § Transparent Retries).
func (s *source) dialOptions() []grpc.DialOption {
	o := &s.options
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(o.transport()),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
		grpc.WithIdleTimeout(0), // the ensemble handles idle connections
		grpc.WithUserAgent("consort"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(o.MaxMessage), grpc.MaxCallSendMsgSize(o.MaxMessage)),
	}
	if s.dial != nil {
		options = append(options, grpc.WithContextDialer(s.dial))
	}
	if o.KeepAlive > 0 {
		options = append(options, grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: o.KeepAlive, Timeout: 20 * time.Second}))
	}
	return options
}

func (o *Options) transport() credentials.TransportCredentials {
	if o.Plaintext {
		return insecure.NewCredentials()
	}
	config := o.TLS
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return credentials.NewTLS(config)
}

// services returns the service names to try, starting with the one that worked last.
func (s *source) services() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := s.options.services()
	if s.known != "" {
		names = slices.DeleteFunc(names, func(name string) bool { return name == s.known })
		names = slices.Insert(names, 0, s.known)
	}
	return names
}

func (s *source) remember(service string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = service
}
