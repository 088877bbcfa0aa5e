// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/subprocess"
	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Reasons why a connection has ended.
var (
	errClosed      = errors.New("the connection is closed")
	errPeerClosed  = errors.New("the server closed the connection")
	errSessionGone = errors.New("the server no longer knows the session")
)

// rpcCodes maps the codes of JSON-RPC errors (JSON-RPC 2.0, § 5.1; MCP 2025-11-25,
// schema; SEP-2243, SEP-2575). Any other code is the tool's own failure.
var rpcCodes = map[int64]invoker.Code{
	jsonrpc.CodeParseError:                    invoker.Protocol,
	jsonrpc.CodeInvalidRequest:                invoker.Protocol,
	jsonrpc.CodeMethodNotFound:                invoker.ToolNotFound,
	jsonrpc.CodeInvalidParams:                 invoker.InvalidArguments,
	-32002:                                    invoker.NotFound, // resource not found
	mcp.CodeHeaderMismatch:                    invoker.Protocol,
	mcp.CodeUnsupportedProtocolVersion:        invoker.Protocol,
	mcp.CodeURLElicitationRequired:            invoker.Unauthorized,
	mcp.CodeMissingRequiredClientCapabilities: invoker.ExecutionFailed,
}

// statusError is an HTTP status other than success.
type statusError struct {
	status     int
	retryAfter time.Duration // 0 if the server did not say
	message    string        // from the server; may be empty
	otherToken bool          // the request had another one than the handshake
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("HTTP status %d %s", e.status, http.StatusText(e.status))
	if e.message != "" {
		text += ": " + e.message
	}
	if e.retryAfter > 0 {
		text += fmt.Sprintf(" (try again in %s)", e.retryAfter)
	}
	return text
}

func (e *statusError) unauthorized() bool {
	return e.status == http.StatusUnauthorized || e.status == http.StatusForbidden
}

// transient reports whether the server cannot handle any request at the moment.
func (e *statusError) transient() bool {
	return e.status == http.StatusTooManyRequests || e.status == http.StatusServiceUnavailable
}

// refused reports whether the server rejected the request without acting on it.
func (e *statusError) refused() bool {
	return e.transient() || e.status < 500 && e.status != http.StatusRequestTimeout
}

// authError says that no token could be obtained.
type authError struct{ cause error }

func (e *authError) Error() string {
	text := cleaned(e.cause).Error()
	if errors.Is(e.cause, ensemble.ErrNeedsLogin) {
		return text
	}
	return "authorization failed: " + text
}

func (e *authError) Unwrap() error { return e.cause }

// protocolError says that the server violated the protocol.
type protocolError struct {
	what     string
	answered bool // in what may be the answer of a call that ran
}

func (e *protocolError) Error() string { return e.what }

// tooLargeError says that an answer exceeds the limit.
type tooLargeError struct{ limit int }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("the server's answer has more than %d bytes", e.limit)
}

// neverLeft reports whether an error shows that the request did not reach the server or
// was rejected by it without effect: no connection could be made, no token could be
// obtained, or the server refused it. A lost session does not show that: it can be lost
// while a call runs.
func neverLeft(err error) bool {
	var status *statusError
	var denied *authError
	switch {
	case nobodyThere(err), errors.As(err, &denied), errors.Is(err, subprocess.ErrNotSent):
		return true
	case errors.As(err, &status):
		return status.refused()
	}
	return false
}

// nobodyThere reports whether no network connection could be made.
func nobodyThere(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// failure maps the error of a request to a failure. A harmless request has no effect
// that the caller would have to check. The tool's own hints are not considered here:
// the ensemble decides how far to trust them.
func (r *requester) failure(err error, x *exchange, harmless bool) *invoker.Failure {
	if rejected := x.rejected.Load(); rejected != nil {
		err = *rejected
	}
	var status *statusError
	var denied *authError
	var broken *protocolError
	var untold *untoldError
	clean := cleaned(err)
	switch {
	case errors.Is(err, context.Canceled) && x.left.Load() && isTooLarge(r.because(nil)): // the lost connection ended it
		return tooLarge(r.because(nil), harmless)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return interrupted(err, x, harmless)
	case errors.As(err, &untold):
		return &invoker.Failure{Code: invoker.Unauthorized, Message: "The call was not made: " + untold.Error() + ".", Cause: clean}
	case errors.As(err, &denied):
		if own, ok := errors.AsType[*invoker.Failure](denied.cause); ok {
			return &invoker.Failure{Code: own.Code, Message: own.Message, Retryable: own.Retryable, Cause: clean}
		}
		return &invoker.Failure{Code: invoker.Unauthorized, Message: "The server requires authorization, which could not be obtained.", Cause: clean}
	case errors.As(err, &status):
		return status.failure(harmless, clean)
	case errors.As(err, &broken) && broken.answered && !harmless:
		return &invoker.Failure{Code: invoker.OutcomeUnknown, Message: "The server broke its protocol: " + broken.what + ". The call may or may not have taken effect: find out before you call it again.", Cause: clean}
	case errors.As(err, &broken) && (harmless || !errors.Is(r.because(nil), broken)): // otherwise it ended the connection, while the call ran
		return &invoker.Failure{Code: invoker.Protocol, Message: "The server broke its protocol: " + broken.what + ".", Cause: clean}
	case isTooLarge(err):
		return tooLarge(clean, harmless)
	case x.refusal() != nil:
		return ofRPC(x.refusal(), clean)
	case x.answer.Load() != nil && !errors.Is(err, errClosed): // it asked for something
		return &invoker.Failure{Code: invoker.ExecutionFailed, Message: "The server requested something that this program could not provide: " + clean.Error(), Cause: clean}
	}
	return r.lostCall(clean, x.left.Load(), harmless)
}

// lostCall returns the failure of a request whose connection was lost; sent says whether
// the request may have reached the server before.
func (r *requester) lostCall(err error, sent, harmless bool) *invoker.Failure {
	cause := r.because(err)
	switch {
	case sent && isTooLarge(cause):
		return tooLarge(cause, harmless)
	case sent && !harmless:
		return &invoker.Failure{Code: invoker.OutcomeUnknown, Message: "The connection to the server was lost while the call ran. It may or may not have taken effect: find out before you call it again.", Cause: cause}
	}
	return &invoker.Failure{Code: invoker.Unavailable, Message: "The server cannot be reached.", Retryable: true, Cause: cause}
}

// isTooLarge reports whether an error says that an answer exceeded the limit.
func isTooLarge(err error) bool {
	var large *tooLargeError
	return errors.Is(err, subprocess.ErrMessageTooLarge) || errors.As(err, &large)
}

// tooLarge returns the failure of a request whose answer exceeds the limit.
func tooLarge(cause error, harmless bool) *invoker.Failure {
	text := "An answer of the server was too large."
	if !harmless {
		text += " The tool may have run; request less data."
	}
	return &invoker.Failure{Code: invoker.ResultTooLarge, Message: text, Cause: cause}
}

// because returns the reason for the loss of the connection, if it is known, and
// otherwise err.
func (r *requester) because(err error) error {
	if lost := r.link.err(); lost != nil {
		return lost
	}
	select {
	case <-r.interceptor.broken:
		return cleaned(r.interceptor.cause)
	default:
		return err
	}
}

// interrupted returns the failure of a request whose own context ended. Only for a
// request that is not harmless does it say what effect the request may have had.
func interrupted(err error, x *exchange, harmless bool) *invoker.Failure {
	told := *invoker.AsFailure(err)
	switch {
	case !x.left.Load() && harmless:
		told.Message, told.Retryable = "The request ended before it reached the server.", true
	case !x.left.Load():
		told.Message, told.Retryable = "The call ended before it reached the server. Nothing was done.", true
	case harmless && told.Code == invoker.Timeout:
		told.Message = "The server did not answer in time."
	case harmless:
		told.Message = "The request was interrupted."
	}
	return &told
}

// failure maps the status (RFC 9110, § 15). A gateway error does not show whether the
// tool ran.
func (e *statusError) failure(harmless bool, clean error) *invoker.Failure {
	f := &invoker.Failure{Cause: clean}
	switch {
	case e.unauthorized():
		f.Code, f.Message = invoker.Unauthorized, "The server rejected this: "+clean.Error()+"."
	case e.transient():
		f.Code, f.Retryable, f.RetryAfter, f.Message = invoker.Unavailable, true, e.retryAfter, "The server is busy. "+e.wait()
		f.Content = canister.Texts(f.Message) // it is an answer: the call is not made again, even if the connection ends with it
	case e.status == http.StatusNotFound:
		f.Code, f.Message = invoker.Unavailable, "The server does not exist at this address: "+clean.Error()+"."
	case e.status == http.StatusRequestEntityTooLarge:
		f.Code, f.Message = invoker.InvalidArguments, "The arguments are too large for the server."
	case e.refused():
		f.Code, f.Message = invoker.Protocol, "The server did not understand the request: "+clean.Error()+"."
	case harmless:
		f.Code, f.Retryable, f.RetryAfter, f.Message = invoker.Unavailable, true, e.retryAfter, "The server failed. "+e.wait()
	default:
		f.Code, f.Message = invoker.OutcomeUnknown, "The server failed ("+clean.Error()+"). The call may or may not have taken effect: find out before you call it again."
	}
	return f
}

func (e *statusError) wait() string {
	if e.retryAfter <= 0 {
		return "Try again later."
	}
	return fmt.Sprintf("Try again in %s.", e.retryAfter)
}

// ofRPC returns the failure of a request that the server answered with an error.
func ofRPC(rpc *jsonrpc.Error, clean error) *invoker.Failure {
	code := cmp.Or(rpcCodes[rpc.Code], invoker.ExecutionFailed)
	message := cmp.Or(rpc.Message, fmt.Sprintf("The server answered with error %d.", rpc.Code))
	if rpc.Code == mcp.CodeURLElicitationRequired {
		message = strings.Join(append([]string{message}, pagesToVisit(rpc.Data)...), " ")
	}
	return &invoker.Failure{Code: code, Message: message, Cause: clean}
}

// pagesToVisit lists the web pages that a person has to visit before the call can
// succeed (MCP 2025-11-25, client/elicitation § URL mode).
func pagesToVisit(data json.RawMessage) []string {
	var asked struct {
		Elicitations []struct{ Message, URL string }
	}
	if json.Unmarshal(data, &asked) != nil {
		return nil
	}
	var pages []string
	for _, e := range asked.Elicitations {
		pages = append(pages, fmt.Sprintf("%s (%s)", e.Message, e.URL))
	}
	return pages
}

// cleaned removes the URL from an error: its query may hold a secret, and net/http
// includes it in the text of every failure.
func cleaned(err error) error {
	var of *url.Error
	if err == nil || !errors.As(err, &of) {
		return err
	}
	host := "the server"
	if u, parse := url.Parse(of.URL); parse == nil && u.Host != "" {
		host = u.Host
	}
	return fmt.Errorf("%s: %w", host, of.Err)
}
