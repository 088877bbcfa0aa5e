// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/internal/listening"
	"github.com/consort-go/consort/internal/testing/pipenet"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/server"
)

// Identify lets known callers pass, with their values, and ends a stream whose token was
// withdrawn; Others answers at the other paths.
func TestIdentify(t *testing.T) {
	const ada = "the-token-of-ada"
	user := invoker.NewTrusted[string]("user_id")
	mux := http.NewServeMux()
	tokens := []server.BearerToken{{Token: ada, Name: "ada", Trusted: []invoker.Value{user.Value("ada")}}}
	srv := newServer(t, &server.Options{Tokens: tokens, Others: mux}, adder(t))
	mux.Handle("/page", srv.Identify(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, _ := user.From(r.Context())
		fmt.Fprint(w, id)
	})))
	mux.Handle("/stream", srv.Identify(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "begun\n")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- srv.ServeListener(ctx, listener) }()
	send := func(path string, header ...string) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			request.Header.Set(header[i], header[i+1])
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		return response
	}
	bearer := []string{"Authorization", "Bearer " + ada}
	for _, c := range []struct {
		path   string
		header []string
		status int
	}{
		{"/page", bearer, http.StatusOK},
		{"/page", nil, http.StatusUnauthorized},
		{"/page", []string{"Authorization", "Bearer wrong"}, http.StatusUnauthorized},
		{"/page", append([]string{"Origin", "https://foreign.example"}, bearer...), http.StatusForbidden},
		{"/other", bearer, http.StatusNotFound},
		{"/mcp", nil, http.StatusUnauthorized},
	} {
		response := send(c.path, c.header...)
		text, _ := io.ReadAll(response.Body)
		if response.StatusCode != c.status || c.status == http.StatusOK && string(text) != "ada" {
			t.Errorf("%s %q: %s %s", c.path, c.header, response.Status, text)
		}
	}
	stream := send("/stream", append([]string{"Accept", "text/event-stream"}, bearer...)...)
	srv.SetAccess(&server.Options{Tokens: []server.BearerToken{{Token: "another-token"}}})
	if text, err := io.ReadAll(stream.Body); err != nil || !strings.HasPrefix(string(text), "begun") {
		t.Errorf("the stream: %q, %v", text, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Close waits for requests that must finish, but for those that only read.
func TestIdentifyUntilTheEnd(t *testing.T) {
	t.Parallel()
	for method, waits := range map[string]bool{http.MethodPost: true, http.MethodGet: false} {
		begun, release := make(chan struct{}), make(chan struct{})
		srv := newServer(t, nil, adder(t))
		web := httptest.NewServer(srv.Identify(listening.Finished{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			close(begun)
			<-release
		})}))
		answered := make(chan error, 1)
		go func() {
			request, err := http.NewRequestWithContext(t.Context(), method, web.URL, nil)
			if err == nil {
				var response *http.Response
				if response, err = http.DefaultClient.Do(request); err == nil {
					err = response.Body.Close()
				}
			}
			answered <- err
		}()
		<-begun
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := srv.Close(over); (err != nil) != waits {
			t.Errorf("%s: Close: %v", method, err)
		}
		close(release)
		if err := srv.Close(t.Context()); err != nil {
			t.Errorf("%s: Close after the request: %v", method, err)
		}
		if err := <-answered; err != nil {
			t.Errorf("%s: %v", method, err)
		}
		web.Close()
	}
}

// Close waits no longer than that for the rest of a body.
func TestIdentifyHalfARequest(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	srv := newServer(t, nil, adder(t))
	web := httptest.NewServer(srv.Identify(listening.Finished{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		_, _ = io.ReadAll(r.Body)
	})}))
	defer web.Close()
	client, err := net.Dial("tcp", web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	fmt.Fprintf(client, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: 9\r\n\r\nhalf", web.Listener.Addr())
	<-begun
	patient, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := srv.Close(patient); err != nil {
		t.Error(err)
	}
}

// A request that has arrived whole goes on while Close waits for it, however long it takes.
func TestIdentifyAWholeRequest(t *testing.T) {
	t.Parallel()
	begun, closing, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	srv := newServer(t, nil, adder(t))
	web := httptest.NewServer(srv.Identify(listening.Finished{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if text, err := io.ReadAll(r.Body); err != nil || string(text) != "whole" {
			t.Errorf("%q, %v", text, err)
		}
		close(begun)
		<-closing
		select {
		case <-r.Context().Done():
		case <-time.After(3 * time.Second): // longer than the rest of a body may take
		}
		ended <- context.Cause(r.Context())
	})}))
	defer web.Close()
	go func() {
		response, err := http.Post(web.URL, "text/plain", strings.NewReader("whole"))
		if err == nil {
			err = response.Body.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}()
	<-begun
	time.AfterFunc(50*time.Millisecond, func() { close(closing) })
	if err := srv.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the request was cut off: %v", err)
	}
}

// A token that was withdrawn while the body of its request arrived is refused, however the
// handler reads the body, and whatever it answers then.
func TestIdentifyWhileABodyArrives(t *testing.T) {
	const ada = "the-token-of-ada"
	is := func(token string) *server.Options {
		return &server.Options{Tokens: []server.BearerToken{{Token: token, Name: "ada"}}}
	}
	for name, read := range map[string]func(io.Reader) error{
		"all": func(body io.Reader) error {
			_, err := io.ReadAll(body)
			return err
		},
		"one value": func(body io.Reader) error {
			var value any
			return json.NewDecoder(body).Decode(&value)
		},
	} {
		for after, status := range map[string]int{ada: http.StatusOK, "another-token": http.StatusUnauthorized} {
			t.Run(name+" "+after, func(t *testing.T) {
				begun, stored := make(chan struct{}), 0
				srv := newServer(t, is(ada), adder(t))
				web := httptest.NewServer(srv.Identify(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					close(begun)
					if err := read(r.Body); err != nil {
						http.Error(w, "the body cannot be read", http.StatusBadRequest)
						return
					}
					stored++
				})))
				defer web.Close()
				body, rest := io.Pipe()
				go func() {
					_, _ = io.WriteString(rest, `{"message":"Do it."`)
					<-begun
					srv.SetAccess(is(after))
					_, _ = io.WriteString(rest, `}`)
					_ = rest.Close()
				}()
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL, body)
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("Authorization", "Bearer "+ada)
				response, err := http.DefaultClient.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				text, _ := io.ReadAll(response.Body)
				if response.StatusCode != status || stored != 0 && status != http.StatusOK || strings.Contains(string(text), "cannot be read") {
					t.Errorf("%s %s, stored %d", response.Status, text, stored)
				}
			})
		}
	}
}

// A request whose body never arrives leaves its connection when the time of the http.Server is over, whatever it
// accepts and whatever the handler answers. net/http may write no answer then.
func TestIdentifyWithoutABody(t *testing.T) {
	const accepts = " / HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
	for _, c := range []struct{ sent, status string }{
		{"POST" + accepts + "Content-Length: 10\r\n\r\n", "415"},
		{"POST" + accepts + "Transfer-Encoding: chunked\r\n\r\n5\r\nhe", "415"},
		{"DELETE" + accepts + "Content-Length: 10\r\n\r\nhalf", "415"},
		{"GET" + accepts + "Content-Length: 10\r\n\r\n", "400"},
		{"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", "400"},
		{"HEAD" + accepts + "Content-Length: 10\r\n\r\n", "400"},
	} {
		t.Run(c.sent, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := server.New(nil, nil)
				network := pipenet.Listen()
				web := &http.Server{ReadTimeout: listening.RequestTimeout, Handler: srv.Identify(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					http.Error(w, "not this type", http.StatusUnsupportedMediaType)
				}))}
				served := make(chan error, 1)
				go func() { served <- web.Serve(network) }()
				client, err := network.Dial(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				_ = client.SetDeadline(time.Now().Add(time.Hour))
				go func() { _, _ = io.WriteString(client, c.sent) }()
				began := time.Now()
				text, err := io.ReadAll(client)
				if took := time.Since(began); err != nil || took > listening.RequestTimeout+time.Second || len(text) > 0 && !strings.HasPrefix(string(text), "HTTP/1.1 "+c.status) {
					t.Errorf("%v, %q, after %s", err, text, took)
				}
				_ = client.Close()
				_ = web.Close()
				<-served
				if err := srv.Close(t.Context()); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second) // net/http lets clients read the last answer
			})
		})
	}
}

// The options of two servers, and the tokens of one, may continue one slice of trusted values.
func TestTrustedValuesAreCopied(t *testing.T) {
	user, tenant := invoker.NewTrusted[string]("user_id"), invoker.NewTrusted[string]("tenant")
	users, tenants := make([]invoker.Value, 0, 1), make([]invoker.Value, 0, 1)
	started := func(of string, names ...string) http.Handler {
		options := &server.Options{Trusted: append(tenants, tenant.Value(of))}
		for _, name := range names {
			token := server.BearerToken{Token: "token-" + name, Name: name, Trusted: append(users, user.Value(name))}
			options.Tokens = append(options.Tokens, token)
		}
		return newServer(t, options, adder(t)).Identify(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id, _ := user.From(r.Context())
			at, _ := tenant.From(r.Context())
			fmt.Fprint(w, id, "@", at)
		}))
	}
	first := started("first", "ada")
	started("second", "bob")
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	request.Header.Set("Authorization", "Bearer token-ada")
	response := httptest.NewRecorder()
	first.ServeHTTP(response, request)
	if got := response.Body.String(); got != "ada@first" {
		t.Errorf("the caller is %q", got)
	}
}
