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

// writer writes data that may be too large to hold in memory.
type writer func(w io.Writer) error

// text returns a writer of a string.
func text(s string) writer {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// link is the connection back to the client: the stdout of the process, the response to
// one HTTP request, or the streams that HTTP clients keep open. Its methods may be
// called concurrently.
type link interface {
	// message sends one whole message.
	message(writer) error
	// answer sends the answer to the request of the link.
	answer(writer) error
	// raw sends bytes that need not be a message.
	raw(writer) error
	// mute discards everything sent from now on, but does not end the link.
	mute()
	// cut ends the link as if the server had died.
	cut()
	// done is closed when the client no longer waits.
	done() <-chan struct{}
	// after runs f when the answer has been sent.
	after(f func())
}

// request is a request or a notification, which has no ID.
type request struct {
	ID     json.RawMessage
	Method string
	Params params
}

// params are the parameters that the server reads, of any method.
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

// parseRequest parses one message. Answers of the client have no method; the server
// never sends requests.
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

// isScalar reports whether data, which is valid JSON or empty, is a string, a number or
// empty.
func isScalar(data json.RawMessage) bool {
	return len(data) == 0 || strings.IndexByte(`"-0123456789`, data[0]) >= 0
}

func (r *request) isNotification() bool { return len(r.ID) == 0 }

// answer is an answer before it is sent, which faults may change.
type answer struct {
	id      json.RawMessage
	result  writer
	failure *rpcError // instead of result
	twice   bool
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// The error codes of JSON-RPC 2.0, section 5.1, and of MCP, that the server uses.
const (
	codeParse          = -32700
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

// send sends the answer to the client, twice if a fault wants it.
func (a *answer) send(l link) error {
	if !a.twice {
		return l.answer(a.write)
	}
	return errors.Join(l.message(a.write), l.message(a.write))
}

// halfLimit bounds the length of half an answer.
const halfLimit = 32 << 10

// half writes the first half of the answer, up to halfLimit.
func (a *answer) half(w io.Writer) error {
	var head headWriter
	if err := a.write(&head); err != nil && !errors.Is(err, errHead) {
		return err
	}
	_, err := w.Write(head.bytes[:len(head.bytes)/2])
	return err
}

var errHead = errors.New("that was enough")

// headWriter keeps the first bytes written to it.
type headWriter struct{ bytes []byte }

func (h *headWriter) Write(p []byte) (int, error) {
	n := min(len(p), 2*halfLimit-len(h.bytes))
	h.bytes = append(h.bytes, p[:n]...)
	if n < len(p) {
		return n, errHead
	}
	return n, nil
}

// notification returns a message without an id; params is JSON.
func notification(method, params string) writer {
	return text(`{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `}`)
}

// quote returns a string as JSON.
func quote(s string) string {
	data, _ := json.Marshal(s) // never fails for a string
	return string(data)
}
