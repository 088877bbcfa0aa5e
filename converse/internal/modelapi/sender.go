// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
)

// Sender sends requests to an API that needs nothing but a key. It must not change once
// it is in use; its methods may be called concurrently.
type Sender struct {
	// Client sends the requests; see [Client].
	Client *http.Client
	// Base is the URL of the API. Its query is sent with each request.
	Base *url.URL
	// Header is sent with each request. It replaces the headers of Post with the same name.
	Header http.Header
}

// Post sends one request with a body of JSON to a path below the base URL. The middleware
// runs between the caller and the connection.
func (s *Sender) Post(ctx context.Context, path string, body []byte, middleware Middleware) (*http.Response, error) {
	to := s.Base.JoinPath(path)
	to.RawQuery = s.Base.Query().Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "consort")
	for name, values := range s.Header {
		req.Header[name] = values[:len(values):len(values)]
	}
	return middleware(req, s.Client.Do)
}
