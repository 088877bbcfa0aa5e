// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	maxMessage  = 64 << 20 // bytes of an incoming message
	maxInflight = 1024     // requests served at the same time
)

// serveStdio serves a client until its stream ends.
func (s *server) serveStdio(stdin io.Reader, out *stdioLink) {
	select {
	case <-s.ready:
	case <-s.ctx.Done():
		return
	}
	tickets := make(chan struct{}, maxInflight)
	for r := bufio.NewReader(stdin); ; {
		if s.is(&s.deaf) {
			return
		}
		line, err := readLine(r)
		if s.is(&s.deaf) {
			return // this line was not read
		}
		if len(bytes.TrimSpace(line)) > 0 {
			s.serveLine(line, out, tickets)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				fmt.Fprintln(s.stderr, err)
			}
			if !s.is(&s.stubborn) {
				s.end(0)
			}
			return
		}
	}
}

// serveLine serves one message.
func (s *server) serveLine(line []byte, out *stdioLink, tickets chan struct{}) {
	r, err := parseRequest(line)
	if err != nil {
		a := failf(codeParse, "not a message: %v", err)
		a.id = []byte("null")
		_ = out.message(a.write)
		return
	}
	if r.isNotification() || r.Method == "" {
		s.notified(r, "")
		return
	}
	select {
	case tickets <- struct{}{}:
	default:
		a := failf(codeInternal, "too many requests at the same time")
		a.id = r.ID
		_ = out.message(a.write)
		return
	}
	x := s.admit(r, "", false)
	go func() {
		defer func() { <-tickets }()
		x.serve(out)
	}()
}

// readLine reads up to and including the end of a line.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > maxMessage {
			return nil, fmt.Errorf("faultserver: a message of more than %d bytes came", maxMessage)
		}
	}
}

// stdioLink is the stdout of the process.
type stdioLink struct {
	end <-chan struct{} // of the server

	mu    sync.Mutex
	w     *bufio.Writer
	muted bool
}

func newStdioLink(w io.Writer, end <-chan struct{}) *stdioLink {
	return &stdioLink{w: bufio.NewWriterSize(w, 64<<10), end: end}
}

func (l *stdioLink) message(write writer) error {
	return l.raw(func(w io.Writer) error {
		if err := write(w); err != nil {
			return err
		}
		_, err := io.WriteString(w, "\n")
		return err
	})
}

func (l *stdioLink) answer(write writer) error { return l.message(write) }

func (l *stdioLink) raw(write writer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.muted {
		return nil
	}
	return errors.Join(write(l.w), l.w.Flush())
}

func (l *stdioLink) mute() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.muted = true
}

func (l *stdioLink) cut()                  { l.mute() }
func (l *stdioLink) done() <-chan struct{} { return l.end }
func (l *stdioLink) after(f func())        { f() }
