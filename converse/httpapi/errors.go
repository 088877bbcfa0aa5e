// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi/internal/lists"
	"github.com/consort-go/consort/converse/httpapi/internal/pieces"
	"github.com/consort-go/consort/converse/httpapi/internal/repeats"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/invoker"
)

// apiError is an error as a client reads it.
type apiError struct {
	status     int
	retryAfter int // seconds

	// Code is for programs, Message says what happened, and Advice what to do. Param names
	// the part of the request that was wrong.
	Code    string `json:"code"`
	Message string `json:"message"`
	Advice  string `json:"advice,omitempty"`
	Param   string `json:"param,omitempty"`
	// Type is a member of OpenAI's errors.
	Type string `json:"type"`
}

// Error implements error.
func (e *apiError) Error() string { return e.Message }

// body returns the JSON form.
func (e *apiError) body() []byte {
	text, _ := jsontext.Encode(map[string]*apiError{"error": e}) // texts have a JSON form
	return text
}

// failure returns an error with a status.
func failure(status int, code, message, advice string) *apiError {
	e := &apiError{status: status, Code: code, Message: message, Advice: advice, Type: "invalid_request_error"}
	if status >= http.StatusInternalServerError {
		e.Type = "server_error"
	}
	return e
}

// about sets the part of the request that was wrong.
func (e *apiError) about(param string) *apiError { e.Param = param; return e }

// invalid returns the error of a request with a wrong part.
func invalid(param, message, advice string) *apiError {
	return failure(http.StatusBadRequest, "invalid_request", fmt.Sprintf("%q: %s", param, message), advice).about(param)
}

// noConversation answers requests for a conversation that does not exist, and for one of
// another owner.
func noConversation() *apiError {
	return failure(http.StatusNotFound, "conversation_not_found", "There is no such conversation.", "List your conversations, or create one.")
}

// asError returns the error that a client reads. The text of an unknown error is not shown,
// because it was written for a log.
func asError(err error) *apiError {
	known, refused, large, later := new(apiError), new(invoker.Failure), new(http.MaxBytesError), new(laterError)
	switch {
	case errors.As(err, &later) && len(later.given) > 0:
		e := *asError(later.error)
		e.Message += later.note()
		return &e
	case errors.As(err, &known):
		return known
	case errors.As(err, &large):
		return failure(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("The request has more than %d bytes.", large.Limit), "Send less at once.")
	case errors.Is(err, lists.ErrTooLong):
		return failure(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("A list of the request has more than %d elements, or its messages have more calls.", lists.Most), "Send less at once.")
	case errors.Is(err, repeats.ErrReused):
		return failure(http.StatusConflict, "conflict", "The ID or the Idempotency-Key of this request was used before, with other contents.", "Send it with another one.")
	case errors.Is(err, pieces.ErrRewritten):
		return errRewritten
	case errors.Is(err, errUnknownPosition):
		return failure(http.StatusConflict, "unknown_position", "The conversation has no such position.", "Read the conversation from its beginning.")
	case errors.Is(err, history.ErrNotFound):
		return noConversation()
	case errors.Is(err, engine.ErrWaiting):
		return failure(http.StatusConflict, "conversation_waits", "The conversation waits for an answer and accepts no message until then.", "Answer its waits, or cancel the turn.")
	case errors.Is(err, waits.ErrNotOpen):
		return failure(http.StatusConflict, "wait_not_open", "The wait has an answer, has expired, or the conversation has gone on without it.", "List the open waits.")
	case errors.As(err, &refused):
		return refusedError(refused)
	case errors.Is(err, context.Canceled), errors.Is(err, engine.ErrClosed), errors.Is(err, history.ErrClosed):
		return failure(http.StatusServiceUnavailable, "shutting_down", "The server is shutting down.", "Send the request again in a few seconds.")
	case errors.Is(err, engine.ErrBusy) && !errors.Is(err, context.DeadlineExceeded): // otherwise the turn is not over yet
		return failure(http.StatusConflict, "conversation_busy", "The conversation has calls without a result, and accepts no message until the turn is over.", "Cancel the turn, then send the message again.")
	}
	return failure(http.StatusServiceUnavailable, "unavailable", "The conversations cannot be reached now.", "Send the request again later.")
}

// refusedError returns the error for a failure of a function of the options.
func refusedError(f *invoker.Failure) *apiError {
	status, code, advice := http.StatusServiceUnavailable, "unavailable", "Send the request again later."
	switch f.Code {
	case invoker.Unauthorized:
		status, code, advice = http.StatusUnauthorized, "unauthorized", "Send the request with credentials that identify you."
	case invoker.Denied:
		status, code, advice = http.StatusForbidden, "denied", "Ask the operator of the server for permission."
	case invoker.NotFound, invoker.ToolNotFound:
		status, code, advice = http.StatusNotFound, "not_found", "Check the address, or ask the operator of the server."
	case invoker.Conflict, invoker.OutcomeUnknown:
		status, code, advice = http.StatusConflict, "conflict", "Do what the message says."
	case invoker.InvalidArguments:
		status, code, advice = http.StatusBadRequest, "invalid_request", "Change the request as the message says."
	case invoker.Unavailable:
		if f.RetryAfter > 0 {
			status, code = http.StatusTooManyRequests, "limit_reached"
		}
	}
	e := failure(status, code, f.Message, advice)
	e.retryAfter = int(math.Ceil(f.RetryAfter.Seconds()))
	return e
}

// maxRetryAfter is the longest Retry-After, in seconds, that OpenAI's clients obey.
const maxRetryAfter = 60

// errMayBeStored is in the chain of an error after which the message of a request is in the log, or may be.
var errMayBeStored = errors.New("httpapi: the message may be in the log")

// writeError answers a request with an error.
func writeError(w http.ResponseWriter, err error) {
	e := asError(err)
	if e.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.retryAfter))
	}
	if e.status == http.StatusUnauthorized && w.Header()["Www-Authenticate"] == nil { // RFC 9110, section 15.5.2
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	status, mayRetry := e.status, w.Header()["X-Should-Retry"] == nil
	if !mayRetry && (status == http.StatusConflict || status >= http.StatusInternalServerError) {
		status = http.StatusBadRequest // many clients look only at the status, and repeat all requests with these
	}
	// OpenAI's clients repeat all requests with 409, and do not wait longer than a minute.
	if e.status == http.StatusConflict || e.retryAfter > maxRetryAfter {
		w.Header().Set("X-Should-Retry", "false")
	}
	writeBody(w, status, e.body())
}

// writeBody writes a response of JSON.
func writeBody(w http.ResponseWriter, status int, body []byte) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client has gone if it fails
}

// writeJSON writes a form as a response.
func writeJSON(w http.ResponseWriter, status int, form any) {
	body, err := jsontext.Encode(form)
	if err != nil {
		writeError(w, err)
		return
	}
	writeBody(w, status, body)
}

// WriteError answers a request with an error in the form of this package, for a handler
// around it. A client sees the text of an [invoker.Failure], but no other text.
func WriteError(w http.ResponseWriter, err error) { writeError(w, err) }

// ErrorBody returns the JSON of an error with a status, for middleware that refuses
// requests with its own texts.
func ErrorBody(status int, text string) []byte {
	code, advice := "refused", "Ask the operator of the server."
	switch status {
	case http.StatusUnauthorized:
		code, advice = "unauthorized", "Send the header Authorization: Bearer TOKEN with a valid token."
	case http.StatusForbidden:
		code, advice = "forbidden", "Ask the operator of the server for permission."
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		code, advice = "later", "Send the request again after the time in Retry-After."
	case http.StatusNotFound:
		code, advice = "not_found", "GET /api/openapi.json lists the paths."
	}
	return failure(status, code, strings.ToUpper(text[:min(1, len(text))])+text[min(1, len(text)):]+".", advice).body()
}
