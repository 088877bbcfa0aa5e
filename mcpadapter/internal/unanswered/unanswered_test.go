// SPDX-License-Identifier: Apache-2.0

package unanswered

import (
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A server that uses one ID for all its requests, and reads no answer, reaches the limit too.
func TestReusedIDs(t *testing.T) {
	id, _ := jsonrpc.MakeID("again")
	var r Requests
	var ends []func()
	for range Most {
		if err := r.Begin(id, 1); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, r.Answer(id))
	}
	if r.Begin(id, 1) == nil {
		t.Errorf("more than %d answers wait", Most)
	}
	for _, end := range ends {
		end()
	}
	r.Answer(id)()
	if err := r.Begin(id, 1); err != nil {
		t.Errorf("after all answers: %v", err)
	}
}

// The bytes of a request count until its answer was written.
func TestBytes(t *testing.T) {
	first, _ := jsonrpc.MakeID("first")
	second, _ := jsonrpc.MakeID("second")
	r := Requests{MaxBytes: 10}
	if err := r.Begin(first, 10); err != nil {
		t.Fatal(err)
	}
	end := r.Answer(first)
	if err := r.Begin(second, 1); err == nil || !strings.Contains(err.Error(), "more than 10 bytes") {
		t.Errorf("11 bytes: %v", err)
	}
	r.Answer(second)()
	end()
	if err := r.Begin(first, 10); err != nil {
		t.Errorf("after all answers: %v", err)
	}
}
