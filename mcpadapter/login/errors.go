// SPDX-License-Identifier: Apache-2.0

package login

import (
	"errors"
	"fmt"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// ErrNeverRequired is returned by [Client.Login] if the server neither asks for
// authorization nor says where to get it.
var ErrNeverRequired = errors.New("the server does not ask for a login")

// neededError says that a person must log in.
type neededError struct {
	reason string
	hint   string // what to do
	once   bool   // other calls than this one may still work
}

func (e *neededError) Error() string {
	text := "needs a login: " + e.reason
	if e.hint != "" {
		text += "; " + e.hint
	}
	return text
}

// NeedsLogin reports that a new login would help; programs find it with errors.As.
func (e *neededError) NeedsLogin() bool { return true }

func (e *neededError) Unwrap() []error {
	chain := []error{&invoker.Failure{
		Code:    invoker.Unauthorized,
		Message: "The call was not made, because the server " + e.Error() + ".",
	}}
	if !e.once {
		chain = append(chain, ensemble.ErrNeedsLogin)
	}
	return chain
}

// awayError says that the authorization server did not do its work. Nothing is lost.
type awayError struct {
	what  string // the authorization server, or the server
	cause error
}

func (e *awayError) Error() string {
	return fmt.Sprintf("%s is not available (the login is kept, and is tried again): %v", e.what, e.cause)
}

func (e *awayError) Unwrap() []error {
	return []error{e.cause, &invoker.Failure{
		Code:      invoker.Unavailable,
		Message:   "The call was not made, because the authorization server of the tool's server is not available.",
		Retryable: true,
	}}
}

// oauthError is an error response of an authorization server (RFC 6749, section 5.2).
type oauthError struct {
	code        string
	description string
}

func (e *oauthError) Error() string {
	if e.description == "" {
		return e.code
	}
	return e.code + " (" + e.description + ")"
}

// isCode reports whether the authorization server answered with an error code.
func isCode(err error, code string) bool {
	answered, ok := errors.AsType[*oauthError](err)
	return ok && answered.code == code
}
