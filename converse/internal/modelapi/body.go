// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"encoding/json"
	"io"
	"maps"
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

	forgotten mark            // the last canister of the history when the server rejected its own data; see Forget
	plain     map[string]bool // the answers that are sent without that data; see LeaveOut
	lastPlain string          // the last of them
	note      string          // see Note

	signatures, reasoning bool // that have placeholders; see Fill

	alternates bool // see Alternate

	images  ImageLimits // see Shrink
	refused Media       // see Omit and Recall
	passing Media       // of refused, the images that may be downloaded later: they are not noted
	unnoted bool        // the history does not have all of refused
	shrunk  int         // how often Shrink and Omit have changed them

	offered *converse.Toolset
	answers bool
	tools   []byte // for offered and answers; see Tools

	fields fields // of the last request; see Fields
}

// Forget makes the next requests leave out the opaque data of the server, which it has
// rejected, in the answers of a history. Later answers keep theirs. It returns false if that
// was done before, for the same history.
func (t *Transcript) Forget(history []canister.Canister) bool {
	if len(history) == 0 {
		return false
	}
	before, last := t.forgotten, history[len(history)-1]
	t.forgotten = mark{last.Header().ID, last.Kind()}
	return before != t.forgotten
}

// LeaveOut decides which answers of a history are sent without opaque data of the server: the
// answers among the first n canisters, in the history that was passed to [Transcript.Forget],
// and before an answer that [Transcript.Note] has marked with the key.
func (t *Transcript) LeaveOut(history []canister.Canister, n int, key string) {
	known, forgotten, answer := lastAnswer(history[:n]), -1, -1
	for i, c := range history {
		if a, ok := c.(canister.Assistant); ok {
			if a.Metadata[key] != nil {
				known = max(known, answer)
			}
			answer = i
		}
		if t.forgotten.id != "" && t.forgotten.is(c) {
			forgotten = answer
		}
	}
	last := max(known, forgotten)
	t.setPlain(history[:last+1])
	t.note = ""
	if forgotten > known {
		t.note = key
	}
}

// Note marks the answer to a request if the server had rejected data of earlier answers, or
// images or files, that were left out. Because of the marks other transcripts leave out the
// same, and the server does not reject it again.
func (t *Transcript) Note(s *Server, answer *canister.Assistant) {
	marks := canister.Fields{}
	if t.unnoted {
		marks = t.lasting().mark(s)
	}
	if t.note != "" {
		marks[t.note] = json.RawMessage("true")
	}
	if len(marks) > 0 {
		maps.Copy(marks, answer.Metadata)
		answer.Metadata = marks
	}
}

// lastAnswer returns the index of the last answer in a history, or -1.
func lastAnswer(history []canister.Canister) int {
	for i := len(history) - 1; i >= 0; i-- {
		if _, ok := history[i].(canister.Assistant); ok {
			return i
		}
	}
	return -1
}

// setPlain sets the answers that are sent without opaque data: the answers in beginning,
// which ends with the last of them. If they are others than before, the next request encodes
// the whole history again.
func (t *Transcript) setPlain(beginning []canister.Canister) {
	last := ""
	if n := len(beginning); n > 0 {
		last = beginning[n-1].Header().ID
	}
	if last == t.lastPlain {
		return
	}
	t.plain, t.lastPlain = map[string]bool{}, last
	for _, c := range beginning {
		if a, ok := c.(canister.Assistant); ok {
			t.plain[a.ID] = true
		}
	}
	t.marks, t.text = nil, nil
}

// LeavesOut reports whether an answer is sent without opaque data of the server.
func (t *Transcript) LeavesOut(answer canister.Assistant) bool { return t.plain[answer.ID] }

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

// Alternate makes the next request encode the whole history again if it sets another order of roles
// than the last one.
func (t *Transcript) Alternate(roles bool) {
	if roles != t.alternates {
		t.alternates = roles
		t.marks, t.text = nil, nil
	}
}

// mark identifies a canister. Canisters with the same ID are equal, because canisters in
// a history do not change; see [converse.Binder].
type mark struct {
	id   string
	kind canister.Kind
}

// is reports whether a canister is the one.
func (m mark) is(c canister.Canister) bool {
	return c != nil && m.id != "" && m.id == c.Header().ID && m.kind == c.Kind()
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
		if !known.is(history[i]) {
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
