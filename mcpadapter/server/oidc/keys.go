// SPDX-License-Identifier: Apache-2.0

package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/go-jose/go-jose/v4"
	"go.uber.org/zap"
)

const (
	keysFresh    = 10 * time.Minute // then the keys are fetched again, so that withdrawn ones go
	keysSettled  = 10 * time.Second // then an unknown key lets them be fetched again
	retryPause   = 10 * time.Second // after the issuer did not answer
	fetchTimeout = 5 * time.Second
	maxDocument  = 512 << 10 // bytes of one document of the issuer
	maxKeys      = 64
)

// The sizes of RSA keys that are used: shorter ones are too weak (RFC 7518, section 3.3),
// and longer ones make each check slow.
const minRSA, maxRSA = 2048, 8192

// keySet holds the public keys of an issuer. They go on working while the issuer does not
// answer. One caller fetches them at a time.
type keySet struct {
	issuer string
	client *http.Client
	log    *zap.Logger
	turn   chan struct{} // has an element while the keys are fetched

	mu      sync.Mutex // guards the fields below
	keys    []jose.JSONWebKey
	fetched time.Time // when keys arrived
	failed  error     // of the last request; nil if it succeeded
	retry   time.Time // when the next request may be sent after it
}

func newKeySet(issuer string, transport http.RoundTripper, log *zap.Logger) *keySet {
	if standard, ok := http.DefaultTransport.(*http.Transport); ok && transport == nil {
		own := standard.Clone()
		own.DisableKeepAlives = true // requests are rare, and no connection is left open
		transport = own
	}
	return &keySet{issuer: issuer, log: log, turn: make(chan struct{}, 1), client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// verify checks the signature of a token and returns its payload. If the token could be
// signed with a key that is not known yet, or has replaced one with the same ID, the keys are
// fetched again, but not too often.
func (k *keySet) verify(ctx context.Context, token string) ([]byte, error) {
	jws, err := jose.ParseSignedCompact(token, algorithms)
	if err != nil {
		return nil, fmt.Errorf("the token cannot be read: %s", brief(err))
	}
	header := &jws.Signatures[0].Protected
	if err := checkType(header); err != nil {
		return nil, err
	}
	keys, err := k.newerThan(ctx, keysFresh)
	if len(keys) == 0 {
		return nil, away(err)
	}
	payload, known := payloadOf(jws, header, keys)
	if payload != nil {
		return payload, nil
	}
	switch keys, err = k.newerThan(ctx, keysSettled); {
	case err != nil && known:
		return nil, errSignature
	case err != nil:
		return nil, away(err)
	}
	if payload, _ = payloadOf(jws, header, keys); payload == nil {
		return nil, errSignature
	}
	return payload, nil
}

var errSignature = errors.New("the token was not signed with a key of the issuer")

// checkType refuses JWTs with the type of something else than an access token (RFC 8725,
// section 3.11). Many issuers leave the type out, or use JWT.
func checkType(header *jose.Header) error {
	of, ok := header.ExtraHeaders[jose.HeaderType]
	text, isText := of.(string)
	if !ok || isText && slices.Contains([]string{"jwt", "at+jwt", "application/at+jwt"}, strings.ToLower(text)) {
		return nil
	}
	return errors.New("the token has not the type of an access token (RFC 9068)")
}

// payloadOf returns the payload of a token that one of the keys has signed, or else nil.
// known reports whether there is a key with the ID that the token names.
func payloadOf(signed *jose.JSONWebSignature, header *jose.Header, keys []jose.JSONWebKey) (payload []byte, known bool) {
	for i := range keys {
		key := &keys[i]
		if header.KeyID != "" && key.KeyID != header.KeyID {
			continue
		}
		known = known || header.KeyID != ""
		if key.Algorithm != "" && key.Algorithm != header.Algorithm {
			continue
		}
		if payload, err := signed.Verify(key.Key); err == nil {
			return payload, true
		}
	}
	return nil, known
}

// newerThan returns the keys, and fetches them before if they are older than age. If that
// fails, it returns the old ones, if there are any, and the error. While another caller
// fetches keys that are merely older than [keysFresh], it returns the old ones.
func (k *keySet) newerThan(ctx context.Context, age time.Duration) ([]jose.JSONWebKey, error) {
	keys, err, isDue := k.state(age)
	if !isDue {
		return keys, err
	}
	if len(keys) > 0 && age == keysFresh {
		select {
		case k.turn <- struct{}{}:
		default:
			return keys, nil
		}
	} else {
		select {
		case k.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer func() { <-k.turn }()
	if keys, err, isDue = k.state(age); !isDue { // another caller has fetched them
		return keys, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	fresh, err := k.fetch(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failed = err; err != nil {
		k.retry = time.Now().Add(retryPause)
		k.log.Warn("the keys of an issuer could not be fetched; those that are known go on working", logevent.OIDCKeysFailed, zap.String("issuer", k.issuer), zap.Int("keys", len(k.keys)), zap.String("error", brief(err)))
		return k.keys, err
	}
	k.keys, k.fetched = fresh, time.Now()
	k.log.Debug("the keys of an issuer were fetched", logevent.OIDCKeysFetched, zap.String("issuer", k.issuer), zap.Int("keys", len(fresh)))
	return fresh, nil
}

// state returns the keys, and the error of the last request for them if the next one must
// wait. isDue reports whether they are older than age and may be fetched now.
func (k *keySet) state(age time.Duration) (keys []jose.JSONWebKey, err error, isDue bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch now := time.Now(); {
	case len(k.keys) > 0 && now.Sub(k.fetched) < age:
		return k.keys, nil, false
	case k.failed != nil && now.Before(k.retry):
		return k.keys, k.failed, false
	}
	return k.keys, nil, true
}

// away is the failure of a token that cannot be checked.
func away(err error) error {
	return &invoker.Failure{
		Code: invoker.Unavailable, Message: "The token cannot be checked now, because its issuer does not answer.",
		Retryable: true, RetryAfter: retryPause, Cause: err,
	}
}

// fetch asks the issuer for its metadata, and then for its keys.
func (k *keySet) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	place, err := k.discover(ctx)
	if err != nil {
		return nil, fmt.Errorf("the metadata of the issuer %s: %w", k.issuer, err)
	}
	var document struct{ Keys []json.RawMessage }
	if err := k.get(ctx, place, &document); err != nil {
		return nil, fmt.Errorf("the keys of the issuer %s: %w", k.issuer, err)
	}
	var keys []jose.JSONWebKey
	for _, raw := range document.Keys {
		if key := new(jose.JSONWebKey); json.Unmarshal(raw, key) == nil && isUsable(key) { // others are ignored (RFC 7517, section 5)
			keys = append(keys, *key)
		}
	}
	switch {
	case len(keys) == 0:
		return nil, fmt.Errorf("the keys of the issuer %s: none of them can be used to check the signature of a token", k.issuer)
	case len(keys) > maxKeys:
		return nil, fmt.Errorf("the keys of the issuer %s: there are more than %d", k.issuer, maxKeys)
	}
	return keys, nil
}

// isUsable reports whether signatures can be checked with a key.
func isUsable(key *jose.JSONWebKey) bool {
	if key.Use != "" && key.Use != "sig" {
		return false
	}
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		return public.N.BitLen() >= minRSA && public.N.BitLen() <= maxRSA
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}

// discover returns the address of the issuer's keys, from the metadata of OpenID Connect
// (Discovery 1.0, section 4) or else of OAuth (RFC 8414, section 3).
func (k *keySet) discover(ctx context.Context) (string, error) {
	issuer, err := url.Parse(k.issuer)
	if err != nil {
		return "", err
	}
	path := strings.TrimSuffix(issuer.Path, "/")
	var failures []error
	for _, place := range []string{path + "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server" + path} {
		var metadata struct {
			Issuer string `json:"issuer"`
			Keys   string `json:"jwks_uri"`
		}
		issuer.Path, issuer.RawPath = place, ""
		err := k.get(ctx, issuer.String(), &metadata)
		if answered, ok := errors.AsType[statusError](err); ok && answered >= 400 && answered < 500 {
			failures = append(failures, err)
			continue
		}
		switch {
		case err != nil:
			return "", err
		case metadata.Issuer != k.issuer:
			return "", fmt.Errorf("they belong to another issuer, %q", textcut.Bytes(metadata.Issuer, 200))
		}
		if err := checkURL(metadata.Keys); err != nil {
			return "", fmt.Errorf("the address of the keys %w", err)
		}
		return metadata.Keys, nil
	}
	return "", errors.Join(failures...)
}

// statusError is the status of a response without the expected document.
type statusError int

func (e statusError) Error() string {
	return fmt.Sprintf("the issuer answers with status %d %s", int(e), http.StatusText(int(e)))
}

// get reads a JSON document.
func (k *keySet) get(ctx context.Context, address string, to any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Cache-Control", "no-cache") // of proxies
	response, err := k.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return statusError(response.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	switch {
	case err != nil:
		return err
	case len(text) > maxDocument:
		return fmt.Errorf("the document has more than %d bytes", maxDocument)
	case json.Unmarshal(text, to) != nil:
		return errors.New("the document is not the expected JSON")
	}
	return nil
}

// brief returns the text of an error, with what others wrote made printable and short.
func brief(err error) string { return textcut.Bytes(display.Line(err.Error()), 400) }
