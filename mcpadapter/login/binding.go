// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/consort-go/consort/mcpadapter/internal/dpop"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// binding says whether tokens are bound to a key (RFC 9449).
type binding struct {
	key      Secret // a new one; empty if they are not
	onlyType string // the only type that the server takes; empty if it takes others
}

// bindingFor returns the binding of new tokens. The authorization server must offer it, and the
// server must have said that it knows it, in its metadata or its challenge: many authorization
// servers offer it for servers that take bearer tokens only.
func bindingFor(s *authServer, resource *oauthex.ProtectedResourceMetadata, challenges []oauthex.Challenge) (binding, error) {
	if resource == nil {
		resource = new(oauthex.ProtectedResourceMetadata)
	}
	var b binding
	required := resource.DPOPBoundAccessTokensRequired
	if required {
		b.onlyType = dpop.Scheme
	}
	known := required || len(resource.DPOPSigningAlgValuesSupported) > 0 || slices.ContainsFunc(challenges, func(challenge oauthex.Challenge) bool {
		return challenge.Scheme == "dpop"
	})
	fits := dpop.Supported(s.DPoPAlgorithms) && dpop.Supported(resource.DPOPSigningAlgValuesSupported)
	switch {
	case required && !fits:
		return b, errors.New("the server takes only tokens that are bound to a key of an algorithm other than ES256, which this client does not have (RFC 9449)")
	case !known || !fits || len(s.DPoPAlgorithms) == 0 && !required:
		return b, nil
	}
	key, err := dpop.NewKey()
	b.key = Secret(key)
	return b, err
}

// prove adds a proof to a request to the token endpoint of a login whose tokens are, or are to
// be, bound to a key (RFC 9449, section 5).
func (w *wire) prove(req *http.Request, l *Login) error {
	if l.DPoPKey == "" || req.URL.String() != l.TokenEndpoint {
		return nil
	}
	key, err := dpop.ParseKey(string(l.DPoPKey))
	if err != nil {
		return err
	}
	proof, err := key.Proof(req.Method, req.URL, "", w.nonces.Of(req.URL, false))
	req.Header.Set(dpop.Scheme, proof)
	return err
}

// bind tells a connection that the access token of a login is bound to a key.
func (w *wire) bind(ctx context.Context, l *Login) error {
	if l.DPoPKey == "" {
		return nil
	}
	key, err := dpop.ParseKey(string(l.DPoPKey))
	if err == nil {
		dpop.Bind(ctx, &dpop.Prover{Key: key, Token: string(l.AccessToken), Nonces: &w.nonces})
	}
	return err
}
