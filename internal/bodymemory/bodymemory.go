// SPDX-License-Identifier: Apache-2.0

// Package bodymemory bounds the memory that the bodies of requests under way use.
package bodymemory

import (
	"errors"
	"io"
	"sync"
)

// Limit bounds the memory of all bodies. One client gets a fourth of it.
type Limit struct {
	most, mostPerClient int64

	mostWaiting, mostWaitingPerClient int64

	mu        sync.Mutex
	held      int64
	by        map[string]int64 // by client
	waiting   int64            // of held, for requests that wait
	waitingBy map[string]int64 // the same by client
}

// The errors of Read.
var (
	ErrClient = errors.New("the requests of this client take too much memory at once")
	ErrAll    = errors.New("the requests of all clients take too much memory at once")
)

// New returns a bound of most bytes, or of one body of the largest size if that
// is more.
func New(most, largest int64) *Limit {
	most = max(most, largest+1)
	perClient := max(most/4, largest+1)
	return &Limit{
		most: most, mostPerClient: perClient, by: make(map[string]int64),
		mostWaiting: max(most/2, largest+1), mostWaitingPerClient: max(perClient/2, largest+1), waitingBy: make(map[string]int64),
	}
}

// For returns the memory of one request of a client.
func (b *Limit) For(client string) *Memory { return &Memory{of: b, client: client} }

// Memory is the memory that the body of one request uses.
type Memory struct {
	of     *Limit
	client string
	held   int64
	waits  int64 // of held
}

// Take reserves n more bytes, or returns the reason why it cannot.
func (m *Memory) Take(n int64) error {
	b := m.of
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.by[m.client]+n > b.mostPerClient:
		return ErrClient
	case b.held+n > b.most:
		return ErrAll
	}
	b.held += n
	b.by[m.client] += n
	m.held += n
	return nil
}

// Wait is called before a request waits, which can take long. It returns an error if the requests that wait would have
// more than half of the memory: the others can be served then.
func (m *Memory) Wait() error {
	b := m.of
	b.mu.Lock()
	defer b.mu.Unlock()
	n := m.held - m.waits
	switch {
	case b.waitingBy[m.client]+n > b.mostWaitingPerClient:
		return ErrClient
	case b.waiting+n > b.mostWaiting:
		return ErrAll
	}
	m.addWaits(n)
	return nil
}

// addWaits changes how much of the memory waits. The caller must hold the lock.
func (m *Memory) addWaits(n int64) {
	b := m.of
	b.waiting += n
	if b.waitingBy[m.client] += n; b.waitingBy[m.client] == 0 {
		delete(b.waitingBy, m.client)
	}
	m.waits += n
}

// Release returns all reserved memory.
func (m *Memory) Release() { m.Keep(0) }

// Keep returns the reserved memory beyond n bytes. The request does not wait any longer.
func (m *Memory) Keep(n int64) {
	b := m.of
	b.mu.Lock()
	defer b.mu.Unlock()
	free := max(0, m.held-n)
	b.held -= free
	if b.by[m.client] -= free; b.by[m.client] == 0 {
		delete(b.by, m.client)
	}
	m.held -= free
	m.addWaits(-m.waits)
}

// firstRead is the size of the first buffer: a client must send this much before the
// server allocates a larger one.
const firstRead = 16 << 10

// Read reads a body of length bytes, or of at most largest if length is negative. The
// buffer grows by doubling, so that a client that announces much and sends little uses
// little memory.
func (m *Memory) Read(body io.Reader, length, largest int64) ([]byte, error) {
	if length < 0 || length > largest {
		length = largest
	}
	end := length + 1 // the last byte is for the end of the body
	var text []byte
	for {
		if len(text) == cap(text) {
			if int64(cap(text)) == end {
				end = largest + 1 // the body is longer than announced
			}
			size := min(max(2*int64(cap(text)), firstRead), end)
			if err := m.Take(size - int64(cap(text))); err != nil {
				return nil, err
			}
			grown := make([]byte, len(text), size)
			copy(grown, text)
			text = grown
		}
		n, err := body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if err == io.EOF {
			return text, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
