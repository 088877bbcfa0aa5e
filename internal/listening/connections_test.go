// SPDX-License-Identifier: Apache-2.0

package listening

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"testing"
)

// fakes is a listener of connections that are made up.
type fakes struct {
	next []any // *fake or error
}

func (f *fakes) Accept() (net.Conn, error) {
	if len(f.next) == 0 {
		return nil, net.ErrClosed
	}
	next := f.next[0]
	f.next = f.next[1:]
	if err, ok := next.(error); ok {
		return nil, err
	}
	return next.(*fake), nil
}

func (*fakes) Close() error   { return nil }
func (*fakes) Addr() net.Addr { return &net.TCPAddr{} }

type fake struct {
	net.Conn
	address string
	closed  bool
}

func (f *fake) Close() error { f.closed = true; return nil }
func (f *fake) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(f.address), Port: 1}
}

// The connection that waits longest makes room, and never one that serves a
// request.
func TestBounds(t *testing.T) {
	inner := &fakes{}
	var full []string
	l := Limit(inner, Limits{Connections: 3, PerAddress: 2, Full: func(closed int, address string) {
		full = append(full, fmt.Sprint(closed, " ", address))
	}})
	connect := func(address string) (*fake, net.Conn) {
		t.Helper()
		f := &fake{address: address}
		inner.next = append(inner.next, f)
		c, _ := l.Accept()
		return f, c
	}
	is := func(want bool, of ...*fake) {
		t.Helper()
		for i, f := range of {
			if f.closed != want {
				t.Errorf("%d of %s: closed %v", i, f.address, f.closed)
			}
		}
	}
	a1, served := connect("192.0.2.1")
	end := ServeRequest(served.RemoteAddr())
	a2, _ := connect("192.0.2.1")
	a3, again := connect("192.0.2.1")
	is(true, a2)
	is(false, a1, a3)
	ServeRequest(again.RemoteAddr())
	if a4, c := connect("192.0.2.1"); c != nil || !a4.closed {
		t.Error("a third one of an address that serves two requests")
	}
	b1, _ := connect("2001:db8::1")
	b2, last := connect("2001:db8::2")
	is(true, b1)
	is(false, a1, a3, b2)
	end()
	c1, _ := connect("192.0.2.3")
	is(true, b2) // which waits for longer than the one whose request has just ended
	is(false, a1, a3, c1)
	if err := last.Close(); err != nil || l.open != 3 {
		t.Errorf("%v, %d open", err, l.open)
	}
	if !slices.Equal(full, []string{"1 192.0.2.1"}) {
		t.Errorf("told %q", full)
	}

	d := &fake{address: "192.0.2.4"}
	inner.next = []any{&net.OpError{Op: "accept", Err: syscall.EMFILE}, d}
	if c, err := l.Accept(); err != nil || c == nil {
		t.Errorf("without files: %v", err)
	}
	is(true, a1)
	l.CloseWaiting()
	is(true, c1, d)
	is(false, a3)
	inner.next = []any{syscall.EMFILE}
	if _, err := l.Accept(); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("got %v", err)
	}
	_ = again.Close()
	if l.open != 0 || len(l.addresses) != 0 || l.waiting.Len() != 0 {
		t.Errorf("left: %d open, %v", l.open, l.addresses)
	}
	if DefaultConnections() <= 0 || DefaultConnections() > defaultConnections {
		t.Errorf("the default is %d", DefaultConnections())
	}
}
