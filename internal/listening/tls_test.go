// SPDX-License-Identifier: Apache-2.0

package listening

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// The limits hold for connections with TLS: one that serves a request stays, and one that is
// idle makes room. The handler learns of TLS.
func TestBoundsOverTLS(t *testing.T) {
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	certified := httptest.NewUnstartedServer(nil) // has a certificate for 127.0.0.1
	certified.StartTLS()
	defer certified.Close()
	began, finish := make(chan struct{}), make(chan struct{})
	server := NewServer(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || r.ProtoMajor != 1 {
			http.Error(w, "no TLS", http.StatusTeapot)
			return
		}
		ServeHTTP(r.Context())
		if r.URL.Path == "/wait" {
			close(began)
			<-finish
		}
	}), Options{Limits: Limits{Connections: 1}, TLS: &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12}})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve() }()
	get := func(client *http.Client, path string) error {
		response, err := client.Get("https://" + listener.Addr().String() + path)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
			t.Errorf("%s, %v", response.Status, err)
		}
		return nil
	}
	clientOf := func() *http.Client {
		transport := certified.Client().Transport.(*http.Transport).Clone()
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport, Timeout: time.Minute}
	}
	first := make(chan error, 1)
	go func() { first <- get(clientOf(), "/wait") }()
	<-began
	if err := get(clientOf(), "/"); err == nil {
		t.Error("a second client is served beside a request at the limit of one connection")
	}
	close(finish)
	if err := <-first; err != nil {
		t.Errorf("the first client: %v", err)
	}
	deadline := time.Now().Add(time.Minute)
	for err = get(clientOf(), "/"); err != nil && time.Now().Before(deadline); { // the server notices the end after the client
		err = get(clientOf(), "/")
	}
	if err != nil {
		t.Errorf("a client after the request: %v", err)
	}
	server.Shutdown(t.Context())
	if err := <-ended; err != http.ErrServerClosed {
		t.Error(err)
	}
}
