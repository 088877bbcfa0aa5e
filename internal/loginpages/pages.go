// SPDX-License-Identifier: Apache-2.0

package loginpages

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/listening"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/unsent"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/login"
	"go.uber.org/zap"
)

// Path begins the paths of the pages.
const Path = "/login/"

const (
	callbackPath = Path + "callback"
	signInPath   = Path + "issuer" // the callback of a login at the issuer of clients' tokens
	cookieName   = "consort_login"
	signInCookie = "consort_sign_in"
	maxForm      = 64 << 10

	finishTimeout = time.Minute     // to get and store the login after the person has agreed
	closeTimeout  = 5 * time.Second // the same when the pages are closed
)

// Options configure [New].
type Options struct {
	// Base returns the address of the gateway as browsers see it, such as
	// https://tools.example.com, without a path; empty while it is not known.
	Base func() string
	// Identify passes a request with a token on to next, whose context has the identity, or
	// refuses it.
	Identify func(next http.Handler) http.Handler
	// Identity returns the identity of the logins of a context.
	Identity func(ctx context.Context) (identity string, ok bool)
	// SignsIn reports whether people can show who they are with a login at the issuer of their
	// clients' tokens, and SignIn begins it: its result is a token for the gateway. Both may be
	// nil.
	SignsIn func() bool
	SignIn  func(ctx context.Context, callback string) (*login.Redirect, error)
	// Servers returns the servers with a login of people, by their names; may be nil.
	Servers func() map[string]Server
	// Logger logs logins; may be nil.
	Logger *zap.Logger
}

// Pages are the pages of a gateway, and the logins that wait for them. Its methods may be
// called concurrently.
type Pages struct {
	options Options
	log     *zap.Logger

	open   context.Context // ends when logins can no longer be completed
	cancel context.CancelCauseFunc

	mu         sync.Mutex
	attempts   map[string]*attempt
	sessions   map[[sha256.Size]byte]session // by the hash of the cookie
	closed     bool
	completing sync.WaitGroup // logins; none is added after closed is set
}

// session is the proof that a browser belongs to an identity.
type session struct {
	identity string
	expires  time.Time
}

// New returns the pages.
func New(options *Options) *Pages {
	p := &Pages{options: *options, log: logevent.Logger(options.Logger), attempts: map[string]*attempt{}, sessions: map[[sha256.Size]byte]session{}}
	p.open, p.cancel = context.WithCancelCause(context.Background())
	return p
}

var errClosed = errors.New("the gateway is shutting down")

// Close waits up to 5 s for the logins that are being completed, and then cancels the rest. Later
// ones fail. It returns nil.
func (p *Pages) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	timer := time.AfterFunc(closeTimeout, func() { p.cancel(errClosed) })
	defer timer.Stop()
	p.completing.Wait()
	p.cancel(errClosed)
	return nil
}

// complete returns the context for completing a login, which can be done once: it goes on if the
// browser of the request leaves. The caller must call end afterwards.
func (p *Pages) complete(request context.Context) (ctx context.Context, end func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, errClosed
	}
	p.completing.Add(1)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(request), finishTimeout)
	stop := context.AfterFunc(p.open, cancel)
	return ctx, func() {
		stop()
		cancel()
		p.completing.Done()
	}, nil
}

func (p *Pages) base() string { return strings.TrimRight(p.options.Base(), "/") }

// ServeHTTP implements [http.Handler] for the paths that begin with [Path].
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'")
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "same-origin") // with no-referrer, browsers send the forms with the header Origin: null
	header.Set("X-Content-Type-Options", "nosniff")
	base, err := url.Parse(p.base())
	if err != nil || !strings.EqualFold(r.Host, base.Host) { // another name could belong to another's page (DNS rebinding)
		p.show(w, http.StatusForbidden, notice{Title: "Wrong address", Text: "This page has another address."})
		return
	}
	id := strings.TrimPrefix(r.URL.Path, Path)
	switch {
	case r.URL.Path == callbackPath && r.Method == http.MethodGet:
		p.callback(w, r)
	case r.URL.Path == signInPath && r.Method == http.MethodGet:
		p.signedIn(w, r)
	case r.URL.Path == callbackPath, r.URL.Path == signInPath, r.Method != http.MethodGet && r.Method != http.MethodPost:
		header.Set("Allow", "GET")
		p.show(w, http.StatusMethodNotAllowed, notice{Title: "Not allowed", Text: "The method is not allowed."})
	default:
		a := p.find(func(a *attempt) bool { return a.id == id })
		if a == nil {
			p.show(w, http.StatusNotFound, notice{Title: "No such link", Text: "This link is not valid, or not any more. Make the call again to get another one."})
			return
		}
		p.link(w, r, a)
	}
}

// link shows the page of a link, and leads on to the authorization server.
func (p *Pages) link(w http.ResponseWriter, r *http.Request, a *attempt) {
	known := p.identityOf(r) == a.request.Identity
	if r.Method == http.MethodGet {
		p.show(w, http.StatusOK, p.question(a, known, ""))
		return
	}
	if !p.isOwnForm(r) {
		p.show(w, http.StatusForbidden, notice{Title: "Refused", Text: "The form comes from another page."})
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		p.show(w, http.StatusBadRequest, notice{Title: "Refused", Text: "The form cannot be read."})
		return
	}
	listening.ServeHTTP(r.Context()) // the authorization server may take a while
	if !known && r.PostForm.Has("issuer") && p.signsIn() {
		p.signIn(w, r, a)
		return
	}
	if !known {
		if err := p.prove(r, a); err != nil {
			status := http.StatusForbidden
			if errors.Is(err, errUnchecked) {
				status = http.StatusServiceUnavailable
			}
			p.show(w, status, p.question(a, false, err.Error()))
			return
		}
		p.remember(w, a.request.Identity)
	}
	if !p.may(w, a) {
		return
	}
	redirect, err := p.begin(r.Context(), a)
	if err != nil {
		p.log.Warn("a login could not begin", logevent.LoginByPersonFailed, zap.String("server", a.request.Server), zap.String("client_name", a.request.Client), zap.Error(err))
		p.show(w, http.StatusBadGateway, notice{Title: "It did not work", Text: "The login at " + a.request.Server + " could not begin: " + err.Error()})
		return
	}
	http.Redirect(w, r, redirect.URL, http.StatusSeeOther)
}

func (p *Pages) signsIn() bool { return p.options.SignsIn != nil && p.options.SignsIn() }

// question returns the page of a link.
func (p *Pages) question(a *attempt, known bool, problem string) question {
	q := question{Server: a.request.Server, Client: a.request.Client, Known: known, SignsIn: p.signsIn(), Problem: problem}
	q.Asked, q.Shared = !a.isVisit, a.kind == Shared
	return q
}

// prove checks that the token of a form belongs to the identity of an attempt.
func (p *Pages) prove(r *http.Request, a *attempt) error {
	a.mu.Lock()
	a.wrong++
	tooMany := a.wrong > maxWrong
	a.mu.Unlock()
	if tooMany {
		p.end(a, invoker.Failf(invoker.Unauthorized, "The login at %q was given up: too many wrong tokens were entered. The call was not made.", a.request.Server))
		return errors.New("too many wrong tokens were entered: make the call again to get another link")
	}
	identity, err := p.identityOfToken(r, strings.TrimSpace(r.PostForm.Get("token")))
	switch {
	case err != nil && !errors.Is(err, errUnchecked):
		return err
	case err == nil && identity != a.request.Identity:
		p.log.Warn("a link of a login was opened by another client", logevent.LoginByPersonFailed, zap.String("server", a.request.Server), zap.String("client_name", a.request.Client))
		return errors.New("this token belongs to another client than the one whose call needs the login: if you did not make that call, close this page")
	}
	a.mu.Lock()
	a.wrong--
	a.mu.Unlock()
	return err
}

// The errors of identityOfToken.
var (
	errNotValid = errors.New("this token is not valid at this gateway")
	// errUnchecked says nothing about the token: its client has too many requests under way, for example, or the issuer
	// cannot be reached.
	errUnchecked = errors.New("the gateway cannot check this token at the moment: try again in a few seconds")
)

// refusal is an unsent response that keeps the status.
type refusal struct {
	unsent.Response
	status int
}

// WriteHeader implements [http.ResponseWriter].
func (r *refusal) WriteHeader(status int) { r.status = status }

// identityOfToken returns the identity of a client's token. The server checks it as it
// checks those of requests, with the same limits.
func (p *Pages) identityOfToken(r *http.Request, token string) (identity string, err error) {
	if token == "" || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return "", errNotValid
	}
	asked := r.Clone(r.Context())
	asked.Method, asked.Body, asked.ContentLength = http.MethodGet, http.NoBody, 0
	asked.Header = http.Header{"Authorization": {"Bearer " + token}}
	isKnown, answer := false, &refusal{Response: unsent.Response{}}
	p.options.Identify(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		identity, isKnown = p.options.Identity(r.Context())
		answer.status = http.StatusForbidden // unless it has an identity
	})).ServeHTTP(answer, asked)
	switch {
	case isKnown && identity != "":
		return identity, nil
	case answer.status == http.StatusUnauthorized, answer.status == http.StatusForbidden:
		return "", errNotValid
	}
	return "", errUnchecked
}

// isOwnForm reports whether a form was sent by a page of the gateway.
func (p *Pages) isOwnForm(r *http.Request) bool {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	return (origin == "" || strings.EqualFold(origin, p.base())) && (site == "" || site == "same-origin")
}

// callback receives the redirect of an authorization server.
func (p *Pages) callback(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	a := p.find(func(a *attempt) bool { return a.isFor(query) })
	if a == nil {
		p.show(w, http.StatusBadRequest, notice{Title: "No such login", Text: "This page does not belong to a login that the gateway waits for."})
		return
	}
	if p.identityOf(r) != a.request.Identity {
		p.log.Warn("a redirect came from the browser of another person", logevent.LoginByPersonFailed, zap.String("server", a.request.Server), zap.String("client_name", a.request.Client))
		p.show(w, http.StatusForbidden, notice{Title: "Another browser", Text: "The login was begun in another browser, so it was not completed. If you did not begin it, close this page."})
		return
	}
	if !p.may(w, a) {
		return
	}
	listening.ServeHTTP(r.Context())
	ctx, end, err := p.complete(r.Context())
	if err == nil {
		defer end()
		err = p.finish(ctx, a, query)
	}
	if err != nil {
		p.log.Warn("a login failed", logevent.LoginByPersonFailed, zap.String("server", a.request.Server), zap.String("client_name", a.request.Client), zap.Error(err))
		p.show(w, http.StatusBadGateway, notice{Title: "It did not work", Text: "The login at " + a.request.Server + " failed: " + err.Error() + ". Open the link again to try once more."})
		return
	}
	p.show(w, http.StatusOK, p.completed(ctx, a))
}

// may reports whether the person of an attempt still may log in, and otherwise says so.
func (p *Pages) may(w http.ResponseWriter, a *attempt) bool {
	v := a.lastVisit()
	if v.May == nil {
		return true
	}
	err := v.May()
	if err != nil {
		p.log.Warn("a login was refused", logevent.LoginByPersonFailed, zap.String("server", a.request.Server), zap.String("client_name", a.request.Client), zap.Error(err))
		p.show(w, http.StatusForbidden, notice{Title: "Refused", Text: "You cannot log in at " + a.request.Server + " here: " + err.Error() + ".", Back: v.Back})
	}
	return err == nil
}

// completed returns the page after a login.
func (p *Pages) completed(ctx context.Context, a *attempt) notice {
	n := notice{Title: "Logged in", Text: "You are logged in at " + a.request.Server + ". The call goes on. You can close this page."}
	if a.isVisit {
		v := a.lastVisit()
		if v.Done != nil {
			v.Done(ctx)
		}
		n.Text, n.Back = "You are logged in at "+a.request.Server+".", v.Back
	}
	return n
}

// identityOf returns the identity that the browser of a request has proved; empty for none.
func (p *Pages) identityOf(r *http.Request) string {
	cookie, err := r.Cookie(p.cookie(cookieName))
	if err != nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.sessions[sha256.Sum256([]byte(cookie.Value))]
	if time.Now().After(found.expires) {
		return ""
	}
	return found.identity
}

// remember gives the browser a cookie for an identity. If there are too many proofs, the oldest one is
// dropped: first of the same identity, which does not end the logins of others.
func (p *Pages) remember(w http.ResponseWriter, identity string) {
	secret, now := rand.Text()+rand.Text(), time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for hash, s := range p.sessions {
		if now.After(s.expires) {
			delete(p.sessions, hash)
		}
	}
	p.leave(maxOwn-1, func(s session) bool { return s.identity == identity })
	p.leave(maxSessions-1, func(session) bool { return true })
	p.sessions[sha256.Sum256([]byte(secret))] = session{identity, now.Add(sessionLifetime)}
	p.setCookie(w, cookieName, secret, Path, sessionLifetime)
}

// leave drops the oldest proofs that match until at most n are left. The caller must hold p.mu.
func (p *Pages) leave(n int, match func(session) bool) {
	if len(p.sessions) <= n {
		return
	}
	var all [][sha256.Size]byte
	for hash, s := range p.sessions {
		if match(s) {
			all = append(all, hash)
		}
	}
	slices.SortFunc(all, func(a, b [sha256.Size]byte) int { return p.sessions[a].expires.Compare(p.sessions[b].expires) })
	for _, hash := range all[:max(0, len(all)-n)] {
		delete(p.sessions, hash)
	}
}

// cookie returns the name of a cookie. Over TLS only this host can set it (RFC 6265bis, section
// 4.1.3.2): otherwise another host of the domain could plant the cookie of its own login.
func (p *Pages) cookie(name string) string {
	if strings.HasPrefix(p.base(), "https://") {
		return "__Host-" + name
	}
	return name
}

// setCookie gives the browser a cookie for the paths below path; over TLS for all of this host,
// as its name wants.
func (p *Pages) setCookie(w http.ResponseWriter, name, value, path string, lifetime time.Duration) {
	isSecure := strings.HasPrefix(p.base(), "https://")
	if isSecure {
		path = "/"
	}
	http.SetCookie(w, &http.Cookie{
		Name: p.cookie(name), Value: value, Path: path, MaxAge: int(lifetime.Seconds()), HttpOnly: true,
		SameSite: http.SameSiteLaxMode, // strict would hide it from the redirect
		Secure:   isSecure,
	})
}
