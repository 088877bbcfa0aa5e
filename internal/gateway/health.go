// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/hostnames"
	"github.com/consort-go/consort/internal/listening"
	"github.com/consort-go/consort/internal/logevent"
	"go.uber.org/zap"
)

// readiness tracks whether the process accepts calls, which the roster does not know.
type readiness struct {
	ending    context.Context // ends when the process refuses new calls
	roster    *ensemble.Roster
	connected atomic.Bool // connecting to each server was tried once
}

// reason says why clients should not send calls now; empty if they may.
func (r *readiness) reason() string {
	if r.ending.Err() != nil {
		return "draining: this process ends when the running calls are done"
	}
	if r.connected.Load() {
		return ""
	}
	ensembles, isAnyReady := r.roster.Health().Ensembles, false
	for _, e := range ensembles {
		if e.Required && e.State == ensemble.Idle {
			return fmt.Sprintf("ensemble %q is required and not connected yet", e.Name)
		}
		isAnyReady = isAnyReady || e.State == ensemble.Ready
	}
	if len(ensembles) > 0 && !isAnyReady {
		return "no ensemble is connected yet"
	}
	return ""
}

// connectAll connects to all servers on a goroutine; stop ends it.
func (r *readiness) connectAll(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.roster.Connect(ctx) // failures are logged
		r.connected.Store(true)
	}()
	return func() { cancel(); <-done }
}

// serveHealth serves the health of the roster at the configured address, if there is one.
func (s *server) serveHealth(watched *readiness) (stop func(), err error) {
	listener, err := s.listen("health", s.settings.Health)
	if err != nil || listener == nil {
		return func() {}, err
	}
	s.Screen.Note("health at http://%s/health/mcp", listener.Addr())
	handler := http.NewServeMux()
	handler.Handle("/", watched.roster.HealthHandler(watched.reason))
	handler.Handle("GET /metrics", s.Metrics)
	server := listening.NewServer(listener, listening.WithoutBody(ownNames(listener.Addr(), handler)), listening.Options{
		Limits: listening.Limits{
			Connections: s.settings.MaxConnections, PerAddress: s.settings.MaxConnectionsPerAddress,
			Full: func(closed int, address string) {
				s.Assembly.Logger.Warn("too many connections to serve.health: some are closed", logevent.ServeFull, zap.Int("closed", closed), zap.String("from", address))
			},
		},
		ErrorLog:     zap.NewStdLog(s.Assembly.Logger),
		WriteTimeout: time.Minute,
		HeaderBytes:  16 << 10,
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve() // until it is shut down
	}()
	return func() {
		server.Shutdown(context.Background())
		<-done
	}, nil
}

// ownNames refuses requests whose Host is not a loopback name or address, if the listener
// is on a loopback address. Otherwise a page in a browser on this machine could read the
// responses through a name of its own that resolves to this machine (DNS rebinding).
func ownNames(listening net.Addr, next http.Handler) http.Handler {
	tcp, ok := listening.(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hostnames.IsThisMachine((&url.URL{Host: r.Host}).Hostname()) {
			http.Error(w, "the Host is not a name of this machine", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
