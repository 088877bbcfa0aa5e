// SPDX-License-Identifier: Apache-2.0

package unanswered

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A server that uses one ID for all its requests, and reads no answer, reaches the limit too.
func TestReusedIDs(t *testing.T) {
	id, _ := jsonrpc.MakeID("again")
	var r Requests
	var ends []func()
	for range Most {
		if err := r.Begin(id); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, r.Answer(id))
	}
	if r.Begin(id) == nil {
		t.Errorf("more than %d answers wait", Most)
	}
	for _, end := range ends {
		end()
	}
	r.Answer(id)()
	if err := r.Begin(id); err != nil {
		t.Errorf("after all answers: %v", err)
	}
}
