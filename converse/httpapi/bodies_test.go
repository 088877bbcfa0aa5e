// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/consort-go/consort/converse/httpapi"
)

// TestStreamsHoldNoBodies: a stream does not hold the memory of the body of its request.
func TestStreamsHoldNoBodies(t *testing.T) {
	s := serve(t, echo, nil, func(o *httpapi.Options) { o.MaxBody, o.MaxBodies = 1000, 1500 })
	id := s.create("hello")
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/v1/responses", `{"input":"block","stream":true}`},
		{"GET", "/api/conversations/" + id + "/events", `{}`},
		{"POST", "/v1/responses", `{"input":"block","stream":true}`},
	} {
		chunked := io.MultiReader(strings.NewReader(c.body)) // without a length
		request, err := http.NewRequestWithContext(t.Context(), c.method, s.server.URL+c.path, chunked)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set(who, "ann")
		request.Header.Set("Content-Type", "application/json")
		response, err := s.server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s %s: %d", c.method, c.path, response.StatusCode)
		}
	}
}
