// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/consort-go/consort/invoker"
)

// ErrCertificate says that a client with this certificate is not served.
var ErrCertificate = errors.New("the certificate is not accepted")

// CertificateFunc returns the name and the values of the client with a certificate, which TLS
// has verified.
type CertificateFunc = func(context.Context, *x509.Certificate) (name string, values []invoker.Value, err error)

// Credentials check who sends a request: by the certificate of its connection, by its bearer
// token, or by both.
type Credentials struct {
	Tokens      Tokens
	Certificate CertificateFunc // nil ignores certificates
	TakesTokens bool            // whether a request may have a token of Tokens, or one to ask about
}

// Required reports whether a request needs credentials.
func (c *Credentials) Required() bool { return c.TakesTokens || c.Certificate != nil }

// Check identifies the sender of a request by the state of its connection, which may be nil,
// and its Authorization headers; ask may be nil. A certificate that is not accepted refuses the
// request, with [ErrCertificate], whatever its token is.
func (c *Credentials) Check(ctx context.Context, connection *tls.ConnectionState, headers []string, ask AskFunc) (*Sender, error) {
	sender := &Sender{}
	certificate := verified(connection)
	if c.Certificate == nil {
		certificate = nil
	}
	if certificate != nil {
		if err := sender.ask(ctx, certificate, c.Certificate); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCertificate, err)
		}
	}
	if certificate != nil && (!c.TakesTokens || len(headers) == 0) {
		return sender, nil
	}
	token, err := c.Tokens.Check(headers, ask)
	if err != nil {
		return nil, err
	}
	token.certificate = sender.certificate
	token.Values, token.Key = append(slices.Clip(sender.Values), token.Values...), sender.Key+token.Key
	return token, nil
}

// ask identifies the client of a certificate. A panic refuses it.
func (s *Sender) ask(ctx context.Context, certificate *x509.Certificate, by CertificateFunc) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the check of the certificate panicked: %v", p)
		}
	}()
	if end := certificate.NotAfter; time.Now().After(end) { // a connection can outlast it
		return fmt.Errorf("it expired at %s", end.UTC().Format(time.RFC3339))
	}
	s.Key = keyOf(certificate)
	s.certificate, s.Values, err = by(ctx, certificate)
	return err
}

// keyOf identifies the client of a certificate by the names in it, which stay when the
// certificate is renewed.
func keyOf(certificate *x509.Certificate) string {
	if names := CertificateNames(certificate); names[0] != "" {
		return fmt.Sprintf("certificate %q", names)
	}
	sum := sha256.Sum256(certificate.Raw)
	return "certificate sha256 " + hex.EncodeToString(sum[:])
}

// verified returns the certificate of the client, if TLS has verified one.
func verified(connection *tls.ConnectionState) *x509.Certificate {
	if connection == nil || len(connection.VerifiedChains) == 0 || len(connection.VerifiedChains[0]) == 0 {
		return nil
	}
	return connection.VerifiedChains[0][0]
}
