// SPDX-License-Identifier: Apache-2.0

package openaiserver_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// start runs a server for the length of a test.
func start(t testing.TB, options *openaiserver.Options, steps ...openaiserver.Step) *openaiserver.Server {
	t.Helper()
	server, err := openaiserver.Start(openaiserver.Script{Steps: steps}, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return server
}

// say is a step that answers with text.
func say(text string) openaiserver.Step {
	return openaiserver.Step{Reply: openaiserver.Message{Text: text}}
}

// client has a deadline, so that no test hangs.
func client(t testing.TB) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

// post sends a request and returns status, headers, body and the error of
// reading it.
func post(t testing.TB, base, body string) (int, http.Header, string, error) {
	t.Helper()
	response, err := client(t).Post(base+"/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header, string(got), err
}

const userMessage = `{"role":"user","content":"hi"}`

// request is a minimal request with these messages and further members.
func request(messages, members string) string {
	if members != "" {
		members = "," + members
	}
	return `{"model":"m","messages":[` + messages + `]` + members + `}`
}

// errorOf reads an error object.
func errorOf(t testing.TB, body string) (message, kind, param, code string) {
	t.Helper()
	var object struct {
		Error map[string]*string `json:"error"`
	}
	if err := json.Unmarshal([]byte(body), &object); err != nil {
		t.Fatalf("not an error object: %v: %s", err, body)
	}
	for _, name := range []string{"message", "type", "param", "code"} {
		if _, ok := object.Error[name]; !ok {
			t.Errorf("the error object lacks %q: %s", name, body)
		}
	}
	value := func(name string) string {
		if s := object.Error[name]; s != nil {
			return *s
		}
		return ""
	}
	return value("message"), value("type"), value("param"), value("code")
}
