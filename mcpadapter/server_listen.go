// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/consort-go/consort/internal/event"
	"go.uber.org/zap"
)

// ListenAndServe serves over streamable HTTP at an address, such as
// "127.0.0.1:8080", until ctx ends, as [Server.ServeListener] does.
func (s *Server) ListenAndServe(ctx context.Context, address string) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return s.ServeListener(ctx, listener)
}

// ServeListener serves over streamable HTTP at /mcp, with time limits for slow
// clients, until ctx ends. Then it closes the server: calls under way have
// ServerOptions.ShutdownTimeout to finish, and new ones are refused. It returns
// nil when all have, and otherwise what did not end, or what went wrong with
// the listener, which is closed in any case.
func (s *Server) ServeListener(ctx context.Context, listener net.Listener) error {
	o := &s.options
	if o.Token == "" && len(o.Tokens) == 0 && o.Authenticate == nil && !isLoopback(hostOf(listener.Addr().String())) {
		s.log.Warn("the server is open: everybody who reaches it may call its tools", event.ServeExposed, zap.Stringer("address", listener.Addr()))
	}
	handler := s.Handler()
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	mux.Handle(wellKnown, handler)
	mux.Handle(wellKnown+"/", handler)
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          zap.NewStdLog(s.log),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	var err error
	select {
	case <-ctx.Done():
	case <-s.life.Done(): // closed from elsewhere
	case err = <-failed:
		failed <- err
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.ShutdownTimeout)
	defer cancel()
	closeErr := s.Close(bound)
	if server.Shutdown(bound) != nil {
		_ = server.Close()
	}
	<-failed
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, closeErr)
}
