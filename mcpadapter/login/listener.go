// SPDX-License-Identifier: Apache-2.0

package login

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/hostnames"
)

// listener waits for the redirect of one login (RFC 8252, section 7.3).
type listener struct {
	address string // the redirect URL
	state   string
	host    string // the Host header of requests to it
	server  *http.Server
	served  chan struct{} // closed when the server has ended
	answers chan answer   // has room for one

	mu   sync.Mutex
	done bool // an answer with the right state was received
}

// checkRedirectURL returns an error if an address of the configuration cannot be listened
// on. Empty is allowed.
func checkRedirectURL(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || !hostnames.IsThisMachine(u.Hostname()) || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return errors.New("the redirect URL should be an http URL of this machine, such as http://127.0.0.1/callback")
	}
	return nil
}

// listen opens the listener of a login.
func listen(redirect, state string) (*listener, error) {
	host, port, path := "127.0.0.1", "0", "/"+rand.Text()
	if u, _ := url.Parse(redirect); redirect != "" {
		host, path = u.Hostname(), u.EscapedPath()
		if u.Port() != "" {
			port = u.Port()
		}
	}
	bind := host
	if strings.EqualFold(host, "localhost") {
		bind = "127.0.0.1"
	}
	socket, err := net.Listen("tcp", net.JoinHostPort(bind, port))
	if err != nil {
		return nil, fmt.Errorf("waiting for the redirect: %w", err)
	}
	_, port, _ = net.SplitHostPort(socket.Addr().String())
	l := &listener{
		state:   state,
		host:    net.JoinHostPort(host, port),
		served:  make(chan struct{}),
		answers: make(chan answer, 1),
	}
	l.address = "http://" + l.host + path
	l.server = &http.Server{Handler: l, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Second, MaxHeaderBytes: 64 << 10}
	go func() {
		defer close(l.served)
		_ = l.server.Serve(socket)
	}()
	return l, nil
}

// close lets the page be delivered and waits for the end of the server.
func (l *listener) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if l.server.Shutdown(ctx) != nil {
		_ = l.server.Close()
	}
	<-l.served
}

// ServeHTTP receives the redirect. What does not belong to this login is refused, and
// does not end it: any page that a browser shows can send requests to this machine.
func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	path := cmp.Or(strings.TrimPrefix(l.address, "http://"+l.host), "/")
	switch {
	case r.Host != l.host, r.URL.EscapedPath() != path:
		http.NotFound(w, r)
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		w.WriteHeader(http.StatusMethodNotAllowed)
	case !l.take(answer{r.URL.Query()}):
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte("<!doctype html><title>Consort</title><p>This page does not belong to the login that Consort waits for."))
	default:
		_, _ = w.Write([]byte("<!doctype html><title>Consort</title><p>Consort has received the answer and says in the terminal whether the login worked. You can close this page."))
	}
}

// take accepts the first answer with the right state, and no other.
func (l *listener) take(a answer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done || !a.isFor(l.state) {
		return false
	}
	l.done = true
	l.answers <- a
	return true
}

// wait returns the answer. paste may be nil.
func (l *listener) wait(ctx context.Context, paste func(context.Context) (string, error)) (answer, error) {
	pasting, stop := context.WithCancel(ctx)
	failed := make(chan error, 1)
	var pastes sync.WaitGroup
	defer pastes.Wait()
	defer stop()
	if paste != nil {
		pastes.Go(func() {
			address, err := paste(pasting)
			if err == nil {
				err = l.takePasted(address)
			}
			if err != nil {
				failed <- err
			}
		})
	}
	select {
	case a := <-l.answers:
		return a, nil
	case err := <-failed:
		return answer{}, err
	case <-ctx.Done():
		return answer{}, fmt.Errorf("no login has arrived: %w", context.Cause(ctx))
	}
}

func (l *listener) takePasted(address string) error {
	_, query, found := strings.Cut(strings.TrimSpace(address), "?")
	query, _, _ = strings.Cut(query, "#")
	values, err := url.ParseQuery(query)
	switch {
	case !found, err != nil, values.Get("state") == "":
		return errors.New("this is not the address that the browser was sent to: it should begin with " + l.address + "?")
	case !l.take(answer{values}):
		return errors.New("this address belongs to another login")
	}
	return nil
}
