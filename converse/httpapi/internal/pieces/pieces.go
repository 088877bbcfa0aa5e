// SPDX-License-Identifier: Apache-2.0

// Package pieces sends a message while it is being written.
package pieces

import (
	"errors"
	"strings"

	"github.com/consort-go/consort/canister"
)

// ErrRewritten says that the text of a message does not begin with the pieces that were sent.
var ErrRewritten = errors.New("httpapi: the text of the message does not begin with the pieces that were sent")

// Writer compares the pieces of a message with the text that was sent, because a stream of
// OpenAI's API cannot take text back: it ends with [ErrRewritten] if the message is another one. It is not safe for
// concurrent use.
type Writer struct {
	// Send sends the next part of the text of a message, which can be empty.
	Send func(piece string) error

	sent    string // of the current message
	written string // of the current message, since it was begun again
}

// Text adds a piece of the current message.
func (w *Writer) Text(piece string) error {
	w.written += piece
	return w.catchUp(w.written)
}

// Again begins the current message again.
func (w *Writer) Again() error {
	w.written = ""
	return nil
}

// Complete sends the rest of a message that is in the log, and returns its text. A message
// that was cancelled has the text that was sent.
func (w *Writer) Complete(message canister.Assistant) (text string, err error) {
	if text = w.sent; message.Finish != canister.FinishCancelled {
		text = canister.TextOf(message.Content)
		err = w.catchUp(text)
		if err == nil && len(w.sent) > len(text) {
			err = ErrRewritten
		}
	}
	w.sent, w.written = "", ""
	return text, err
}

func (w *Writer) catchUp(text string) error {
	if len(text) <= len(w.sent) {
		if !strings.HasPrefix(w.sent, text) {
			return ErrRewritten
		}
		return nil
	}
	rest, is := strings.CutPrefix(text, w.sent)
	if !is {
		return ErrRewritten
	}
	w.sent = text
	return w.Send(rest)
}
