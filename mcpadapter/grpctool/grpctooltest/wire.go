// SPDX-License-Identifier: Apache-2.0

package grpctooltest

import (
	"crypto/tls"
	"encoding/binary"
	"net"
	"sync"
	"time"
)

// wire is one connection of a client, between gRPC and the socket or TLS. It tracks the
// streams that the client opened, sends frames that gRPC would not send, and simulates
// network failures.
type wire struct {
	net.Conn // the socket, or TLS over it
	socket   net.Conn
	server   *Server
	bad      *tls.Certificate // shown instead of the valid certificate

	in      frames // used only by the reader
	closing sync.Once
	closed  chan struct{}

	mu      sync.Mutex
	opened  []uint32 // streams that gRPC has not processed yet
	drip    time.Duration
	halving bool // the next large write is cut in half
	after   func()
	mute    bool
}

// where is the address of a client. Handlers find the connection of a request through
// it.
type where struct {
	net.Addr
	wire *wire
}

// RemoteAddr implements [net.Conn].
func (w *wire) RemoteAddr() net.Addr { return where{Addr: w.Conn.RemoteAddr(), wire: w} }

// Read implements [net.Conn].
func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if opened := w.in.read(b[:n]); len(opened) > 0 {
		w.mu.Lock()
		w.opened = append(w.opened, opened...)
		w.mu.Unlock()
	}
	return n, err
}

// next returns the stream that gRPC processes now: it processes all streams, in order.
func (w *wire) next() uint32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.opened) == 0 {
		return 0
	}
	id := w.opened[0]
	w.opened = w.opened[1:]
	return id
}

// Write implements [net.Conn].
func (w *wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.mute:
		return len(b), nil
	case w.halving && len(b) > largePiece:
		w.halving, w.mute = false, true
		if n, err := w.Conn.Write(b[:largePiece/2]); err != nil {
			return n, err
		}
		w.after()
		return len(b), nil
	case w.drip == 0:
		return w.Conn.Write(b)
	}
	for i := range b {
		select {
		case <-w.closed:
			return i, net.ErrClosed
		case <-time.After(w.drip):
		}
		if _, err := w.Conn.Write(b[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(b), nil
}

// largePiece is more bytes than gRPC writes at once, except for the responses that Half
// enlarges.
const largePiece = 4 << 10

// halve cuts the next large write in half, discards the rest and all later writes, and
// calls then.
func (w *wire) halve(then func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.halving, w.after = true, then
}

func (w *wire) slow(drip time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drip = drip
}

// Close implements [net.Conn].
func (w *wire) Close() error {
	w.over()
	return w.Conn.Close()
}

func (w *wire) over() {
	w.closing.Do(func() {
		close(w.closed)
		w.server.forget(w)
	})
}

// cut ends the connection with a RST, like a host that has crashed meanwhile.
func (w *wire) cut() {
	if tcp, ok := w.socket.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = w.socket.Close()
	w.over()
}

// Frames of HTTP/2 (RFC 9113, § 4.1 and § 6).
const (
	frameData    = 0x0
	frameHeaders = 0x1
	frameReset   = 0x3
	frameGoAway  = 0x7

	flagEndStream  = 0x1
	flagEndHeaders = 0x4

	lastStream = 1<<31 - 1

	headerSize = 9
	preface    = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
)

// frames parses the frames of a client, only as far as needed to find the streams that
// it opens.
type frames struct {
	preface int // bytes of the preface received so far
	header  []byte
	payload int // bytes of the payload still to come
}

// read processes the next bytes and returns the streams that they open.
func (f *frames) read(b []byte) (opened []uint32) {
	for len(b) > 0 {
		switch {
		case f.preface < len(preface):
			n := min(len(preface)-f.preface, len(b))
			f.preface, b = f.preface+n, b[n:]
		case f.payload > 0:
			n := min(f.payload, len(b))
			f.payload, b = f.payload-n, b[n:]
		default:
			n := min(headerSize-len(f.header), len(b))
			f.header, b = append(f.header, b[:n]...), b[n:]
			if len(f.header) < headerSize {
				return opened
			}
			f.payload = int(f.header[0])<<16 | int(f.header[1])<<8 | int(f.header[2])
			if f.header[3] == frameHeaders {
				opened = append(opened, binary.BigEndian.Uint32(f.header[5:])&(1<<31-1))
			}
			f.header = f.header[:0]
		}
	}
	return opened
}

// send writes a frame between the frames of gRPC.
func (w *wire) send(kind, flags byte, stream uint32, payload []byte) {
	frame := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	frame = binary.BigEndian.AppendUint32(frame, stream)
	_, _ = w.Write(append(frame, payload...))
}

// reset ends a stream (RFC 9113, § 6.4).
func (w *wire) reset(stream, reason uint32) {
	w.send(frameReset, 0, stream, binary.BigEndian.AppendUint32(nil, reason))
}

// goAway sends the last stream that the server will answer (RFC 9113, § 6.8).
func (w *wire) goAway(last, reason uint32) {
	w.send(frameGoAway, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), reason))
}

// page answers a stream with an HTML page, like a server without gRPC.
func (w *wire) page(stream uint32, status, text string) {
	var block []byte
	for _, field := range [][2]string{{":status", status}, {"content-type", "text/html"}} {
		block = append(block, 0) // literal, not indexed, new name (RFC 7541, § 6.2.2)
		for _, part := range field {
			block = append(append(block, byte(len(part))), part...)
		}
	}
	w.send(frameHeaders, flagEndHeaders, stream, block)
	w.send(frameData, flagEndStream, stream, []byte(text))
}
