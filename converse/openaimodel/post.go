// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/consort-go/consort/converse/internal/modelapi"
	"github.com/openai/openai-go/v3/option"
	sdk "github.com/openai/openai-go/v3/responses"
)

var errMade = errors.New("the request is made")

// request is a request to a model's API as the SDK makes it: the address, the authentication
// and the other headers. Each exchange sends a copy with its own body.
type request struct {
	made   *http.Request
	shared bool                                        // copies share the address and the headers, which do not change
	send   func(*http.Request) (*http.Response, error) // the rest of the SDK, and the connection
	err    error                                       // of an option of the SDK
}

// newRequest lets the SDK make the request, without sending it. The SDK's method for Responses
// serves both APIs, because the SDK's client, or a field of the type of a service, would link
// the methods of all services. The method knows only its own path.
func newRequest(api string, shared bool, options []option.RequestOption) *request {
	r, path := &request{shared: shared}, "chat/completions"
	if api == apiResponses {
		path = "responses"
	}
	keep := func(made *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		made.URL = made.URL.ResolveReference(&url.URL{Path: path, RawQuery: made.URL.RawQuery})
		r.made, r.send = made, send
		return nil, errMade
	}
	service := sdk.ResponseService{Options: options}
	_, err := service.New(context.Background(), sdk.ResponseNewParams{}, option.WithRequestBody("application/json", []byte("{}")), option.WithMiddleware(keep))
	if r.made == nil {
		r.err = err
	}
	return r
}

// post sends a body.
func (r *request) post(ctx context.Context, body []byte, middleware modelapi.Middleware) (*http.Response, error) {
	if r.err != nil {
		return nil, r.err
	}
	own := r.made.WithContext(ctx)
	if !r.shared {
		own = r.made.Clone(ctx)
	}
	own.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	own.Body, _ = own.GetBody()
	own.ContentLength = int64(len(body))
	return middleware(own, r.send)
}
