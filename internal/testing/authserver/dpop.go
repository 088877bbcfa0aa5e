// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"crypto"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// proofs are the proofs of DPoP (RFC 9449) that a server got.
type proofs struct {
	seen     map[string]bool // by jti
	refused  []string        // why proofs were refused; missing nonces are not in it
	nonce    int             // the number of the current nonce
	accepted int
}

// Proofs returns how many proofs were accepted, and why others were refused. Those with a missing
// or an old nonce are not counted.
func (s *Server) Proofs() (accepted int, refused []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proofs.accepted, append([]string(nil), s.proofs.refused...)
}

// RenewNonces makes former nonces invalid.
func (s *Server) RenewNonces() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proofs.nonce++
}

// nonce returns the current nonce of a kind of server; s.mu is held.
func (s *Server) nonce(kind string) string { return fmt.Sprint(kind, "-nonce-", s.proofs.nonce) }

// proven checks the proof of a request to the token endpoint, if there is one and the server
// knows DPoP. It returns the thumbprint of the key; empty without one. s.mu is held.
func (s *Server) proven(w http.ResponseWriter, r *http.Request) (thumbprint string, ok bool) {
	if s.behaviour.DPoP == nil || r.Header.Values("DPoP") == nil {
		return "", true
	}
	thumbprint, nonce, err := s.check(r, s.Issuer+"/token", "")
	switch {
	case err != nil:
		refuse(w, "invalid_dpop_proof")
		return "", false
	case s.behaviour.DPoPNonces && nonce != s.nonce("token"):
		w.Header().Set("DPoP-Nonce", s.nonce("token"))
		refuse(w, "use_dpop_nonce")
		return "", false
	}
	s.proofs.accepted++
	return thumbprint, true
}

// provenFor checks the proof of a request to a resource, and answers if it is refused.
func (s *Server) provenFor(w http.ResponseWriter, r *http.Request, resource string) bool {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "DPoP ")
	valid := s.Accepts(token, resource)
	s.mu.Lock()
	defer s.mu.Unlock()
	thumbprint, nonce, err := s.check(r, resource, token)
	problem := ""
	switch {
	case err != nil:
		problem = "invalid_dpop_proof"
	case s.behaviour.DPoPNonces && nonce != s.nonce("resource"):
		problem = "use_dpop_nonce"
		w.Header().Set("DPoP-Nonce", s.nonce("resource"))
	case !valid || s.access[token].thumbprint != thumbprint:
		problem = "invalid_token"
	default:
		s.proofs.accepted++
		return true
	}
	w.Header().Set("WWW-Authenticate", `DPoP error="`+problem+`"`)
	w.WriteHeader(http.StatusUnauthorized)
	return false
}

// check checks a proof (RFC 9449, section 4.3). It returns the nonce unchecked; s.mu is held.
func (s *Server) check(r *http.Request, target, token string) (thumbprint, nonce string, err error) {
	defer func() {
		if err != nil {
			s.proofs.refused = append(s.proofs.refused, err.Error())
		}
	}()
	given := r.Header.Values("DPoP")
	if len(given) != 1 {
		return "", "", fmt.Errorf("%d proofs", len(given))
	}
	signed, err := jose.ParseSignedCompact(given[0], []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return "", "", err
	}
	header := signed.Signatures[0].Protected
	if header.ExtraHeaders["typ"] != "dpop+jwt" || header.JSONWebKey == nil || !header.JSONWebKey.IsPublic() {
		return "", "", errors.New("typ or jwk")
	}
	payload, err := signed.Verify(header.JSONWebKey)
	if err != nil {
		return "", "", err
	}
	var says struct {
		Jti, Htm, Htu, Ath, Nonce string
		Iat                       int64
	}
	if err := json.Unmarshal(payload, &says); err != nil {
		return "", "", err
	}
	ath := ""
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		ath = encoded(sum[:])
	}
	age := time.Since(time.Unix(says.Iat, 0)).Abs()
	switch {
	case says.Jti == "" || s.proofs.seen[says.Jti]:
		return "", "", errors.New("jti")
	case says.Htm != r.Method:
		return "", "", errors.New("htm")
	case says.Htu != target:
		return "", "", errors.New("htu")
	case says.Ath != ath:
		return "", "", errors.New("ath")
	case age > time.Minute:
		return "", "", errors.New("iat")
	}
	if s.proofs.seen == nil {
		s.proofs.seen = map[string]bool{}
	}
	s.proofs.seen[says.Jti] = true
	sum, err := header.JSONWebKey.Thumbprint(crypto.SHA256)
	return encoded(sum), says.Nonce, err
}

// isDPoP reports whether a request presents a token that is bound to a key.
func isDPoP(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Authorization"), "DPoP ")
}

// isBound reports whether a token is bound to a key.
func (s *Server) isBound(token string) bool { return s.grantOf(token).thumbprint != "" }

func (s *Server) resourceMetadata(resource string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := map[string]any{"resource": resource, "authorization_servers": []string{s.Issuer}}
	switch s.behaviour.DPoPResource {
	case "metadata":
		m["dpop_signing_alg_values_supported"] = []string{"ES256", "RS256"}
	case "required":
		m["dpop_bound_access_tokens_required"] = true
	}
	return m
}

// challenge says in a refusal which scope the resource demands, and whether it knows DPoP.
func (s *Server) challenge(w http.ResponseWriter, metadata string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.behaviour.DPoPResource == "challenge" {
		w.Header().Set("WWW-Authenticate", `DPoP algs="ES256"`)
	}
	bearer := fmt.Sprintf(`Bearer resource_metadata=%q, scope=%q`, metadata, s.behaviour.Demanded)
	w.Header().Add("WWW-Authenticate", strings.TrimSuffix(bearer, `, scope=""`))
}
