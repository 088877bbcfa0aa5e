// SPDX-License-Identifier: Apache-2.0

package loginpages

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/internal/listening"
	"github.com/consort-go/consort/internal/testing/authserver"
	"github.com/consort-go/consort/mcpadapter/login"
)

// TestInterruptedLogin: a login whose code is being exchanged is stored, also if the browser leaves
// or the server shuts down meanwhile. If the server waits, the browser gets its page.
func TestInterruptedLogin(t *testing.T) {
	closedAtOnce, cancel := context.WithCancel(t.Context())
	cancel()
	for name, interrupt := range map[string]func(t *testing.T, p *Pages, r *http.Request, asked <-chan struct{}, release func()){
		"the browser leaves": func(_ *testing.T, p *Pages, r *http.Request, asked <-chan struct{}, release func()) {
			ctx, leave := context.WithCancel(r.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				p.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
			}()
			<-asked
			leave()
			release()
			<-done
		},
		"the server shuts down": func(t *testing.T, p *Pages, r *http.Request, asked <-chan struct{}, release func()) {
			server, answered := serves(t, p, r)
			<-asked
			began, ended := time.Now(), make(chan struct{})
			go func() {
				defer close(ended)
				server.Shutdown(context.WithoutCancel(t.Context()))
			}()
			for err := error(nil); err == nil; { // until the server accepts no connection, and has closed those without a request
				var c net.Conn
				if c, err = net.Dial("tcp", r.URL.Host); err == nil {
					_ = c.Close()
				}
			}
			release()
			if status := <-answered; status != http.StatusOK && time.Since(began) < 2*time.Second { // how long Shutdown waits
				t.Errorf("status %d", status)
			}
			<-ended
		},
		"the server shuts down at once": func(t *testing.T, p *Pages, r *http.Request, asked <-chan struct{}, release func()) {
			server, answered := serves(t, p, r)
			<-asked
			server.Shutdown(closedAtOnce)
			<-answered
			release()
		},
	} {
		t.Run(name, func(t *testing.T) {
			authorization, resource := authserver.Start(t, authserver.Behaviour{}, http.NotFoundHandler())
			store := login.NewMemory()
			client, err := login.New(&login.Options{URL: resource, Store: store})
			if err != nil {
				t.Fatal(err)
			}
			p := stage(map[string]Server{"notes": {Shared, func(ctx context.Context, _, callback string) (*login.Redirect, error) {
				return client.Begin(ctx, callback)
			}}})
			path, cookies := visit(t, p, "ada", Visit{Server: "notes", Client: "ada"})
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, p.base()+path, strings.NewReader(""))
			r.AddCookie(cookies[0])
			p.ServeHTTP(w, r)
			back := authserver.Redirect(t, http.DefaultTransport, w.Header().Get("Location"))
			asked, released := make(chan struct{}), make(chan struct{})
			authorization.Fail(func(r *http.Request) int {
				if r.URL.Path == "/token" {
					close(asked)
					<-released
				}
				return 0
			})
			r = httptest.NewRequest(http.MethodGet, back.String(), nil)
			r.AddCookie(cookies[0])
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			interrupt(t, p, r.WithContext(ctx), asked, func() { close(released) })
			_ = p.Close()
			all, err := store.List(t.Context())
			if err != nil || len(all) != 1 {
				t.Errorf("%d logins are stored, %v", len(all), err)
			}
		})
	}
}

// serves serves the pages to a request. The result is the status of the answer, or 0 without one.
func serves(t *testing.T, p *Pages, r *http.Request) (server *listening.Server, answered <-chan int) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server = listening.NewServer(listener, p, listening.Options{})
	go func() { _ = server.Serve() }()
	r.URL.Host, r.RequestURI = listener.Addr().String(), ""
	status := make(chan int, 1)
	go func() {
		response, err := new(http.Transport).RoundTrip(r)
		if err != nil {
			status <- 0
			return
		}
		_ = response.Body.Close()
		status <- response.StatusCode
	}()
	return server, status
}

// TestClose: Close waits for a login that is being completed, but not for long.
func TestClose(t *testing.T) {
	for _, endsByItself := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := New(&Options{})
			ctx, end, err := p.complete(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			began, closed := time.Now(), make(chan struct{})
			go func() {
				defer close(closed)
				_ = p.Close()
			}()
			synctest.Wait()
			select {
			case <-closed:
				t.Error("Close has not waited")
			default:
			}
			want := closeTimeout
			if endsByItself {
				want = 0
			} else {
				<-ctx.Done()
			}
			end()
			<-closed
			if took := time.Since(began); took != want {
				t.Errorf("Close took %v, want %v", took, want)
			}
			if _, _, err := p.complete(t.Context()); err == nil {
				t.Error("a login is completed after the end")
			}
		})
	}
}
