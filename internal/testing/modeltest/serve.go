// SPDX-License-Identifier: Apache-2.0

package modeltest

import (
	"context"
	"net"
	"net/http"
	"testing"
)

// Serve serves a handler within a bubble of synctest, where time passes only while all wait. The
// client reaches the handler at any address.
func Serve(t *testing.T, handler http.Handler) *http.Client {
	t.Helper()
	far := pipes{make(chan net.Conn), make(chan struct{})}
	server, served := &http.Server{Handler: handler}, make(chan error, 1)
	go func() { served <- server.Serve(far) }()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		select {
		case far.conns <- there:
			return here, nil
		case <-far.closed:
			return nil, net.ErrClosed
		}
	}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		<-served
	})
	return &http.Client{Transport: transport}
}

// pipes is a listener for the far ends of pipes.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	close(p.closed) // the server closes it once
	return nil
}

func (pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv6loopback, Port: 80} }
