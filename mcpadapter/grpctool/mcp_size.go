// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"fmt"
	"regexp"

	"github.com/consort-go/consort/internal/logevent"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"go.uber.org/zap"
)

// receivedTooLarge matches gRPC's messages about a frame that exceeds Options.MaxMessage.
var receivedTooLarge = regexp.MustCompile(`received message.* larger than max`)

// tooLarge returns the error for a message of that size.
func tooLarge(size, limit int) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("The message has %d bytes; at most %d are allowed.", size, limit)}
}

// refuse answers a request that is too large to be sent as the server would, and replaces a
// response by an error. Write must not return an error for them: the SDK makes no more calls on
// a connection whose write has failed (go-sdk, internal/jsonrpc2).
func (c mcpConnection) refuse(ctx context.Context, message jsonrpc.Message, size int) error {
	refusal := tooLarge(size, c.source.options.MaxMessage)
	switch message := message.(type) {
	case *jsonrpc.Response:
		return c.Write(ctx, &jsonrpc.Response{ID: message.ID, Error: refusal})
	case *jsonrpc.Request:
		if message.IsCall() {
			go c.answer(&jsonrpc.Response{ID: message.ID, Error: refusal}) // the caller may be the reader
			return nil
		}
	}
	c.source.options.Logger.Warn("a notification is not sent", logevent.FrameRefused, zap.Error(refusal))
	return nil
}

// answer passes a response to the reader, unless the stream ends first.
func (c mcpConnection) answer(response *jsonrpc.Response) {
	select {
	case c.messages <- response:
	case <-c.ended:
	}
}

// fitting returns the line. If the line is a response that is too large for a frame, fitting
// returns an error with the same ID.
func fitting(line []byte, limit int) []byte {
	const frame = 16 // the most that a frame adds to its message
	if len(line)+frame <= limit {
		return line
	}
	message, err := jsonrpc.DecodeMessage(line)
	response, ok := message.(*jsonrpc.Response)
	if err != nil || !ok {
		return line
	}
	refusal := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf(
		"The result has %d bytes; at most %d are allowed. The tool may have run; request less data.", len(line), limit)}
	text, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: response.ID, Error: refusal})
	if err != nil {
		return line
	}
	return text
}
