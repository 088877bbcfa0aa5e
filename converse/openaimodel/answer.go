// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"bytes"
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
	// afterFinish limits the wait for the end of a stream whose answer is complete. The
	// usage may still follow.
	afterFinish = 10 * time.Second
	// afterDone limits the wait for the end of a response after [DONE]. The connection
	// can be reused only if the response was read to its end.
	afterDone = 50 * time.Millisecond
)

var errAnswerTooLarge = errors.New("the answer is larger than MaxAnswerBytes")

// read reads an answer, in one piece or as a stream. It ignores the content type, which
// is often wrong.
func (x *exchange) read(res *http.Response) (converse.Reply, error) {
	in := &answerBody{x: x, in: res.Body, left: x.m.opts.MaxAnswerBytes, limit: x.m.opts.IdleTimeout}
	events := sse.NewReader(in, x.m.opts.MaxEventBytes)
	answer := &accumulator{emit: x.delta, tools: x.request.Tools}
	first, err := events.Peek()
	switch {
	case err != nil:
		err = x.cut(res, answer, err)
	case first == '{' || first == '[':
		err = x.readWhole(res, answer, io.MultiReader(bytes.NewReader(events.Rest()), in))
	case first == '<':
		err = x.m.broken(res, false, "the server answers with a page, not with a chat completion; is BaseURL right? It begins: %s", plain(string(clipBytes(events.Rest()))))
	default:
		err = x.readEvents(res, answer, events, in)
	}
	if err != nil || x.left {
		return converse.Reply{}, err
	}
	reply, err := answer.reply(x.m, x.request.NewID)
	if err != nil {
		return reply, x.m.broken(res, false, "%w", err)
	}
	return reply, nil
}

// readWhole reads an answer that is one JSON object.
func (x *exchange) readWhole(res *http.Response, answer *accumulator, in io.Reader) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return x.cut(res, answer, err)
	}
	if !json.Valid(text) {
		return x.m.broken(res, true, "the server's answer is not JSON; it begins: %s", plain(string(clipBytes(text))))
	}
	answer.add(gjson.ParseBytes(text))
	if answer.fault.Exists() {
		return x.fault(res, text)
	}
	if !answer.began && !answer.chosen {
		return x.m.broken(res, true, "the server's answer holds no message; it begins: %s", plain(string(clipBytes(text))))
	}
	return nil
}

// readEvents reads an answer that is a stream of events.
func (x *exchange) readEvents(res *http.Response, answer *accumulator, events *sse.Reader, in *answerBody) error {
	for !x.left {
		event, err := events.Next()
		if err != nil {
			return x.cut(res, answer, err)
		}
		data := bytes.TrimSpace(event.Data)
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			in.drain()
			if !answer.began {
				return x.m.broken(res, true, "the stream ended without an answer")
			}
			return nil
		}
		if len(data) == 0 || event.IsPartial && !json.Valid(data) {
			continue // the end of the stream follows
		}
		if !json.Valid(data) {
			return x.m.broken(res, true, "an event of the stream is not JSON; it begins: %s", plain(string(clipBytes(data))))
		}
		answer.add(gjson.ParseBytes(data))
		if answer.fault.Exists() || event.Name == "error" {
			return x.fault(res, data)
		}
		if answer.finish != "" {
			in.atMost(afterFinish)
		}
	}
	return nil
}

// cut returns the error for an answer that ended with err. It is nil if the server had
// sent a finish reason, unless a size limit was exceeded or the caller ended the
// exchange.
func (x *exchange) cut(res *http.Response, answer *accumulator, err error) error {
	var quiet *silence
	silent := errors.As(context.Cause(x.ctx), &quiet)
	switch {
	case errors.Is(err, errAnswerTooLarge):
		return x.m.broken(res, false, "%w", err)
	case errors.Is(err, sse.ErrTooLarge):
		return x.m.broken(res, false, "%w; see MaxEventBytes", err)
	case answer.finish != "" && (silent || x.ctx.Err() == nil):
		return nil
	case err == io.EOF:
		return x.m.broken(res, true, "the stream broke off: it ended before the model had said why it stopped: %w", io.ErrUnexpectedEOF)
	}
	return x.m.broken(res, true, "the answer broke off: %w", err)
}

// fault describes an error that the server sent instead of an answer, or within one.
func (x *exchange) fault(res *http.Response, text []byte) error {
	message, code := explain(text)
	code = contextCode(0, message, code)
	failed := x.m.broken(res, retryable(0, code), "the server broke the answer off: %s", message)
	failed.Code = x.m.redact(code)
	return failed
}

// answerBody is a response body with a time limit for each read and a limit on its size.
type answerBody struct {
	x     *exchange
	in    io.Reader
	left  int
	limit time.Duration
}

func (b *answerBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("%w (%d)", errAnswerTooLarge, b.x.m.opts.MaxAnswerBytes)
	}
	b.x.watch.within(b.limit)
	n, err := b.in.Read(p[:min(len(p), b.left)])
	b.x.watch.stop()
	b.left -= n
	return n, err
}

// atMost reduces the time limit.
func (b *answerBody) atMost(limit time.Duration) {
	if b.limit <= 0 || b.limit > limit {
		b.limit = limit
	}
}

// drain reads to the end of the body if it is near.
func (b *answerBody) drain() {
	b.atMost(afterDone)
	var rest [512]byte
	for range 8 {
		if _, err := b.Read(rest[:]); err != nil {
			return
		}
	}
}

// clipBytes returns the beginning of text, long enough for [plain].
func clipBytes(text []byte) []byte { return text[:min(len(text), 1000)] }
