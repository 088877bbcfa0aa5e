// SPDX-License-Identifier: Apache-2.0

// Package unanswered counts the requests of a server that wait for their answers.
package unanswered

import (
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// most is how many requests may wait. The SDK has no limit: each request has a goroutine
// until its answer is written, so also while a person thinks about a question, or while the
// server does not read.
const most = 1000

// Requests are the requests that wait. The zero value is ready to use.
type Requests struct {
	mu  sync.Mutex
	ids map[jsonrpc.ID]bool
}

// Begin adds a request. Its error says that there are too many.
func (r *Requests) Begin(id jsonrpc.ID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil {
		r.ids = make(map[jsonrpc.ID]bool)
	}
	if r.ids[id] = true; len(r.ids) > most {
		return fmt.Errorf("more than %d of its requests wait for their answers", most)
	}
	return nil
}

// End removes a request whose answer was written, or cannot be.
func (r *Requests) End(id jsonrpc.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ids, id)
}
