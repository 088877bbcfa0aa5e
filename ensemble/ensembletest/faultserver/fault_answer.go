// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"cmp"
	"encoding/json"
	"io"
	"strconv"
	"time"
)

// answerKinds returns the faults of answers as messages, independent of their content.
func answerKinds() []kind {
	return []kind{
		{Info{"answer-twice", "The answer is sent twice.",
			answering(), answering()}, answerTwice},
		{Info{"answer-late", "The answer is sent after the client cancelled the request, or after Delay (30s) if it did not. Over HTTP, when the client has also left the response, it is sent on the stream that the client keeps open.",
			[]Place{"before-effect", "after-effect"}, []Place{"before-effect", "after-effect"}}, answerLate},
		{Info{"wrong-id", "The answer has an id that was never used. The right answer is never sent.",
			answering(), answering()}, wrongID},
		{Info{"broken-json", "The first half of the answer is sent as if it were complete.",
			answering(), answering()}, brokenJSON},
		{Info{"half-then-die", "Half of the answer is sent without an end; then as \"die\".",
			answering(), answering()}, halfThenDie},
		{Info{"half-then-silence", "Half of the answer is sent without an end, and then nothing. Over stdio nothing is written again; over HTTP the response stays open.",
			answering(), answering()}, halfThenSilence},
	}
}

func answerTwice(o *occasion) bool {
	o.answer.twice = true
	return true
}

func answerLate(o *occasion) bool {
	timer := time.NewTimer(cmp.Or(o.rule.Delay, 30*time.Second))
	defer timer.Stop()
	select {
	case <-o.cancelled:
	case <-timer.C:
	case <-o.server.ctx.Done():
		return false
	}
	return true
}

func wrongID(o *occasion) bool {
	o.answer.id = otherID(o.answer.id)
	_ = o.link.message(o.answer.write)
	return o.hang()
}

// otherID returns an id that clients will not reach soon.
func otherID(id json.RawMessage) json.RawMessage {
	if n, err := strconv.ParseInt(string(id), 10, 32); err == nil {
		return strconv.AppendInt(nil, n+1_000_000_000, 10)
	}
	return json.RawMessage(`"nobody asked"`)
}

func brokenJSON(o *occasion) bool {
	_ = o.link.answer(o.answer.half)
	return false
}

func halfThenDie(o *occasion) bool {
	_ = o.link.raw(o.half())
	return o.die()
}

func halfThenSilence(o *occasion) bool {
	_ = o.link.raw(o.half())
	o.link.mute()
	return o.hang()
}

// half returns the first half of the answer as it is sent.
func (o *occasion) half() writer {
	return func(w io.Writer) error {
		if err := o.eventStart(w); err != nil {
			return err
		}
		return o.answer.half(w)
	}
}

// eventStart begins an SSE event if messages are sent as events.
func (o *occasion) eventStart(w io.Writer) error {
	if o.server.transport != viaHTTP {
		return nil
	}
	_, err := io.WriteString(w, "event: message\ndata: ")
	return err
}
