// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/subprocess"
	"github.com/consort-go/consort/invoker"
)

// needs returns the names of the trusted values that go into headers, sorted.
func (t *roundTripper) needs() []string {
	names := slices.Sorted(maps.Values(t.trusted))
	return slices.Compact(names)
}

// entitled returns UNAUTHORIZED if a trusted value that a personal request has to carry
// is missing.
func (r *requester) entitled(ctx context.Context) error {
	for _, name := range r.needs {
		if _, ok := invoker.TrustedValue(ctx, name); !ok {
			return invoker.Failf(invoker.Unauthorized, "The server needs the trusted value %q, which is missing.", name)
		}
	}
	return nil
}

// addTrusted adds the trusted headers to personal requests, such as calls, but never
// after a redirect.
func (t *roundTripper) addTrusted(req *http.Request) error {
	if x := exchangeFrom(req.Context()); len(t.trusted) == 0 || x == nil || !x.personal {
		return nil
	}
	if req.Response != nil {
		return &protocolError{what: "it redirects a request with trusted values, which this client does not follow; set the URL to the destination"}
	}
	for header, name := range t.trusted {
		value, ok := invoker.TrustedValue(req.Context(), name)
		if !ok {
			return &untoldError{fmt.Errorf("the trusted value %q is missing", name)}
		}
		text, err := headerText(value)
		if err != nil {
			return &untoldError{err}
		}
		req.Header.Set(header, text)
	}
	return nil
}

// untoldError says that a request was not sent because a trusted header could not be
// set.
type untoldError struct{ cause error }

func (e *untoldError) Error() string { return e.cause.Error() }
func (e *untoldError) Unwrap() error { return subprocess.ErrNotSent }

// headerText encodes a trusted value for a header: a string as it is, anything else as
// JSON. The error does not contain the value.
func headerText(value invoker.Value) (string, error) {
	encoded, err := value.Reveal()
	if err != nil {
		return "", err
	}
	text := string(jsontext.Compact(encoded))
	_ = json.Unmarshal(encoded, &text) // anything but a string stays JSON
	unfit := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	if text == "" || strings.ContainsFunc(text, unfit) || strings.TrimSpace(text) != text {
		return "", fmt.Errorf("the trusted value %q cannot be sent in a header: it is empty, or has line breaks, control characters, or leading or trailing spaces", value.Name())
	}
	return text, nil
}

// trustedIn returns the header values of a request that hold trusted values.
func (t *roundTripper) trustedIn(req *http.Request) []string {
	var values []string
	if x := exchangeFrom(req.Context()); x != nil && x.personal {
		for _, name := range t.trusted {
			if value, ok := invoker.TrustedValue(req.Context(), name); ok {
				if text, err := headerText(value); err == nil {
					values = append(values, text)
				}
			}
		}
	}
	return values
}
