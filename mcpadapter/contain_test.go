// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/consort-go/consort/mcpadapter"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type brokenTransport struct{}

func (brokenTransport) RoundTrip(*http.Request) (*http.Response, error) { panic("no way") }

// nilError is the classic mistake: a nil pointer of it, returned as an error.
type nilError struct{ reason string }

func (e *nilError) Error() string { return e.reason }

// Requests are made on goroutines of the SDK too, where a panic of the program's
// functions would end the process.
func TestFunctionsOfHTTPOptionsThatPanic(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	listener := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(listener.Close)
	for want, options := range map[string]*mcpadapter.HTTPOptions{
		"panicked: no token":                             {Token: func(context.Context) (string, error) { panic("no token") }},
		"a nil *mcpadapter_test.nilError without a text": {Token: func(context.Context) (string, error) { return "", (*nilError)(nil) }},
		"panicked: no way":                               {Client: &http.Client{Transport: brokenTransport{}}},
	} {
		connection, err := mcpadapter.HTTP(listener.URL, options).Open(t.Context())
		if err == nil {
			_ = connection.Close(context.Background())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
