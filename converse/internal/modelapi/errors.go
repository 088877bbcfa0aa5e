// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/tidwall/gjson"
)

// maxErrorBody limits how much of an error's body is read, in bytes, and maxErrorText how
// much of it goes into a message.
const (
	maxErrorBody = 64 << 10
	maxErrorText = 1000
)

var errLeft = errors.New("the consumer left the loop")

// silence is the cause of an exchange that timed out because the server sent nothing, or
// nothing but signs of life.
type silence struct {
	limit time.Duration
	alive bool
}

func (s *silence) Error() string {
	if s.alive {
		return fmt.Sprintf("the model's server sent nothing of its answer for %v, only signs of life", s.limit)
	}
	return fmt.Sprintf("the model's server sent nothing for %v", s.limit)
}

// failure describes a response with an error status. body is the beginning of the
// response.
func (s *Server) failure(res *http.Response, body []byte) *converse.ModelError {
	r := explain(body)
	r.status = res.StatusCode
	switch {
	case r.status < 400:
		r.message = "the server answers with a redirection that is not followed, as credentials stay with the host they are for"
	case r.html:
		r.message = "the server answers with an HTML page: " + cmp.Or(http.StatusText(r.status), "no reason given")
	case r.message == "":
		r.message = http.StatusText(r.status)
	}
	failed := &converse.ModelError{Status: r.status, RequestID: s.Redact(textcut.Bytes(valid(requestID(res)), 200))}
	retry, err := strconv.ParseBool(res.Header.Get("X-Should-Retry")) // a header of OpenAI
	s.describe(failed, r)
	if err == nil {
		failed.Retryable = retry
	}
	if failed.Retryable {
		failed.Advice = "" // to wait
	}
	return failed
}

// describe sets the message, the code and the advice of an error, and Retryable.
func (s *Server) describe(failed *converse.ModelError, r *refusal) {
	failed.Message = s.Redact(r.message)
	code := contextCode(r.status, r.message, r.code)
	var advise func(*Server, *refusal) string
	if k := s.recognise(r); k != nil && code != converse.CodeContextLength {
		code, advise = k.code, k.advise
	}
	failed.Code, failed.Retryable = s.Redact(code), r.retryable(code)
	if advise != nil {
		failed.Advice = s.Redact(advise(s, r))
	}
}

// requestID returns the server's name of a request, in OpenAI's header or in Anthropic's.
func requestID(res *http.Response) string {
	return cmp.Or(res.Header.Get("X-Request-Id"), res.Header.Get("Request-Id"))
}

// unreachable describes an attempt that got no response.
func (s *Server) unreachable(err error) *converse.ModelError {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err // without the URL, whose query can contain a key
	}
	var certificate *tls.CertificateVerificationError
	return &converse.ModelError{
		Message:   s.Redact("cannot reach " + s.Base.Host + ": " + err.Error()),
		Retryable: !errors.As(err, &certificate),
		Err:       err,
	}
}

// Broken describes an answer that began but cannot be used.
func (x *Exchange) Broken(res *http.Response, retry bool, format string, args ...any) *converse.ModelError {
	err := fmt.Errorf(format, args...)
	return &converse.ModelError{
		Message:   x.server.Redact(err.Error()),
		Status:    res.StatusCode,
		RequestID: x.server.Redact(textcut.Bytes(valid(requestID(res)), 200)),
		Retryable: retry,
		Err:       errors.Unwrap(err),
	}
}

// ended returns the error of an exchange whose context ended, because of the caller or of
// a time limit. It returns nil if the exchange failed in another way.
func (s *Server) ended(outer, inner context.Context) error {
	if err := outer.Err(); err != nil {
		return fmt.Errorf("%s: the exchange was cancelled: %w", s.Package, err)
	}
	var quiet *silence
	if errors.As(context.Cause(inner), &quiet) {
		return &converse.ModelError{Message: quiet.Error(), Retryable: true, Err: context.DeadlineExceeded}
	}
	return nil
}

// explain reads the body of an error. It knows the forms that servers use.
func explain(body []byte) *refusal {
	if !json.Valid(body) {
		return &refusal{message: oneLine(string(body)), html: bytes.HasPrefix(bytes.TrimSpace(body), []byte("<"))}
	}
	root := gjson.ParseBytes(bytes.ToValidUTF8(body, []byte("\uFFFD")))
	if root.IsArray() { // some gateways wrap it
		root = root.Get("0")
	}
	if inner := root.Get("response.error"); inner.IsObject() { // an event of Responses
		root = root.Get("response")
	}
	fault := root.Get("error")
	if !fault.IsObject() {
		if text := fault.String(); text != "" {
			return &refusal{message: textcut.Bytes(text, maxErrorText), code: codeOf(root), kind: root.Get("type").String()}
		}
		fault = root
	}
	r := &refusal{message: oneLine(string(body)), code: codeOf(fault), kind: fault.Get("type").String(), param: textcut.Bytes(fault.Get("param").String(), 100)}
	for _, name := range []string{"message", "detail", "msg"} {
		if field := fault.Get(name); field.Exists() && field.Type != gjson.Null {
			r.message = textcut.Bytes(field.String(), maxErrorText)
			break
		}
	}
	return r
}

// codeOf returns the most specific name of an error.
func codeOf(fault gjson.Result) string {
	for _, name := range []string{"code", "type", "status"} {
		if text := fault.Get(name).String(); text != "" {
			return textcut.Bytes(text, 100)
		}
	}
	return ""
}

// permanent are further codes of errors within an answer that the same request always gets
// (openai-go, responses.ResponseErrorCode).
var permanent = map[string]bool{
	"invalid_encrypted_content": true, "data_residency_mismatch": true,
	"bio_policy": true, "misalignment_policy_violation": true, "image_content_policy_violation": true,
}

// retryable reports whether the same request can succeed later, based on the status and
// the code of the error. Without a status, for an error within an answer, it can unless the
// code or the type says otherwise.
func (r *refusal) retryable(code string) bool {
	status := r.status
	if status == 0 {
		status, _ = strconv.Atoi(r.code)
	}
	switch code {
	case converse.CodeQuota:
		return false // a 429 that waiting does not fix
	case converse.CodeContextLength:
		return false // llama.cpp sends it with a 500
	case converse.CodeImage:
		return status >= http.StatusInternalServerError && !textAlone.MatchString(r.message) // the same
	case "content_filter", "invalid_request_error", "invalid_prompt", "permission_error", "not_found_error",
		converse.CodeModelNotFound, converse.CodeAPI, converse.CodeTools, converse.CodeParameter,
		converse.CodeKey, converse.CodeUnverified, converse.CodeRegion, converse.CodeAddress:
		return status >= http.StatusInternalServerError
	}
	if status == 0 {
		return !permanent[code] && r.kind != "invalid_request_error"
	}
	return status == http.StatusRequestTimeout || status == http.StatusConflict ||
		status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}

// oneLine turns text that was not meant for people into one short line.
func oneLine(text string) string {
	return textcut.Bytes(strings.Join(strings.Fields(valid(text)), " "), 300)
}

// valid replaces invalid UTF-8.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
