// SPDX-License-Identifier: Apache-2.0

// Package unanswered counts the requests of a server that wait for their answers.
package unanswered

import (
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Most is how many requests may wait. The SDK has no limit: each request has a goroutine
// until its answer is written, so also while a person thinks about a question, or while the
// server does not read.
const Most = 1000

// Requests are the requests that wait. Begin and Answer may be called concurrently.
type Requests struct {
	// MaxBytes is how many bytes the parameters of the requests that wait may have, if it is
	// positive. Decoded, they need a multiple of it.
	MaxBytes int

	mu      sync.Mutex
	sizes   map[jsonrpc.ID]int // bytes of requests without an answer
	writing int                // answers; a server may use their IDs again
	bytes   int                // of all requests, until their answers are written
}

// Begin adds a request whose parameters have size bytes. Its error says that there are too many.
// The SDK refuses a second request with the ID of one that has no answer yet.
func (r *Requests) Begin(id jsonrpc.ID, size int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sizes == nil {
		r.sizes = make(map[jsonrpc.ID]int)
	}
	r.sizes[id] += size
	r.bytes += size
	switch {
	case len(r.sizes)+r.writing > Most:
		return fmt.Errorf("more than %d of its requests wait for their answers", Most)
	case r.MaxBytes > 0 && r.bytes > r.MaxBytes:
		return fmt.Errorf("its requests that wait for their answers have more than %d bytes", r.MaxBytes)
	}
	return nil
}

// Answer says that the answer of a request is about to be written. The caller must call end when it
// was written, or cannot be.
func (r *Requests) Answer(id jsonrpc.ID) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := r.sizes[id]
	delete(r.sizes, id)
	r.writing++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.writing--
		r.bytes -= size
	}
}

// Any reports whether a request waits for its answer.
func (r *Requests) Any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sizes)+r.writing > 0
}
