// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/sse"
	"github.com/tidwall/gjson"
)

const (
	// afterFinish limits the wait for the end of a stream whose answer is complete, also
	// if the server sends signs of life. The usage may still follow.
	afterFinish = 10 * time.Second
	// afterDone limits the wait for the end of a response after the last event. The
	// connection can be reused only if the response was read to its end.
	afterDone = 50 * time.Millisecond
	// signsOfLife times IdleTimeout limits how long the server may send nothing but pings,
	// comments and the like. With the default this is an hour: a model that thinks without
	// showing it sends nothing else, and needs 43 minutes for 128,000 tokens at 50 a second.
	signsOfLife = 12
)

var errAnswerTooLarge = errors.New("the answer is larger than MaxAnswerBytes")

// Accumulator assembles an answer from JSON values.
type Accumulator interface {
	// Add processes the data of an event, with the name of the event, or a whole answer,
	// with the name "". It must not keep parts of the value.
	Add(event string, value gjson.Result)
	// State returns what is known after the values so far.
	State() State
}

// State is the state of an answer that is being read.
type State struct {
	Began    bool // part of the answer has arrived
	Whole    bool // a message has arrived, possibly an empty one
	Complete bool // the server has said why the model stopped
	Done     bool // nothing follows
	Fault    bool // the last value was an error instead of an answer
	Idle     bool // the last value was only a sign of life, such as a ping
	// Ran is the name of a tool, perhaps with effects, that the server has begun to run by itself.
	Ran string
}

// Read reads an answer, in one piece or as a stream of events. It ignores the content
// type, which is often wrong. After a nil error the answer is complete, or the caller has
// left the loop.
func (x *Exchange) Read(res *http.Response, answer Accumulator) error {
	in := &answerBody{x: x, in: res.Body, left: x.server.MaxAnswerBytes, limit: x.server.IdleTimeout, patience: signsOfLife * x.server.IdleTimeout}
	events := sse.NewReader(in, x.server.MaxEventBytes)
	defer events.Release()
	first, err := events.Peek()
	switch {
	case err != nil:
		return x.cut(res, answer, err)
	case first == '{' || first == '[':
		return x.readWhole(res, answer, events)
	case first == '<':
		failed := x.Broken(res, false, "the server answers with an HTML page instead of a model's answer; it begins: %s", oneLine(string(beginning(events.Rest()))))
		failed.Code, failed.Advice = converse.CodeAddress, x.server.Redact(otherAddress(x.server, &refusal{html: true}))
		return failed
	}
	return x.readEvents(res, answer, events, in)
}

// readWhole reads an answer that is one JSON object.
func (x *Exchange) readWhole(res *http.Response, answer Accumulator, events *sse.Reader) error {
	text, err := events.All()
	if err != nil {
		return x.cut(res, answer, err)
	}
	if !json.Valid(text) {
		return x.Broken(res, true, "the server's answer is not JSON; it begins: %s", oneLine(string(beginning(text))))
	}
	answer.Add("", gjson.ParseBytes(text))
	state := answer.State()
	x.ran = state.Ran
	if state.Fault {
		return x.fault(res, text, state.Began)
	}
	if !state.Began && !state.Whole {
		return x.Broken(res, true, "the server's answer has no message; it begins: %s", oneLine(string(beginning(text))))
	}
	return nil
}

// readEvents reads an answer that is a stream of events.
func (x *Exchange) readEvents(res *http.Response, answer Accumulator, events *sse.Reader, in *answerBody) error {
	for !x.left {
		event, err := events.Next()
		if err != nil {
			return x.cut(res, answer, err)
		}
		data := bytes.TrimSpace(event.Data)
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			in.drain()
			if !answer.State().Began {
				return x.Broken(res, true, "the stream ended without an answer")
			}
			return nil
		}
		if len(data) == 0 || event.IsPartial && !json.Valid(data) {
			continue // the end of the stream follows
		}
		if !json.Valid(data) {
			return x.Broken(res, true, "an event of the stream is not JSON; it begins: %s", oneLine(string(beginning(data))))
		}
		answer.Add(event.Name, gjson.ParseBytes(data))
		state := answer.State()
		x.ran = state.Ran
		if !state.Idle {
			in.waited = 0
		}
		switch {
		case state.Fault || event.Name == "error":
			return x.fault(res, data, state.Began)
		case state.Done:
			in.drain()
			return nil
		case state.Complete:
			x.mayBeOver = true
			in.limit, in.patience = atMost(in.limit, afterFinish), atMost(in.patience, afterFinish)
		}
	}
	return nil
}

// cut returns the error for an answer that ended with err. It is nil if the server had
// said why the model stopped, unless a size limit was exceeded or the caller ended the
// exchange.
func (x *Exchange) cut(res *http.Response, answer Accumulator, err error) error {
	var quiet *silence
	silent := errors.As(context.Cause(x.ctx), &quiet)
	switch {
	case errors.Is(err, errAnswerTooLarge):
		return x.Broken(res, false, "%w", err)
	case errors.Is(err, sse.ErrTooLarge):
		return x.Broken(res, false, "%w; see MaxEventBytes", err)
	case answer.State().Complete && (silent || x.ctx.Err() == nil):
		return nil
	case err == io.EOF:
		return x.Broken(res, true, "the stream broke off: it ended before the model reported why it stopped: %w", io.ErrUnexpectedEOF)
	}
	return x.Broken(res, true, "the answer broke off: %w", err)
}

// fault describes an error that the server sent instead of an answer, or within one that has
// begun.
func (x *Exchange) fault(res *http.Response, text []byte, began bool) error {
	r := explain(text)
	failed := x.Broken(res, false, "")
	x.server.describe(failed, r)
	x.heed(res, failed)
	if began { // the model has worked, which costs
		failed.Err = io.ErrUnexpectedEOF
	}
	failed.Message = "the server broke the answer off: " + failed.Message
	return failed
}

// answerBody is a response body with a time limit for each read, one for the wait for more of
// the answer, and a limit on its size.
type answerBody struct {
	x        *Exchange
	in       io.Reader
	left     int
	limit    time.Duration // of a read
	patience time.Duration // of the wait for more of the answer
	waited   time.Duration // since more of the answer came
}

func (b *answerBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("%w (%d)", errAnswerTooLarge, b.x.server.MaxAnswerBytes)
	}
	began := time.Now()
	if rest := max(b.patience-b.waited, 1); b.patience > 0 && rest < b.limit {
		b.x.watch.until(rest, &silence{limit: b.patience, alive: true})
	} else {
		b.x.watch.within(b.limit)
	}
	n, err := b.in.Read(p[:min(len(p), b.left)])
	b.x.watch.stop()
	b.waited += time.Since(began)
	b.left -= n
	return n, err
}

// atMost returns the smaller limit. A limit that is not positive means no limit.
func atMost(limit, most time.Duration) time.Duration {
	return min(cmp.Or(max(limit, 0), most), most)
}

// drain reads to the end of the body if it is near.
func (b *answerBody) drain() {
	b.x.mayBeOver = true
	b.limit = atMost(b.limit, afterDone)
	var rest [512]byte
	for range 8 {
		if _, err := b.Read(rest[:]); err != nil {
			return
		}
	}
}

// beginning returns the beginning of text, long enough for [oneLine].
func beginning(text []byte) []byte { return text[:min(len(text), 1000)] }
