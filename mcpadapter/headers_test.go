// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/consort-go/consort/mcpadapter"
)

// A program may reuse the map of one server's headers for another server.
func TestHeadersAreCopied(t *testing.T) {
	sent := make(chan string, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent <- r.Header.Get("X-Key")
		http.NotFound(w, r)
	}))
	defer server.Close()
	headers := map[string]string{"X-Key": "of this server"}
	source := mcpadapter.HTTP(server.URL, &mcpadapter.HTTPOptions{Headers: headers})
	headers["X-Key"] = "of another server"
	if connection, err := source.Open(t.Context()); err == nil {
		_ = connection.Close(t.Context())
		t.Error("a server that is none was opened")
	}
	if got := <-sent; got != "of this server" {
		t.Errorf("the server got the key %q", got)
	}
}
