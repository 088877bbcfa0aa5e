// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
)

const opening = `{"messages":[`

// transcript is a conversation in the form in which it is sent. It keeps the messages of
// earlier exchanges, so that the next exchange appends only new ones. The rest of the
// body after the messages is rewritten each time in the same buffer.
type transcript struct {
	marks []mark // the canisters in text, in order
	text  []byte // the opening and the messages, without the rest of a body
	// offered are the tools of the previous exchange, and tools their encoded form. They
	// are kept here because the model's cache is too small for many rosters.
	offered *converse.Toolset
	tools   *encodedTools
	// lent counts the readers that may still read the previous body.
	lent *loan
}

// mark identifies a canister. Canisters with the same ID are equal, because canisters in
// a history do not change; see [converse.Binder].
type mark struct {
	id   string
	kind canister.Kind
}

// body returns the body of a request. The bytes are valid until the next call.
func (t *transcript) body(ctx context.Context, m *Model, request *converse.Request) ([]byte, *loan, error) {
	fields, err := m.fieldsFor(request)
	if err != nil {
		return nil, nil, fmt.Errorf("openaimodel: %w", err)
	}
	if t.lent != nil && t.lent.out.Load() != 0 {
		// An answer can arrive before the request is fully written. The connection may
		// still read the old bytes, so they must not change.
		t.text = append(make([]byte, 0, cap(t.text)), t.text...)
	}
	t.lent = new(loan)
	if !t.begins(request.History) {
		t.marks, t.text = t.marks[:0], append(t.text[:0], opening...)
	}
	writer := messageWriter{m: m, dst: t.text, settled: len(t.text)}
	done, err := writer.write(request.History[len(t.marks):])
	if err != nil {
		t.marks, t.text = nil, nil
		return nil, nil, err
	}
	for _, c := range request.History[len(t.marks) : len(t.marks)+done] {
		t.marks = append(t.marks, mark{c.Header().ID, c.Kind()})
	}
	if t.offered != request.Tools {
		t.offered, t.tools = request.Tools, m.encode(ctx, request)
	}
	body := m.appendTail(writer.dst, request, fields, t.tools)
	t.text = body[:writer.settled]
	return body, t.lent, nil
}

// begins reports whether the history begins with the canisters in the transcript.
func (t *transcript) begins(history []canister.Canister) bool {
	if len(t.text) == 0 || len(history) < len(t.marks) {
		return false
	}
	for i, known := range t.marks {
		c := history[i]
		if c == nil || known.id == "" || known.id != c.Header().ID || known.kind != c.Kind() {
			return false
		}
	}
	return true
}

// loan counts the readers of a request's bytes. net/http may read a request even after it
// has returned the response, until it closes the body; see [http.RoundTripper].
type loan struct{ out atomic.Int32 }

// lend registers the readers of a request's body: the current one, and those created for
// other attempts.
func (l *loan) lend(req *http.Request) {
	if req.Body == nil || req.Body == http.NoBody {
		return
	}
	req.Body = l.reader(req.Body)
	if again := req.GetBody; again != nil {
		req.GetBody = func() (io.ReadCloser, error) {
			body, err := again()
			if err != nil {
				return nil, err
			}
			return l.reader(body), nil
		}
	}
}

func (l *loan) reader(body io.ReadCloser) io.ReadCloser {
	l.out.Add(1)
	return &lentReader{ReadCloser: body, loan: l}
}

// lentReader is one reader of a loan. It counts until it is closed.
type lentReader struct {
	io.ReadCloser
	loan   *loan
	closed atomic.Bool
}

func (r *lentReader) Close() error {
	err := r.ReadCloser.Close()
	if r.closed.CompareAndSwap(false, true) {
		r.loan.out.Add(-1)
	}
	return err
}
