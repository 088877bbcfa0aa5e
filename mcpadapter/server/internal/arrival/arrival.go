// SPDX-License-Identifier: Apache-2.0

// Package arrival checks the sender of a request again while the body of the request
// arrives.
package arrival

import (
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/consort-go/consort/internal/unsent"
)

var errRefused = errors.New("the sender of the request may not send it any longer")

// Checked returns a response and a request for a handler. check is called after each read of
// the body. If it returns false, it has refused the request at the response that it gets:
// reads of the body then fail, and the response of the handler is discarded, unless it had
// begun before.
func Checked(w http.ResponseWriter, r *http.Request, check func(http.ResponseWriter) bool) (http.ResponseWriter, *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		return w, r
	}
	answer := &response{ResponseWriter: w, check: check}
	r = r.WithContext(r.Context()) // a copy
	r.Body = &body{r.Body, answer}
	return answer, r
}

// body is the body of a request.
type body struct {
	io.ReadCloser
	answer *response
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if !b.answer.mayContinue() {
		return 0, errRefused
	}
	return n, err
}

// response is the response of the handler.
type response struct {
	http.ResponseWriter
	check func(http.ResponseWriter) bool

	mu      sync.Mutex
	begun   bool // by the handler
	refused bool
}

// mayContinue reports whether the request may continue, or refuses it.
func (w *response) mayContinue() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused {
		return false
	}
	to := w.ResponseWriter
	if w.begun {
		to = unsent.Response{}
	}
	w.refused = !w.check(to)
	return !w.refused
}

// begin reports whether the handler may write its response.
func (w *response) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.refused {
		w.begun = true
	}
	return w.begun
}

// WriteHeader implements [http.ResponseWriter].
func (w *response) WriteHeader(status int) {
	if w.begin() {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *response) Write(p []byte) (int, error) {
	if !w.begin() {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap gives http.ResponseController access to the methods that this writer lacks.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Then returns a body that calls arrived, maybe several times, when it has been read to its end.
func Then(body io.ReadCloser, arrived func()) io.ReadCloser { return &watched{body, arrived} }

type watched struct {
	io.ReadCloser
	arrived func()
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if err == io.EOF {
		w.arrived()
	}
	return n, err
}
