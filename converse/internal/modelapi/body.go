// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"io"
	"net/http"
	"sync/atomic"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
)

// Transcript is a conversation in the form in which it is sent. It keeps the messages of
// earlier exchanges, so that the next exchange appends only new ones, and the encoded tools
// of the last one. The rest of the body after the messages is rewritten each time in the
// same buffer. The zero value is empty.
// A Transcript must not be used concurrently.
type Transcript struct {
	marks []mark // the canisters in text, in order
	text  []byte // the beginning of the body and the messages
	body  *BodyRef
	plain bool // see Forget

	signatures, reasoning bool // that have placeholders; see Fill

	images ImageLimits // see Shrink
	shrunk int         // how often Shrink has changed them

	offered *converse.Toolset
	answers bool
	tools   []byte // for offered and answers; see Tools

	fields fields // of the last request; see Fields
}

// Forget makes the next request encode the whole history again, without the opaque data
// of the server, which it has rejected. It returns false if that was done before.
func (t *Transcript) Forget() bool {
	before := t.plain
	t.marks, t.text, t.plain = nil, nil, true
	return !before
}

// IsPlain reports whether opaque data of the server is left out.
func (t *Transcript) IsPlain() bool { return t.plain }

// Fill makes the next request encode the whole history again, with placeholders for the
// signatures of calls, for the reasoning of answers, or for both, if the server has produced
// none. It returns false if that changes nothing.
func (t *Transcript) Fill(signatures, reasoning bool) bool {
	signatures, reasoning = signatures || t.signatures, reasoning || t.reasoning
	if signatures == t.signatures && reasoning == t.reasoning {
		return false
	}
	t.signatures, t.reasoning = signatures, reasoning
	t.marks, t.text = nil, nil
	return true
}

// Placeholders reports whether signatures and reasoning have placeholders.
func (t *Transcript) Placeholders() (signatures, reasoning bool) { return t.signatures, t.reasoning }

// mark identifies a canister. Canisters with the same ID are equal, because canisters in
// a history do not change; see [converse.Binder].
type mark struct {
	id   string
	kind canister.Kind
}

// Messages are the messages of a history in an encoding.
type Messages struct {
	// Text is what the messages were appended to, with them.
	Text []byte
	// Settled is the length of the part of Text that later canisters cannot change, and
	// Done is the number of canisters in that part.
	Settled, Done int
}

// Body returns the body of a request: opening, the messages of history, and what finish
// appends. write appends the messages of the rest of a history, which starts where an
// earlier part was settled. The bytes are valid until the next call.
func (t *Transcript) Body(history []canister.Canister, opening string, write func(dst []byte, rest []canister.Canister) (Messages, error), finish func(dst []byte) []byte) ([]byte, *BodyRef, error) {
	if t.body != nil && t.body.readers.Load() != 0 {
		// An answer can arrive before the request is fully written. The connection may
		// still read the old bytes, so they must not change.
		t.text = append(make([]byte, 0, cap(t.text)), t.text...)
	}
	t.body = new(BodyRef)
	if !t.begins(history) {
		t.marks, t.text = t.marks[:0], append(t.text[:0], opening...)
	}
	messages, err := write(t.text, history[len(t.marks):])
	if err != nil {
		t.marks, t.text = nil, nil
		return nil, nil, err
	}
	for _, c := range history[len(t.marks) : len(t.marks)+messages.Done] {
		t.marks = append(t.marks, mark{c.Header().ID, c.Kind()})
	}
	body := finish(messages.Text)
	t.text = body[:messages.Settled]
	return body, t.body, nil
}

// begins reports whether the history begins with the canisters in the transcript.
func (t *Transcript) begins(history []canister.Canister) bool {
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

// BodyRef counts the readers of a request's bytes. net/http may read a request even after
// it has returned the response, until it closes the body; see [http.RoundTripper].
type BodyRef struct{ readers atomic.Int32 }

// count counts the readers of a request's body: the current one, and those created for
// other attempts.
func (b *BodyRef) count(req *http.Request) {
	if req.Body == nil || req.Body == http.NoBody {
		return
	}
	req.Body = b.reader(req.Body)
	if again := req.GetBody; again != nil {
		req.GetBody = func() (io.ReadCloser, error) {
			body, err := again()
			if err != nil {
				return nil, err
			}
			return b.reader(body), nil
		}
	}
}

func (b *BodyRef) reader(body io.ReadCloser) io.ReadCloser {
	b.readers.Add(1)
	return &bodyReader{ReadCloser: body, ref: b}
}

// bodyReader is one reader of a body. It counts until it is closed.
type bodyReader struct {
	io.ReadCloser
	ref    *BodyRef
	closed atomic.Bool
}

func (r *bodyReader) Close() error {
	err := r.ReadCloser.Close()
	if r.closed.CompareAndSwap(false, true) {
		r.ref.readers.Add(-1)
	}
	return err
}
