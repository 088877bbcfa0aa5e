// SPDX-License-Identifier: Apache-2.0

package loginpages

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/login"
	"go.uber.org/zap"
)

const (
	attemptLifetime = 15 * time.Minute // of a link
	sessionLifetime = time.Hour        // of the proof that a browser belongs to an identity
	maxAttempts     = 10_000
	maxSessions     = 10_000           // such proofs
	maxOwn          = 20               // such proofs of one identity
	maxWrong        = 10               // wrong tokens at one link
	reportEvery     = 10 * time.Second // so that a client knows that its call goes on
)

// Request is a login that a call needs.
type Request struct {
	// Server is the name of the server, and Client that of the identity, for people.
	Server, Client string
	Identity       string
	// Begin begins the login; see [login.Client.Begin].
	Begin func(ctx context.Context, callback string) (*login.Redirect, error)
	// Call is the call that waits; nil if no person can be asked.
	Call *invoker.Call
}

// attempt is one link: all calls of an identity to a server share it, and all visits.
type attempt struct {
	id      string
	request Request
	kind    Kind
	isVisit bool // the person began it; otherwise a call needs the login
	expires time.Time
	done    chan struct{} // closed when the login was stored, or the link is void
	err     error         // why it is void; set before done is closed

	mu        sync.Mutex
	visit     Visit           // the last one
	redirect  *login.Redirect // nil before the person agreed
	proof     *signIn         // nil unless the person shows who they are at the issuer
	wrong     int
	completed []func() // tell clients that the interaction is complete
}

// Login gives the person behind a call the link of a page, and waits until they have logged
// in. Its error is a failure that says what to do.
func (p *Pages) Login(ctx context.Context, r Request) error {
	base := p.base()
	if base == "" {
		return invoker.Failf(invoker.Unauthorized, "The server %q needs a login of the user. There is no page to log in at, because the gateway does not know its own address: set serve.resource_metadata.resource.", r.Server)
	}
	a, err := p.attempt(&r, Own, nil)
	if err != nil {
		return err
	}
	link := base + Path + a.id
	question := &invoker.ElicitRequest{
		Server: r.Server, Key: "login", URL: link, OnCompletion: a.onCompletion,
		Message: fmt.Sprintf("The server %q needs your login. Open the page, which belongs to this gateway, and log in. The call goes on afterwards.", r.Server),
	}
	if r.Call == nil || r.Call.Person == nil {
		return p.refused(r.Server, link)
	}
	answer, err := r.Call.Ask(ctx, question)
	switch {
	case ctx.Err() != nil:
		return invoker.AsFailure(ctx.Err())
	case err != nil: // the client cannot show a page, or did not answer
		return p.refused(r.Server, link)
	case answer.Action != invoker.Accept:
		return invoker.Failf(invoker.Unauthorized, "The server %q needs a login, and the user declined. The call was not made.", r.Server)
	}
	return a.wait(ctx, r.Call, p.refused(r.Server, link))
}

// refused is the failure of a call whose person has to open a page.
func (p *Pages) refused(server, link string) error {
	return invoker.Failf(invoker.Unauthorized, "The server %q needs a login of the user, so the call was not made. Ask the user to open %s in a browser within %s and to log in there. Then make the same call again.", server, link, attemptLifetime)
}

// wait waits until the login is complete.
func (a *attempt) wait(ctx context.Context, call *invoker.Call, late error) error {
	defer call.Hold()()
	limit, ticks := time.NewTimer(time.Until(a.expires)), time.NewTicker(reportEvery)
	defer limit.Stop()
	defer ticks.Stop()
	for n := 1.0; ; n++ {
		call.Report(invoker.Progress{Done: n, Message: "waiting for the login at " + a.request.Server})
		select {
		case <-a.done:
			return a.err
		case <-limit.C:
			return late
		case <-ctx.Done():
			return invoker.AsFailure(ctx.Err())
		case <-ticks.C:
		}
	}
}

// onCompletion implements [invoker.ElicitRequest].OnCompletion.
func (a *attempt) onCompletion(told func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-a.done:
		go told()
	default:
		a.completed = append(a.completed, told)
	}
}

// attempt returns the open attempt of an identity and a server, or a new one, for a call or for
// a visit.
func (p *Pages) attempt(r *Request, kind Kind, v *Visit) (*attempt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for id, a := range p.attempts {
		switch {
		case now.After(a.expires):
			delete(p.attempts, id)
		case a.isOf(r, kind) && a.isVisit == (v != nil) && a.expires.Sub(now) > attemptLifetime/3:
			a.visited(v)
			return a, nil
		}
	}
	if len(p.attempts) >= maxAttempts {
		return nil, invoker.UnavailableFor(time.Minute, "Too many logins are under way. The call was not made.")
	}
	a := &attempt{id: rand.Text(), request: *r, kind: kind, isVisit: v != nil, expires: now.Add(attemptLifetime), done: make(chan struct{})}
	a.request.Call = nil
	a.visited(v)
	p.attempts[a.id] = a
	return a, nil
}

// isOf reports whether an attempt leads to the login that a request needs.
func (a *attempt) isOf(r *Request, kind Kind) bool {
	return a.request.Identity == r.Identity && a.request.Server == r.Server && a.kind == kind
}

// visited remembers the last visit, whose session is still open when an earlier one has ended.
func (a *attempt) visited(v *Visit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if v != nil {
		a.visit = *v
	}
}

// lastVisit returns the last visit; empty for an attempt of a call.
func (a *attempt) lastVisit() Visit {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.visit
}

// find returns an open attempt, or nil.
func (p *Pages) find(matches func(*attempt) bool) *attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.attempts {
		if time.Now().Before(a.expires) && matches(a) {
			return a
		}
	}
	return nil
}

// end ends an attempt, with an error if it is void.
func (p *Pages) end(a *attempt, err error) {
	p.mu.Lock()
	delete(p.attempts, a.id)
	p.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-a.done:
		return
	default:
	}
	a.err = err
	close(a.done)
	for _, told := range a.completed {
		go told()
	}
	a.completed = nil
}

// begin begins the login at the authorization server, and returns where it goes on.
func (p *Pages) begin(ctx context.Context, a *attempt) (*login.Redirect, error) {
	r, err := a.request.Begin(ctx, p.base()+callbackPath)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.redirect = r // an earlier one is void: its state is not known any more
	return r, nil
}

// isFor reports whether a redirect belongs to the attempt.
func (a *attempt) isFor(query url.Values) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.redirect != nil && a.redirect.IsFor(query)
}

// finish completes the attempt with a redirect.
func (p *Pages) finish(ctx context.Context, a *attempt, query url.Values) error {
	a.mu.Lock()
	r := a.redirect
	a.redirect = nil // a code and a state are used once
	a.mu.Unlock()
	if r == nil {
		return errors.New("the answer was used before")
	}
	l, err := r.Finish(ctx, query)
	if err != nil {
		return err
	}
	p.log.Info("a person has logged in", logevent.LoginByPerson, zap.String("server", a.request.Server), zap.String("client_name", a.request.Client), zap.String("issuer", l.Issuer))
	p.end(a, nil)
	if a.kind == Own { // calls may wait for the same login
		same := func(other *attempt) bool { return !other.isVisit && other.isOf(&a.request, Own) }
		for call := p.find(same); call != nil; call = p.find(same) {
			p.end(call, nil)
		}
	}
	return nil
}
