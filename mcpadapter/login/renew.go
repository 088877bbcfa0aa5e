// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/logevent"
	"go.uber.org/zap"
)

// renewal is one search for a valid token, which all callers share.
type renewal struct {
	done  chan struct{} // closed at the end; login and err are set before
	login *Login
	err   error
}

// current returns a login with a valid access token other than rejected. It compares the
// token of this process with the store from time to time. The work does not end with ctx,
// so that a refresh token that was used is replaced by its successor.
func (c *Client) current(ctx context.Context, rejected Secret) (*Login, error) {
	c.mu.Lock()
	settled := c.closed || c.options.actsAlone() || time.Since(c.compared) < compareAfter
	if l := c.held; settled && l.usableBut(rejected) {
		c.mu.Unlock()
		return l, nil
	}
	if c.closed {
		c.mu.Unlock()
		return nil, ensemble.ErrClosed
	}
	r := c.renewing
	if r == nil {
		r = &renewal{done: make(chan struct{})}
		c.renewing = r
		go c.renew(r, rejected)
	}
	c.mu.Unlock()
	select {
	case <-r.done:
		return r.login, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// renew runs a renewal.
func (c *Client) renew(r *renewal, rejected Secret) {
	ctx, cancel := context.WithTimeout(context.Background(), renewTimeout)
	defer cancel()
	defer close(r.done)
	get := c.fromStore
	if c.options.actsAlone() {
		get = c.byItself
	}
	var l *Login
	var err error
	if panicked := contain.Call("the program's Store or HTTP client", func() { l, err = get(ctx, rejected) }); panicked != nil {
		err = panicked
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.hold(l)
	} else if errors.Is(err, ensemble.ErrNeedsLogin) {
		c.held = nil
	}
	r.login, r.err = l, err
	c.renewing, c.compared = nil, time.Now()
}

// newest returns the newest login of a client: the stored one, or one that could not be stored; nil
// without one. If the store cannot be read, it is the one of this process, if its token
// is usable and is not rejected.
func newest(ctx context.Context, c *Client, rejected Secret) (*Login, error) {
	c.mu.Lock()
	held := c.held
	c.mu.Unlock()
	able := held.usableBut(rejected)
	if able {
		reading, cancel := context.WithTimeout(ctx, comparing)
		defer cancel()
		ctx = reading
	}
	var l *Login
	var err error
	if able {
		if l, err = stillStored(ctx, c.options.Store, held.Key); err != nil {
			return held, nil
		}
	}
	if l == nil && err == nil { // removed, or replaced by one of another authorization server
		l, err = find(ctx, c.options.Store, c.key)
	}
	switch {
	case err == nil, isDamaged(err): // without a login, it was removed or is the damaged one
	case able:
		return held, nil
	default:
		return nil, err // a login that could not be stored is still the newest
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unsaved != nil && (l == nil || c.unsaved.Key != l.Key || !l.Obtained.Before(c.unsaved.Obtained)) {
		c.unsaved = nil // replaced or removed in the meantime
	} else if c.unsaved != nil {
		l = c.unsaved
	}
	return l, err
}

// fromStore returns the stored login, renewed if necessary.
func (c *Client) fromStore(ctx context.Context, rejected Secret) (*Login, error) {
	l, err := newest(ctx, c, rejected)
	if err != nil && !isDamaged(err) {
		return nil, fmt.Errorf("reading the stored login: %w", err)
	}
	c.mu.Lock()
	failed, retry := c.failed, c.retry
	c.mu.Unlock()
	switch {
	case l == nil && err != nil: // whose login it is cannot be known
		return nil, c.needed("you have not logged in yet, or your login cannot be read: a stored login is damaged or was written with another key")
	case l == nil:
		return nil, c.needed("you have not logged in yet")
	case c.options.ClientID != "" && l.ClientID != c.options.ClientID:
		return nil, c.needed("the last login was with another client ID")
	case l.usableBut(rejected):
		return l, nil
	case l.Ended != "":
		return nil, c.needed("the authorization server ended the login: " + l.Ended)
	case l.RefreshToken == "" && !l.expired() && l.AccessToken != rejected:
		return l, nil
	case l.RefreshToken == "":
		return nil, c.needed("the login has expired and cannot be renewed")
	case l.AccessToken == rejected && time.Since(l.Obtained) < freshFor:
		return nil, c.needed("the server rejects a new token")
	case failed != nil && time.Now().Before(retry):
		return c.orOld(l, rejected, failed)
	}
	return c.refreshStored(ctx, l, rejected)
}

// orOld returns a login that could not be renewed if its token is still valid, and the
// error otherwise.
func (c *Client) orOld(l *Login, rejected Secret, err error) (*Login, error) {
	if l.expired() || l.AccessToken == rejected {
		return nil, err
	}
	return l, nil
}

// refreshStored renews a stored login. No other process renews it at the same time. If
// one did before, its result is used.
func (c *Client) refreshStored(ctx context.Context, l *Login, rejected Secret) (*Login, error) {
	var result, renewed *Login
	var refreshErr error
	storeErr := c.options.Store.Update(ctx, l.Key, func(now *Login) (*Login, error) {
		switch {
		case now == nil:
			refreshErr = c.needed("you have not logged in yet")
			return nil, nil
		case now.Obtained.Before(l.Obtained): // l could not be stored before
			now = l
		}
		if renewed != nil && now.Obtained.Before(renewed.Obtained) { // another process, which took this one for dead, changed the login
			return renewed, nil
		}
		if now.Ended == "" && now.AccessToken != rejected && now.usable() {
			result = now
			return now, nil
		}
		if now.RefreshToken == "" {
			refreshErr = c.needed("the authorization server ended the login: " + now.Ended)
			return now, nil
		}
		fresh, err := c.refresh(ctx, now)
		if isCode(err, "invalid_grant") {
			c.log.Warn("a login has ended", logevent.LoginEnded, zap.String("server", c.key.Resource), zap.String("issuer", now.Issuer), zap.Error(err))
			refreshErr = c.needed("the authorization server ended the login: " + err.Error())
			return now.ended(err.Error()), nil
		}
		if err != nil {
			return nil, err
		}
		c.log.Debug("a login was renewed", logevent.LoginRenewed, zap.String("server", c.key.Resource), zap.String("issuer", now.Issuer))
		result, renewed = fresh, fresh
		return fresh, nil
	})
	c.mu.Lock()
	c.failed = nil
	switch {
	case storeErr == nil:
		c.unsaved = nil
	case result != nil: // it is used, and stored with the next one
		c.unsaved = result
		c.log.Error("a renewed login could not be stored", logevent.LoginUnsaved, zap.String("server", c.key.Resource), zap.Error(storeErr))
	}
	c.mu.Unlock()
	switch {
	case result != nil:
		return result, nil
	case refreshErr != nil:
		return nil, refreshErr
	}
	return c.notRenewed(l, rejected, storeErr)
}

// notRenewed handles the error of a renewal that ended no login.
func (c *Client) notRenewed(l *Login, rejected Secret, err error) (*Login, error) {
	if refused, ok := errors.AsType[*oauthError](err); ok {
		return nil, c.needed("the authorization server refuses to renew the login: " + refused.Error())
	}
	if _, ok := errors.AsType[*awayError](err); ok {
		c.mu.Lock()
		c.failed, c.retry = err, time.Now().Add(retryPause)
		c.mu.Unlock()
	}
	return c.orOld(l, rejected, err)
}

// byItself gets a token without a person: with the client's own credentials, or with the
// token of a subject.
func (c *Client) byItself(ctx context.Context, rejected Secret) (*Login, error) {
	c.mu.Lock()
	held, found := c.held, c.found
	c.mu.Unlock()
	if held != nil && held.AccessToken == rejected && time.Since(held.Obtained) < freshFor {
		return nil, errors.New("the server rejects a new token of the client")
	}
	if found == nil {
		var err error
		if found, err = c.tokenServer(ctx); err != nil {
			return nil, err
		}
	}
	l := &Login{
		Key:           Key{found.server.Issuer, c.key.Resource, c.key.Identity},
		Audience:      found.audience,
		ClientID:      c.options.ClientID,
		AuthMethod:    c.authMethod(found.server),
		TokenEndpoint: found.server.TokenEndpoint,
		DPoPKey:       found.key,
		onlyType:      found.onlyType,
	}
	scopes := c.options.Scopes
	if len(scopes) == 0 {
		scopes = found.scopes
	}
	form, err := c.aloneForm(ctx, found, scopes)
	if err != nil {
		return nil, err
	}
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	r, err := c.tokenRequest(ctx, l, form)
	if err != nil {
		return nil, c.exchangeRefused(l.Issuer, err)
	}
	c.mu.Lock()
	c.found = found
	c.mu.Unlock()
	return l.with(r), nil
}
