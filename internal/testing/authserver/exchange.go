// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	idJAG  = "urn:ietf:params:oauth:token-type:id-jag"
	bearer = "urn:ietf:params:oauth:token-type:access_token"
)

// AddSubject makes the server know the token of a user, which it exchanges (RFC 8693) or
// accepts as an assertion.
func (s *Server) AddSubject(token, user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subjects[token] = user
}

// AddKey registers the public key of a client, which is called machine.
func (s *Server) AddKey(key crypto.PublicKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys["machine"] = key
}

// Trust makes the server accept the grants of an identity provider.
func (s *Server) Trust(provider *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.provider = provider
}

// SubjectOf returns the user for whom an access token was issued.
func (s *Server) SubjectOf(token string) string { return s.grantOf(token).subject }

// exchange exchanges the token of a user; s.mu is held.
func (s *Server) exchange(w http.ResponseWriter, form url.Values) {
	subject := s.subjects[form.Get("subject_token")]
	switch {
	case subject == "" || form.Get("subject_token_type") == "":
		refuse(w, "invalid_grant")
	case form.Get("requested_token_type") == idJAG:
		s.serial++
		key := fmt.Sprint("id-jag-", s.serial)
		s.grants[key] = [3]string{subject, form.Get("audience"), form.Get("resource")}
		reply(w, http.StatusOK, map[string]any{"access_token": key, "issued_token_type": idJAG, "token_type": "N_A"})
	case form.Get("requested_token_type") != bearer:
		refuse(w, "invalid_request")
	default:
		s.issue(w, &grant{client: "machine", resource: form.Get("resource"), subject: subject, expiry: map[string]time.Time{}})
	}
}

// granted returns the user of a grant for an authorization server and a resource.
func (s *Server) granted(key, audience, resource string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.grants[key]; g[1] == audience && g[2] == resource {
		return g[0]
	}
	return ""
}

// signed reports whether a request has a valid assertion of the client machine, signed with
// ES256; s.mu is held.
func (s *Server) signed(form url.Values) bool {
	key, ok := s.keys["machine"].(*ecdsa.PublicKey)
	input, signature, _ := cutLast(form.Get("client_assertion"))
	_, payload, found := strings.Cut(input, ".")
	if !ok || !found {
		return false
	}
	raw, err := base64.RawURLEncoding.DecodeString(signature)
	claims, wrong := base64.RawURLEncoding.DecodeString(payload)
	var says struct {
		Iss, Sub, Aud, Jti string
		Exp                int64
	}
	if err != nil || wrong != nil || len(raw) != 64 || json.Unmarshal(claims, &says) != nil {
		return false
	}
	digest := sha256.Sum256([]byte(input))
	return ecdsa.Verify(key, digest[:], new(big.Int).SetBytes(raw[:32]), new(big.Int).SetBytes(raw[32:])) && says.Iss == "machine" &&
		says.Sub == "machine" && says.Aud == s.Issuer && says.Jti != "" && time.Now().Unix() < says.Exp
}

func cutLast(text string) (before, after string, found bool) {
	i := strings.LastIndex(text, ".")
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}
