// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// writer writes something that may be too large to hold in memory.
type writer func(w io.Writer) error

// text writes a string.
func text(s string) writer {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// link is the way back to the client: the stdout of the process, the response
// to one HTTP request, or the streams that HTTP clients keep open. Its methods
// may be called concurrently.
type link interface {
	// message sends one whole message.
	message(writer) error
	// answer sends the answer to the request that the link belongs to.
	answer(writer) error
	// raw sends bytes that need be no message where the client expects one.
	raw(writer) error
	// mute keeps everything from now on to itself, but ends nothing.
	mute()
	// cut ends the link as if the server had died.
	cut()
	// done is closed when nobody waits at the other end any more.
	done() <-chan struct{}
	// after runs f when the answer has left.
	after(f func())
}

// request is a request or a notification, which has no ID.
type request struct {
	ID     json.RawMessage
	Method string
	Params params
}

// params has what the server reads of any method's parameters.
type params struct {
	Name            string
	Arguments       json.RawMessage
	Cursor          string
	URI             string
	ProtocolVersion string
	RequestID       json.RawMessage `json:"requestId"`
	Reason          string
	Meta            struct {
		Token json.RawMessage `json:"progressToken"`
		Key   string          `json:"io.github.consort-go/idempotency-key"`
	} `json:"_meta"`
}

// parseRequest reads one message. Answers to requests of the server, which asks
// nothing, have no method.
func parseRequest(data []byte) (*request, error) {
	r := new(request)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, err
	}
	r.ID = bytes.TrimSpace(r.ID)
	if !isScalar(r.ID) {
		return nil, errors.New("the id is neither a string nor a number")
	}
	if !isScalar(r.Params.Meta.Token) {
		r.Params.Meta.Token = nil
	}
	return r, nil
}

// isScalar reports whether valid JSON, or nothing, is a string or a number.
func isScalar(data json.RawMessage) bool {
	return len(data) == 0 || strings.IndexByte(`"-0123456789`, data[0]) >= 0
}

func (r *request) isNotification() bool { return len(r.ID) == 0 }

// answer is an answer on its way out, which faults may change.
type answer struct {
	id      json.RawMessage
	result  writer
	failure *rpcError // in place of result
	twice   bool
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// The codes of JSON-RPC 2.0, section 5.1, and of MCP, that the server answers with.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603

	codeResourceNotFound = -32002 // MCP 2025-11-25, server/resources § Error Handling
)

func failf(code int, format string, args ...any) *answer {
	return &answer{failure: &rpcError{code, fmt.Sprintf(format, args...)}}
}

func (a *answer) write(w io.Writer) error {
	if _, err := fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,`, a.id); err != nil {
		return err
	}
	part := a.result
	if a.failure != nil {
		object, err := json.Marshal(a.failure)
		if err != nil {
			return err
		}
		part = text(string(object))
		_, err = io.WriteString(w, `"error":`)
		if err != nil {
			return err
		}
	} else if _, err := io.WriteString(w, `"result":`); err != nil {
		return err
	}
	if err := part(w); err != nil {
		return err
	}
	_, err := io.WriteString(w, "}")
	return err
}

// send gives the answer to the client, as often as it shall get it.
func (a *answer) send(l link) error {
	if !a.twice {
		return l.answer(a.write)
	}
	return errors.Join(l.message(a.write), l.message(a.write))
}

// halfLimit bounds how much of an answer half can be.
const halfLimit = 32 << 10

// half writes the first half of the answer, or as much as has room.
func (a *answer) half(w io.Writer) error {
	var head headWriter
	if err := a.write(&head); err != nil && !errors.Is(err, errHead) {
		return err
	}
	_, err := w.Write(head.bytes[:len(head.bytes)/2])
	return err
}

var errHead = errors.New("that was enough")

// headWriter keeps the first bytes.
type headWriter struct{ bytes []byte }

func (h *headWriter) Write(p []byte) (int, error) {
	n := min(len(p), 2*halfLimit-len(h.bytes))
	h.bytes = append(h.bytes, p[:n]...)
	if n < len(p) {
		return n, errHead
	}
	return n, nil
}

// notification writes a message without an id; params is JSON.
func notification(method, params string) writer {
	return text(`{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `}`)
}

// quote renders a string in JSON.
func quote(s string) string {
	data, _ := json.Marshal(s) // a string: cannot fail
	return string(data)
}
