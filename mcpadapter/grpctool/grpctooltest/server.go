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

// Options are what a [Server] need not be told. Nil, and the zero value of each
// field, mean the default that the field names.
type Options struct {
	// Services are the names under which the tools are served; default both,
	// grpctool.Service and grpctool.OriginalService. Requests by other names are
	// refused with UNIMPLEMENTED, as gRPC does.
	Services []string
	// TLS makes the server speak TLS, with a certificate for 127.0.0.1 that
	// [Server.Roots] vouches for.
	TLS bool
	// Rules are the first script; see [Server.Script].
	Rules []Rule
}

// Server is a server of tools in the process of the test. All methods may be
// called concurrently.
type Server struct {
	services     []string
	certificates *certificates // nil without TLS
	script       script
	tools        toolbox
	record       record

	life    sync.Mutex // held while the server goes on or off the air
	address string
	running *running
	work    sync.WaitGroup // those who take it off the air

	mu    sync.Mutex
	wires map[*wire]bool
}

// running is one life of a server.
type running struct {
	listener *listener
	grpc     *grpc.Server
	served   chan struct{}
}

// New starts a server that the test ends.
func New(t testing.TB, options *Options) *Server {
	t.Helper()
	s, err := Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Start starts a server without tools on a free port of 127.0.0.1. A rule that
// can never strike is an error. Close ends the server.
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

// Address is where the server is, also while it is off the air.
func (s *Server) Address() string {
	s.life.Lock()
	defer s.life.Unlock()
	return s.address
}

// Roots vouches for the certificate of a server that speaks TLS; nil if it does
// not.
func (s *Server) Roots() *x509.CertPool {
	if s.certificates == nil {
		return nil
	}
	return s.certificates.roots()
}

// ClientOptions are those with which grpctool.Source reaches the server. The
// caller may change what it gets.
func (s *Server) ClientOptions() *grpctool.Options {
	if s.certificates == nil {
		return &grpctool.Options{Plaintext: true}
	}
	return &grpctool.Options{TLS: &tls.Config{RootCAs: s.Roots(), MinVersion: tls.VersionTLS12}}
}

// Script replaces the rules, and what was counted for them. When several strike
// at an occasion, each does its part, in their order, until one of them ends the
// matter. A rule that can never strike is an error, and changes nothing.
func (s *Server) Script(rules ...Rule) error {
	for _, r := range rules {
		if err := r.check(s.certificates != nil); err != nil {
			return err
		}
	}
	s.script.set(rules)
	return nil
}

// Struck returns how often a fault has struck.
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

// Start brings the server back on the air at the same address, after Stop or
// [Die]. On the air it changes nothing.
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

// Stop takes the server off the air: new connections are refused, those that
// there are end at once, and so do the contexts of calls. It returns when these
// have ended; a tool that does not heed its context holds it up. A function of a
// tool must not call it; see [Die] for that.
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

// WindUp ends the server as one that is replaced: it listens no more, clients
// are told (GOAWAY), and calls that are under way are answered. It returns when
// these have ended.
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

// Close ends the server, and waits until nothing of it is left. Further calls do
// nothing.
func (s *Server) Close() {
	s.Stop() // and with it whoever could begin more work
	s.work.Wait()
}

// DropConnections resets all connections that there are. The server lives on.
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
