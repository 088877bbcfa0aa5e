// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// Options are the optional settings of a [Server].
type Options struct {
	// Addr is the address to listen on; empty means a free port of 127.0.0.1.
	Addr string
	// TLS enables TLS, with a certificate that [Server.Roots] trusts. A script with
	// "self-signed" implies it.
	TLS bool
	// ComeBack is how long after its death the server restarts by itself, at the same
	// address and without its sessions. Zero means that it stays dead until
	// [Server.Restart].
	ComeBack time.Duration
	// Struck, if not nil, is called with each fault that strikes, after the fault is in
	// the ledger and before it takes effect. The fault waits for Struck to return: a
	// test can kill a client at that moment. Struck may be called concurrently.
	Struck func(Entry)
}

// Server is a server over HTTP in the process of the test. Its methods may be called
// concurrently.
type Server struct {
	script    Script
	comeBack  time.Duration
	struck    func(Entry)
	certs     *certificates // nil without TLS
	counter   *counter
	recorder  *recorder
	elsewhere *elsewhere
	addr      string

	stderr io.Writer

	watches sync.WaitGroup
	closing chan struct{} // closed by Close

	mu     sync.Mutex
	life   *httpLife // the latest
	closed bool
}

// StartHTTP starts a server that offers MCP 2025-11-25 over streamable HTTP, with
// sessions. Rules that cannot strike over HTTP are an error. Options may be nil. Output
// to stderr goes to the stderr of this process. The caller must call Close to end the
// server.
func StartHTTP(script Script, options *Options) (*Server, error) {
	return startHTTP(script, options, os.Stderr)
}

func startHTTP(script Script, options *Options, stderr io.Writer) (*Server, error) {
	if err := script.check(viaHTTP); err != nil {
		return nil, err
	}
	var o Options
	if options != nil {
		o = *options
	}
	s := &Server{
		script: script, comeBack: o.ComeBack, struck: o.Struck, addr: o.Addr, stderr: stderr,
		counter: newCounter(script.Dir), closing: make(chan struct{}),
	}
	if s.addr == "" {
		s.addr = "127.0.0.1:0"
	}
	if err := s.prepare(o.TLS); err != nil {
		return nil, errors.Join(err, s.release())
	}
	if err := s.begin(); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

// prepare creates the resources that all lives of the server share.
func (s *Server) prepare(withTLS bool) (err error) {
	if s.recorder, err = newRecorder(s.script.Dir); err != nil {
		return err
	}
	for i := range s.script.Rules {
		switch s.script.Rules[i].Fault {
		case "self-signed":
			withTLS = true
		case "redirect-other-host":
			if s.elsewhere != nil {
				continue
			}
			if s.elsewhere, err = startElsewhere(s.recorder); err != nil {
				return err
			}
		}
	}
	if withTLS {
		s.certs, err = newCertificates()
	}
	return err
}

// begin begins a life. The caller holds the lock, or has exclusive access.
func (s *Server) begin() error {
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		return fmt.Errorf("faultserver: %w", err)
	}
	s.addr = listener.Addr().String() // keep the port for later lives
	core := newServer(&s.script, viaHTTP, s.counter, s.recorder)
	core.stderr, core.struck = s.stderr, s.struck
	if s.elsewhere != nil {
		core.elsewhere = s.elsewhere.url
	}
	life := newHTTPLife(core)
	s.life = life
	if s.certs != nil {
		listener = tls.NewListener(listener, s.certs.config(core))
	}
	life.serve(listener)
	if s.comeBack > 0 {
		s.watches.Go(func() { s.watch(life) })
	}
	return nil
}

// watch restarts the server some time after a death, unless it has been restarted
// already.
func (s *Server) watch(life *httpLife) {
	<-life.core.ctx.Done()
	timer := time.NewTimer(s.comeBack)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.closing:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.life != life {
		return
	}
	life.wait()
	if err := s.begin(); err != nil {
		fmt.Fprintln(s.stderr, err)
	}
}

// URL returns the endpoint of the server. It stays the same while the server is dead.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	scheme := "http://"
	if s.certs != nil {
		scheme = "https://"
	}
	return scheme + s.addr + "/mcp"
}

// Roots returns a pool with the certificate of a server that uses TLS; nil if it does
// not.
func (s *Server) Roots() *x509.CertPool {
	if s.certs == nil {
		return nil
	}
	return s.certs.roots()
}

// Running reports whether the server is alive.
func (s *Server) Running() bool { return !s.current().core.hasEnded() }

// Died returns a channel that is closed when the current life of the server ends.
func (s *Server) Died() <-chan struct{} { return s.current().core.ctx.Done() }

func (s *Server) current() *httpLife {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life
}

// Stop ends the current life of the server at once, as "die" does: connections are cut,
// and new ones are refused.
func (s *Server) Stop() {
	life := s.current()
	life.core.end(0)
	life.wait()
}

// Restart restarts the server at the same address, after stopping it if it is alive.
// Its sessions are forgotten; the count of occasions continues.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("faultserver: restart: the server is closed")
	}
	s.life.core.end(0)
	s.life.wait()
	return s.begin()
}

// DropConnections cuts all connections. The server stays alive, and keeps its sessions.
func (s *Server) DropConnections() { s.current().dropConnections() }

// ExpireSessions forgets all sessions, as "expire-session" does.
func (s *Server) ExpireSessions() { s.current().expire() }

// Close ends the server and waits until all of it is gone. Further calls do nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.closing)
	s.life.core.end(0)
	s.life.wait()
	s.mu.Unlock()
	s.watches.Wait()
	return s.release()
}

// release closes the resources that prepare created.
func (s *Server) release() error {
	if s.elsewhere != nil {
		s.elsewhere.close()
	}
	return s.recorder.close()
}

// elsewhere is another origin: a server under another name and port that records
// requests.
type elsewhere struct {
	url    string
	server http.Server
	served chan struct{}
}

func startElsewhere(r *recorder) (*elsewhere, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("faultserver: another origin: %w", err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	e := &elsewhere{url: "http://localhost:" + port + "/mcp", served: make(chan struct{})}
	e.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if err := r.add(Entry{Kind: KindElsewhere, Text: request.Method + " " + headerNames(request.Header)}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		http.Error(w, "not found", http.StatusNotFound)
	})
	e.server.ReadHeaderTimeout = requestTimeout
	go func() {
		defer close(e.served)
		_ = e.server.Serve(listener)
	}()
	return e, nil
}

func (e *elsewhere) close() {
	_ = e.server.Close()
	<-e.served
}
