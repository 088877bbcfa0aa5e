// SPDX-License-Identifier: Apache-2.0

// Package sentnotes notes requests whose message is in the log, and whose clients have no answer.
package sentnotes

import (
	"maps"
	"sync"
	"time"
)

// most is how many notes there are at most. The notes begin anew when they are full.
const most = 1 << 16

// lasting is how long a note lasts after the client has left. Clients that repeat a request by themselves do so within
// a minute.
const lasting = 5 * time.Minute

// begunLasting is how long a note lasts after the client was sent the beginning of its response.
const begunLasting = time.Minute

// Notes are the conversations of requests. Their methods may be called concurrently; the zero value is empty. The empty
// name of a request has no note.
type Notes struct {
	mu sync.Mutex
	of map[string]note // by the name of the request
}

// note is a request whose client waits, or that has left.
type note struct {
	conversation string
	until        time.Time // zero while the client waits for the beginning of its response
}

func (n note) isOver() bool { return !n.until.IsZero() && n.until.Before(time.Now()) }

// Add notes the conversation that has the message of a request.
func (n *Notes) Add(request, conversation string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.of) >= most {
		maps.DeleteFunc(n.of, func(_ string, one note) bool { return one.isOver() })
	}
	if n.of == nil || len(n.of) >= most {
		n.of = make(map[string]note)
	}
	if request != "" {
		n.of[request] = note{conversation: conversation}
	}
}

// Find returns the conversation that has the message of a request, or "".
func (n *Notes) Find(request string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if one := n.of[request]; !one.isOver() {
		return one.conversation
	}
	return ""
}

// Leave lets the note of a request expire, because its client has left.
func (n *Notes) Leave(request, conversation string) { n.expire(request, conversation, lasting) }

// Begin lets the note of a request expire soon, because its client was sent the beginning of its response and may leave. The
// client does not have it if the connection has just broken.
func (n *Notes) Begin(request, conversation string) { n.expire(request, conversation, begunLasting) }

// expire lets a note expire, unless it does already.
func (n *Notes) expire(request, conversation string, within time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if one := n.of[request]; one.conversation == conversation && one.until.IsZero() {
		n.of[request] = note{conversation, time.Now().Add(within)}
	}
}

// Remove removes the note of a request, because its client has the answer.
func (n *Notes) Remove(request, conversation string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of[request].conversation == conversation {
		delete(n.of, request)
	}
}
