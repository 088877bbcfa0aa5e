// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/bodymemory"
	"github.com/consort-go/consort/internal/listening"
)

// bodyTimeout is how long the whole body of a request may take to arrive.
const bodyTimeout = 30 * time.Second

// requestBody is the body of a request. It holds its memory while the request is under way, because messages can wait
// for a turn. A stream can last long, and keeps only the bytes that it needs.
type requestBody struct {
	io.ReadCloser
	h      *handler
	of     *http.Request
	memory *bodymemory.Memory // nil until the body is read
	key    string             // stands for the request of the owner, when the body was read
}

// bodyKey is the key of the context of a request for its body.
type bodyKey struct{}

// mayWait returns an error if the messages that wait take too much memory together with the one of a request. It must be
// called before the request has any effect, because the client sends the request again.
func mayWait(ctx context.Context) error {
	if err := ctx.Value(bodyKey{}).(*requestBody).memory.Wait(); err != nil {
		return unread(err)
	}
	return nil
}

// admitWaiting returns admit, which may be nil, after a check of the memory of messages that wait: they wait for the turn
// of their conversation, and some in admit.
func admitWaiting(admit func(context.Context, Entry, func(context.Context) error) error) func(context.Context, Entry, func(context.Context) error) error {
	return func(ctx context.Context, entry Entry, enter func(context.Context) error) error {
		if entry.Canister.Kind() == canister.KindUser {
			if err := mayWait(ctx); err != nil {
				return err
			}
		}
		if admit == nil {
			return enter(ctx)
		}
		return admit(ctx, entry, enter)
	}
}

// keep frees the memory beyond size bytes for others.
func (b *requestBody) keep(size int64) {
	if b.memory != nil {
		b.memory.Keep(size)
	}
}

// read reads the whole body within the memory of its client: the identity that a handler
// around this one has set, or the address, with the owner.
func (b *requestBody) read(owner string) ([]byte, error) {
	client := access.Client(access.IdentityFrom(b.of.Context()), b.of.RemoteAddr)
	b.memory = b.h.bodies.For(client + " " + owner)
	return b.memory.Read(b.ReadCloser, b.of.ContentLength, b.h.MaxBody)
}

// body reads the body of a request that must be JSON: a form of a web page cannot be.
func body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return nil, failure(http.StatusUnsupportedMediaType, "not_json", "The body is not announced as JSON.", "Send the header Content-Type: application/json.")
	}
	b := r.Body.(*requestBody)
	owner, err := b.h.owner(r.Context())
	if err != nil {
		return nil, err
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout)) // not every connection supports it
	text, err := b.read(owner)
	if err != nil {
		listening.Abandon(w, r)
		return nil, unread(err)
	}
	_ = control.SetReadDeadline(time.Time{}) // the answer may take longer
	sum := sha256.New()                      // the text is not copied
	_, _ = io.WriteString(sum, owner+"\x00"+r.URL.Path+"\x00")
	_, _ = sum.Write(text)
	b.key = idOf(sum.Sum(nil))
	if !utf8.Valid(text) { // parts are stored as they are, and the log is UTF-8
		return nil, failure(http.StatusBadRequest, "invalid_json", "The body of the request is not UTF-8.", "Send JSON in UTF-8.")
	}
	return text, nil
}

// unread returns the error for a body that was not read completely.
func unread(err error) error {
	later := "Send the request again in a second."
	e := failure(http.StatusBadRequest, "incomplete", "The body of the request did not arrive.", "Send the request again.")
	switch large := new(http.MaxBytesError); {
	case errors.As(err, &large):
		return err
	case errors.Is(err, bodymemory.ErrClient):
		e = failure(http.StatusTooManyRequests, "too_many_bodies", "Your requests take too much memory at once.", later)
		e.retryAfter = 1
	case errors.Is(err, bodymemory.ErrAll):
		e = failure(http.StatusServiceUnavailable, "too_many_bodies", "The requests of all clients take too much memory at once.", later)
		e.retryAfter = 1
	}
	return e
}
