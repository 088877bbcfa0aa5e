// SPDX-License-Identifier: Apache-2.0

package modeltest

import (
	"net/http"
	"testing"

	"github.com/consort-go/consort/internal/testing/pipenet"
)

// Serve serves a handler within a bubble of synctest, where time passes only while all wait. The
// client reaches the handler at any address.
func Serve(t *testing.T, handler http.Handler) *http.Client {
	t.Helper()
	far := pipenet.Listen()
	server, served := &http.Server{Handler: handler}, make(chan error, 1)
	go func() { served <- server.Serve(far) }()
	transport := &http.Transport{DialContext: far.Dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		<-served
	})
	return &http.Client{Transport: transport}
}
