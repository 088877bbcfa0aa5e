// SPDX-License-Identifier: Apache-2.0

package dpop

import (
	"context"
	"io"
	"net/http"
)

// maxRefusal is how much of a refusal is read, so that its connection can be used again.
const maxRefusal = 64 << 10

// Prover proves the possession of the key of one access token.
type Prover struct {
	Key    *Key
	Token  string
	Nonces *Nonces
}

// slot is where [Bind] puts a prover.
type slot struct{ prover *Prover }

type slotKey struct{}

// Expect returns a context for a function that returns an access token, and a function that
// then returns the prover of that token; nil if the token is not bound to a key.
func Expect(ctx context.Context) (context.Context, func() *Prover) {
	s := new(slot)
	return context.WithValue(ctx, slotKey{}, s), func() *Prover { return s.prover }
}

// Bind says that the access token that is returned to the caller is bound to the key of p. If
// the caller does not expect that, it does nothing.
func Bind(ctx context.Context, p *Prover) {
	if s, ok := ctx.Value(slotKey{}).(*slot); ok {
		s.prover = p
	}
}

// Send sends a request to a protected resource with a proof for it, and sends it again if the
// resource wants its nonce in the proof (RFC 9449, section 9).
func (p *Prover) Send(req *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	again := req.Clone(req.Context())
	for retry := req.Body == nil || req.Body == http.NoBody || req.GetBody != nil; ; retry = false {
		nonce := p.Nonces.Of(req.URL, true)
		proof, err := p.Key.Proof(req.Method, req.URL, p.Token, nonce)
		if err != nil {
			if req.Body != nil {
				req.Body.Close()
			}
			return nil, err
		}
		req.Header.Set(Scheme, proof)
		response, err := send(req)
		if err != nil {
			return nil, err
		}
		renewed := p.Nonces.Learn(req.URL, true, response.Header, nonce)
		if !retry || !renewed || !demandsNonce(response) {
			return response, nil
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxRefusal))
		response.Body.Close()
		if req = again; req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}
