// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Failure is an answer with an error status and an error object in OpenAI's format:
// {"error": {"message", "type", "param", "code"}}.
type Failure struct {
	// Status is the HTTP status; zero means 500.
	Status int
	// Message is for people; empty means the text of the status.
	Message string
	// Type is the category of the error; empty means "invalid_request_error" below 500
	// and "server_error" from there.
	Type string
	// Param names the invalid part of the request; empty means null.
	Param string
	// Code is the error code; empty means null.
	Code string
	// Header is sent in addition to the usual headers.
	Header http.Header
	// Delay is the time before the headers are sent.
	Delay time.Duration

	anthropic bool // the request was for Messages
}

// RateLimited returns a 429. It asks the client to wait for wait, rounded up to whole
// seconds; if wait is not positive, it sends no time.
func RateLimited(wait time.Duration) Failure {
	f := Failure{
		Status:  http.StatusTooManyRequests,
		Message: "Rate limit reached for requests.",
		Type:    "requests",
		Code:    "rate_limit_exceeded",
	}
	if wait > 0 {
		seconds := int64((wait + time.Second - 1) / time.Second)
		f.Header = http.Header{"Retry-After": {strconv.FormatInt(seconds, 10)}}
	}
	return f
}

// ServerError returns a 500.
func ServerError() Failure {
	return Failure{Message: "The server had an error while processing your request. Sorry about that!"}
}

// Unauthorized returns the 401 for a wrong key.
func Unauthorized() Failure {
	return Failure{Status: http.StatusUnauthorized, Message: "Incorrect API key provided.", Code: "invalid_api_key"}
}

// ContextLength returns the 400 for a request that is too long for its model.
func ContextLength() Failure {
	return invalidFailure("messages", "context_length_exceeded",
		"This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. Please reduce the length of the messages.")
}

// invalid returns the refusal of a request.
func invalid(param, code, format string, args ...any) *Failure {
	f := invalidFailure(param, code, fmt.Sprintf(format, args...))
	return &f
}

func invalidFailure(param, code, message string) Failure {
	return Failure{Status: http.StatusBadRequest, Message: message, Type: "invalid_request_error", Param: param, Code: code}
}

// play sends the failure.
func (f Failure) play(x *exchange) {
	if !x.wait(f.Delay) {
		return
	}
	header := x.w.Header()
	for name, values := range f.Header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	header.Set("Content-Type", "application/json")
	status := f.status()
	x.w.WriteHeader(status)
	x.w.Write(f.body(status)) // the client may have gone
}

func (f *Failure) status() int {
	if f.Status < 200 || f.Status > 999 {
		return http.StatusInternalServerError
	}
	return f.Status
}

// claudeTypes are the categories of errors in Messages, by status.
var claudeTypes = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
	413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error",
}

// body renders the error object.
func (f *Failure) body(status int) []byte {
	if f.anthropic {
		kind := cmp.Or(claudeTypes[status], "api_error")
		body, _ := json.Marshal(map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": cmp.Or(f.Message, http.StatusText(status))}})
		return append(body, '\n') // only strings: cannot fail
	}
	var object struct {
		Error struct {
			Message string  `json:"message"`
			Type    string  `json:"type"`
			Param   *string `json:"param"`
			Code    *string `json:"code"`
		} `json:"error"`
	}
	e := &object.Error
	e.Message, e.Type = f.Message, f.Type
	if e.Message == "" {
		e.Message = http.StatusText(status)
	}
	if e.Type == "" {
		e.Type = "invalid_request_error"
		if status >= 500 {
			e.Type = "server_error"
		}
	}
	if f.Param != "" {
		e.Param = &f.Param
	}
	if f.Code != "" {
		e.Code = &f.Code
	}
	body, _ := json.Marshal(object) // only strings: cannot fail
	return append(body, '\n')
}
