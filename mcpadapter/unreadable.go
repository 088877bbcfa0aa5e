// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"errors"

	"github.com/consort-go/consort/internal/subprocess"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/mcpadapter/internal/outline"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// unreadableError is the error of a response that replaces an answer that could not be
// decoded.
type unreadableError struct {
	broken *protocolError
	sure   bool // it is certainly an answer, and does not only look like one
}

func (e *unreadableError) Error() string { return e.broken.Error() }

// unreadableAnswer returns an error response for text that is meant as an answer but is
// not a valid message: an object with an id and no method that is truncated, too deeply
// nested or violates the rules of JSON-RPC. It returns nil for any other text.
func unreadableAnswer(text []byte) *jsonrpc.Response {
	raw, sure := outline.AnswerID(text)
	id, err := jsonrpc.MakeID(raw)
	_, why := jsonrpc.DecodeMessage(text)
	if raw == nil || err != nil || why == nil {
		return nil
	}
	reason := "an answer is not a JSON-RPC message: " + subprocess.CleanLine(textcut.Bytes(why.Error(), wire.MaxQuoted))
	return &jsonrpc.Response{ID: id, Error: &unreadableError{&protocolError{reason, true}, sure}}
}

// isFor reports whether a response is to be passed to the SDK. A response that replaces
// an undecodable answer fails the request with its ID, and is dropped if there is none.
// If the text only looks like an answer, it fails a request only if that is the only
// one in flight.
func (i *interceptor) isFor(response *jsonrpc.Response) bool {
	unreadable, ok := errors.AsType[*unreadableError](response.Error)
	if !ok {
		return true
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	x := i.exchanges[response.ID]
	if x == nil || !unreadable.sure && len(i.exchanges) > 1 {
		return false
	}
	x.reject(response, unreadable.broken.what)
	return true
}

// reject makes an answer of the server an error that says how it broke the protocol.
func (x *exchange) reject(response *jsonrpc.Response, what string) {
	var reason error = &protocolError{what, true}
	x.rejected.Store(&reason)
	response.Result, response.Error = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: what}
}
