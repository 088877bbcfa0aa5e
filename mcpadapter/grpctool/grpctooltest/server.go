// SPDX-License-Identifier: Apache-2.0

package grpctooltest

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/consort-go/consort/mcpadapter/grpctool"
	"google.golang.org/grpc"
)

// Options configure a [Server]. Nil, and the zero value of a field, mean the documented
// default.
type Options struct {
	// Services are the full service names of the server; default both, grpctool.Service
	// and grpctool.OriginalService. Requests to other services are refused with
	// UNIMPLEMENTED, as in gRPC.
	Services []string
	// TLS enables TLS with a certificate for 127.0.0.1, whose authority is in
	// [Server.Roots].
	TLS bool
	// Rules are the initial rules; see [Server.Script].
	Rules []Rule
}

// Server is a tool server in the process of the test. All methods may be called
// concurrently.
type Server struct {
	services     []string
	certificates *certificates // nil without TLS
	script       script
	tools        toolbox
	record       record

	life    sync.Mutex // held while the server starts or stops
	address string
	running *running
	work    sync.WaitGroup // goroutines that stop the server

	mu    sync.Mutex
	wires map[*wire]bool
}

// running is a server between Start and Stop.
type running struct {
	listener *listener
	grpc     *grpc.Server
	served   chan struct{}
}

// New starts a server that is closed at the end of the test.
func New(t testing.TB, options *Options) *Server {
	t.Helper()
	s, err := Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Start starts a server without tools on a free port of 127.0.0.1. A rule that can
// never apply is an error. The caller must close the server.
func Start(options *Options) (*Server, error) {
	var o Options
	if options != nil {
		o = *options
	}
	s := &Server{services: slices.Clone(o.Services), address: "127.0.0.1:0", wires: make(map[*wire]bool)}
	if s.services == nil {
		s.services = []string{grpctool.Service, grpctool.OriginalService}
	}
	if o.TLS {
		made, err := newCertificates()
		if err != nil {
			return nil, err
		}
		s.certificates = made
	}
	if err := s.Script(o.Rules...); err != nil {
		return nil, err
	}
	return s, s.Start()
}

// Address returns the address of the server, also while it is stopped.
func (s *Server) Address() string {
	s.life.Lock()
	defer s.life.Unlock()
	return s.address
}

// Roots returns a pool with the authority of the server's certificate; nil without TLS.
func (s *Server) Roots() *x509.CertPool {
	if s.certificates == nil {
		return nil
	}
	return s.certificates.roots()
}

// ClientOptions returns the options for grpctool.Source to reach the server. The caller
// may modify them.
func (s *Server) ClientOptions() *grpctool.Options {
	if s.certificates == nil {
		return &grpctool.Options{Plaintext: true}
	}
	return &grpctool.Options{TLS: &tls.Config{RootCAs: s.Roots(), MinVersion: tls.VersionTLS12}}
}

// Script replaces the rules and resets their counters. If several rules apply to an
// occasion, their faults occur in order until one of them ends the request or
// connection. If a rule can never apply, Script returns an error and changes nothing.
func (s *Server) Script(rules ...Rule) error {
	for _, r := range rules {
		if err := r.check(s.certificates != nil); err != nil {
			return err
		}
	}
	s.script.set(rules)
	return nil
}

// Struck returns how many faults have occurred.
func (s *Server) Struck() int {
	s.script.mu.Lock()
	defer s.script.mu.Unlock()
	return s.script.struck
}

// Connections returns how many connections of clients are open.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.wires)
}

// Start starts the server again at the same address, after Stop, WindUp or "die". It
// has no effect on a running server.
func (s *Server) Start() error {
	s.life.Lock()
	defer s.life.Unlock()
	if s.running != nil {
		return nil
	}
	inner, err := net.Listen("tcp", s.address)
	if err != nil {
		return fmt.Errorf("grpctooltest: %w", err)
	}
	s.address = inner.Addr().String()
	r := &running{listener: s.listen(inner), grpc: s.newGRPC(), served: make(chan struct{})}
	go func() {
		defer close(r.served)
		_ = r.grpc.Serve(r.listener)
	}()
	s.running = r
	return nil
}

// Stop stops the server: it refuses new connections, closes open ones immediately, and
// cancels the contexts of calls. It returns when the calls have ended; a tool that
// ignores its context delays it. The function of a tool must not call Stop; use "die"
// instead.
func (s *Server) Stop() {
	s.life.Lock()
	defer s.life.Unlock()
	if s.running == nil {
		return
	}
	_ = s.running.listener.Close()
	s.DropConnections()
	s.running.grpc.Stop()
	<-s.running.served
	s.running.listener.apart.Wait()
	s.running = nil
}

// WindUp shuts the server down gracefully, like a server that is being replaced: it
// stops listening, notifies clients (GOAWAY), and answers calls under way. It returns
// when these have ended.
func (s *Server) WindUp() {
	s.life.Lock()
	defer s.life.Unlock()
	if s.running == nil {
		return
	}
	s.running.grpc.GracefulStop()
	<-s.running.served
	s.DropConnections()
	s.running.listener.apart.Wait()
	s.running = nil
}

// Close ends the server, and waits until all its work has ended. Further calls do
// nothing.
func (s *Server) Close() {
	s.Stop() // afterwards no new work can begin
	s.work.Wait()
}

// DropConnections resets all open connections. The server keeps running.
func (s *Server) DropConnections() {
	s.mu.Lock()
	wires := make([]*wire, 0, len(s.wires))
	for w := range s.wires {
		wires = append(wires, w)
	}
	s.mu.Unlock()
	for _, w := range wires {
		w.cut()
	}
}
