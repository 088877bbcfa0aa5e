// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"bytes"
	"net"
	"net/http"
	"time"
)

// Replay is a recorded answer, sent byte for byte.
type Replay struct {
	// Status is the HTTP status; zero means 200.
	Status int
	// Header replaces the usual headers. The default Content-Type is text/event-stream.
	Header http.Header
	// Parts are the body. Each part is written and flushed separately, as one chunk of
	// the HTTP body.
	Parts []Part
	// End says what happens after the last part.
	End End
	// Delay is the time before anything is sent.
	Delay time.Duration
	// Wire makes Parts the whole answer, starting with the status line, exactly as the
	// bytes are sent over the connection, which is then closed. Status and Header are not
	// used.
	Wire bool
}

// Part is a piece of a recorded body.
type Part struct {
	// Pause is the time before the data is sent.
	Pause time.Duration
	Data  []byte
}

// End is how a recorded answer ends.
type End string

// The ends. Cut, Reset and Stall require a real HTTP/1.1 connection.
const (
	// EndClean ends the body as HTTP requires; the default.
	EndClean End = ""
	// EndCut closes the connection in the middle of the body.
	EndCut End = "cut"
	// EndReset resets the connection in the middle of the body.
	EndReset End = "reset"
	// EndStall sends nothing more until the client or the server gives up, or ten minutes
	// have passed, and then cuts.
	EndStall End = "stall"
)

// Recording returns the replay of an event stream in one part.
func Recording(body []byte) Replay { return Replay{Parts: []Part{{Data: body}}} }

// Split cuts a body into parts of size bytes, regardless of its content. A size below one
// means one part.
func Split(body []byte, size int) []Part {
	if size < 1 {
		return []Part{{Data: body}}
	}
	var parts []Part
	for len(body) > 0 {
		n := min(size, len(body))
		parts = append(parts, Part{Data: body[:n:n]})
		body = body[n:]
	}
	return parts
}

// Body returns all parts joined.
func (p Replay) Body() []byte {
	var body bytes.Buffer
	for _, part := range p.Parts {
		body.Write(part.Data)
	}
	return body.Bytes()
}

// play sends the recording.
func (p Replay) play(x *exchange) {
	if !x.wait(p.Delay) {
		return
	}
	if p.Wire {
		p.playWire(x)
		return
	}
	header := x.w.Header()
	header.Set("Content-Type", "text/event-stream")
	for name, values := range p.Header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	x.w.WriteHeader((&Failure{Status: max(p.Status, http.StatusOK)}).status())
	if !x.send(nil) {
		return
	}
	for _, part := range p.Parts {
		if !x.wait(part.Pause) || !x.send(part.Data) {
			return
		}
	}
	if p.End != EndClean {
		x.hangUp(p.End)
	}
}

// playWire takes over the connection and writes to it directly.
func (p Replay) playWire(x *exchange) {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return // not a real connection, nothing to write to
	}
	defer conn.Close()
	stop := x.server.closeWithServer(conn)
	defer stop()
	for _, part := range p.Parts {
		if !x.wait(part.Pause) {
			return
		}
		_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails only on a closed connection, and then Write fails too
		if _, err := conn.Write(part.Data); err != nil {
			return
		}
	}
	switch p.End {
	case EndReset:
		resetOnClose(conn)
	case EndStall:
		awaitClose(conn)
	}
}

// hangUp ends the connection in the middle of a body.
func (x *exchange) hangUp(end End) {
	if end == EndStall {
		x.wait(maxStall)
	}
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return // not a real connection, nothing to cut
	}
	defer conn.Close()
	if end == EndReset {
		resetOnClose(conn)
	}
}

// resetOnClose makes Close send RST if the connection supports it.
func resetOnClose(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0) // if it fails, Close closes normally
	}
}

// awaitClose waits until either side closes a hijacked connection.
func awaitClose(conn net.Conn) {
	conn.SetReadDeadline(time.Now().Add(maxStall)) // fails only on a closed connection, and then Read fails too
	var discard [512]byte
	for {
		if _, err := conn.Read(discard[:]); err != nil {
			return
		}
	}
}

// closeWithServer closes a hijacked connection, which net/http no longer tracks, when the
// server closes. The returned function stops the goroutine and waits for it.
func (s *Server) closeWithServer(conn net.Conn) (stop func()) {
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-s.done:
			conn.Close()
		case <-quit:
		}
	}()
	return func() {
		close(quit)
		<-gone
	}
}
