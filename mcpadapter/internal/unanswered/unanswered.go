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

// Requests are the requests that wait. The zero value is ready to use.
type Requests struct {
	mu      sync.Mutex
	ids     map[jsonrpc.ID]bool // of requests without an answer
	writing int                 // answers; a server may use their IDs again
}

// Begin adds a request. Its error says that there are too many. The SDK refuses a second request
// with the ID of one that has no answer yet.
func (r *Requests) Begin(id jsonrpc.ID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil {
		r.ids = make(map[jsonrpc.ID]bool)
	}
	if r.ids[id] = true; len(r.ids)+r.writing > Most {
		return fmt.Errorf("more than %d of its requests wait for their answers", Most)
	}
	return nil
}

// Answer says that the answer of a request is about to be written. The caller must call end when it
// was written, or cannot be.
func (r *Requests) Answer(id jsonrpc.ID) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ids, id)
	r.writing++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.writing--
	}
}
