// SPDX-License-Identifier: Apache-2.0

package access

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/invoker"
)

// Token is a bearer token that a client may send.
type Token struct {
	Token   string
	Hash    [sha256.Size]byte // SHA-256 of the token, if Token is empty
	Name    string            // default a name derived from the token
	Trusted []invoker.Value
	Expires time.Time // zero means never
}

// Reasons why a token is not accepted.
var (
	ErrNone    = errors.New("the bearer token is missing")
	ErrWrong   = errors.New("the bearer token is unknown to this server")
	ErrExpired = errors.New("the bearer token has expired")
)

// Tokens are the static bearer tokens of a server. The zero value has none.
type Tokens struct {
	configured bool
	known      []Token // with their hashes
}

// NewTokens returns the static tokens of a server: one without values of its own, unless
// single is empty, and several with values. Each is hashed once, here. An empty token is
// never accepted.
func NewTokens[T ~struct {
	Token   string
	Hash    [sha256.Size]byte
	Name    string
	Trusted []invoker.Value
	Expires time.Time
}](single string, tokens []T) Tokens {
	t := Tokens{configured: single != "" || len(tokens) > 0}
	t.add(Token{Token: single})
	for _, token := range tokens {
		t.add(Token(token))
	}
	return t
}

func (t *Tokens) add(token Token) {
	if token.Token != "" {
		token.Hash = sha256.Sum256([]byte(token.Token))
	}
	if token.Hash != [sha256.Size]byte{} {
		token.Trusted = slices.Clone(token.Trusted)
		t.known = append(t.known, token)
	}
}

// Configured reports whether the server was given static tokens, so that requests need
// one.
func (t Tokens) Configured() bool { return t.configured }

// Sender is the client that sent a request, as its credentials identify it.
type Sender struct {
	Values []invoker.Value
	Name   string // by its token; may be empty
	// Key identifies the client, together with the values; empty if these are enough.
	Key         string
	isStatic    bool   // the name is one of the configuration
	token       string // of an issuer; empty if it is static
	certificate string // the name by its certificate; may be empty
}

// WithName returns a context that carries the name of the client, if it has one, and a
// token of an issuer. The name by a token comes before the name by a certificate.
func (s *Sender) WithName(ctx context.Context) context.Context {
	if s.token != "" {
		ctx = context.WithValue(ctx, tokenKey{}, s.token)
	}
	ctx = WithName(ctx, s.certificate)
	if s.isStatic {
		return WithName(ctx, s.Name)
	}
	return WithUser(ctx, s.Name)
}

type tokenKey struct{}

// TokenFrom returns the token of an issuer with which a client made the request of ctx, or an
// empty string. It must not be sent to anyone but an authorization server that exchanges it.
func TokenFrom(ctx context.Context) string {
	token, _ := ctx.Value(tokenKey{}).(string)
	return token
}

// AskFunc returns the name and the values of the client of a token.
type AskFunc = func(token string) (name string, values []invoker.Value, err error)

// Check checks the Authorization headers of a request (RFC 6750, § 2.1). It looks for
// the token among the static ones first, and then calls ask, which may be nil. A panic of
// ask refuses the token.
func (t Tokens) Check(headers []string, ask AskFunc) (*Sender, error) {
	token, err := bearer(headers)
	if err != nil {
		return nil, err
	}
	if known, ok := t.find(token); ok {
		if !known.Expires.IsZero() && !time.Now().Before(known.Expires) {
			return nil, fmt.Errorf("%w: the client %q had it until %s", ErrExpired, cmp.Or(known.Name, nameOf(token)), known.Expires.UTC().Format(time.RFC3339))
		}
		return &Sender{Values: known.Trusted, Name: known.Name, Key: cmp.Or(known.Name, nameOf(token)), isStatic: true}, nil
	}
	if ask == nil {
		return nil, ErrWrong
	}
	name, values, err := asked(token, ask)
	if err != nil {
		return nil, err
	}
	s := &Sender{Values: values, Name: name, Key: name, token: token}
	if name == "" && len(values) == 0 {
		s.Key = nameOf(token) // nothing else identifies the client
	}
	return s, nil
}

func bearer(headers []string) (token string, err error) {
	if len(headers) != 1 {
		return "", ErrNone
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", ErrNone
	}
	return token, nil
}

func asked(token string, ask AskFunc) (name string, values []invoker.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the check of the token panicked: %v", p)
		}
	}()
	return ask(token)
}

// find returns the static token that was sent. It compares all of them, as hashes of
// the same length, so that the duration reveals nothing.
func (t Tokens) find(token string) (found Token, ok bool) {
	sent := sha256.Sum256([]byte(token))
	for i := range t.known {
		if subtle.ConstantTimeCompare(sent[:], t.known[i].Hash[:]) == 1 {
			found, ok = t.known[i], true
		}
	}
	return found, ok
}

// nameOf returns a name for a token that does not reveal it.
func nameOf(token string) string {
	hash := sha256.Sum256([]byte(token))
	return "token " + hex.EncodeToString(hash[:6])
}
