// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/consort-go/consort/internal/hostnames"
	"github.com/consort-go/consort/internal/listening"
	"github.com/consort-go/consort/internal/logevent"
	"go.uber.org/zap"
)

// ListenAndServe serves streamable HTTP at an address, such as "127.0.0.1:8080", until
// ctx ends, like [Server.ServeListener].
func (s *Server) ListenAndServe(ctx context.Context, address string) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return s.ServeListener(ctx, listener)
}

// ServeListener serves streamable HTTP at /mcp and, with Options.Profile, at /mcp/NAME, and
// Options.Others at other paths, with time limits for slow clients, until ctx ends. It then closes the server: new calls are refused, and calls under way
// have Options.ShutdownTimeout to finish. It returns nil if they all finished.
// Otherwise the error says what did not end, or what went wrong with the listener. The
// listener is closed in any case.
func (s *Server) ServeListener(ctx context.Context, listener net.Listener) error {
	o := &s.options
	if !s.auth.Load().isRequired() && !hostnames.IsLoopback(hostnames.WithoutPort(listener.Addr().String())) {
		s.log.Warn("the server is open: anyone who can reach it may call its tools", logevent.ServeExposed, zap.Stringer("address", listener.Addr()))
	}
	web := listening.NewServer(listener, s.mux(), listening.Options{
		Limits:   listening.Limits{Connections: o.MaxConnections, PerAddress: o.MaxConnectionsPerAddress, Full: s.full},
		TLS:      o.TLS,
		ErrorLog: zap.NewStdLog(s.refusals),
	})
	failed := make(chan error, 1)
	go func() { failed <- web.Serve() }()
	var err error
	select {
	case <-ctx.Done():
	case <-s.life.Done(): // Close was called
	case err = <-failed:
		failed <- err
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.ShutdownTimeout)
	defer cancel()
	closeErr := s.Close(bound)
	web.Shutdown(bound)
	<-failed
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, closeErr)
}

// profileValue is the part of the path /mcp/NAME that names a profile.
const profileValue = "mcp_profile"

const notServed = "not found; MCP is served at /mcp"

// mux routes the paths of the server to its handler.
func (s *Server) mux() http.Handler {
	handler, mux := s.Handler(), http.NewServeMux()
	mux.Handle("/mcp", handler)
	mux.Handle("/mcp/{"+profileValue+"}", handler)
	mux.Handle(wellKnown, handler)
	mux.Handle(wellKnown+"/", handler)
	if s.options.Others != nil {
		mux.Handle("/", s.options.Others)
		return mux
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		listening.Refuse(w, r, http.StatusNotFound, notServed)
	})
	return mux
}

// full logs that connections were closed because a limit was reached.
func (s *Server) full(closed int, address string) {
	s.log.Warn("too many connections: those without a running request are closed", logevent.ServeFull, zap.Int("closed", closed), zap.String("from", address))
}
