// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxUnanswered is how many requests of the server may wait for their answers. The SDK has
// no limit: each request has a goroutine until its answer is written, so also while a person
// thinks about a question, or while the server does not read.
const maxUnanswered = 1000

// unanswered are the requests of the server that are not answered. The zero value is
// ready to use.
type unanswered struct {
	mu  sync.Mutex
	ids map[jsonrpc.ID]bool
}

// begin notes a request. Its error says that there are too many.
func (u *unanswered) begin(request *jsonrpc.Request) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ids == nil {
		u.ids = make(map[jsonrpc.ID]bool)
	}
	if u.ids[request.ID] = true; len(u.ids) > maxUnanswered {
		return &protocolError{fmt.Sprintf("more than %d of its requests wait for their answers", maxUnanswered)}
	}
	return nil
}

// end notes that an answer was written, or that it cannot be.
func (u *unanswered) end(id jsonrpc.ID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.ids, id)
}
