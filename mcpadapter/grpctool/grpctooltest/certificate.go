// SPDX-License-Identifier: Apache-2.0

package grpctooltest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"time"
)

// certificates holds a valid certificate for a server, and several that clients should
// reject.
type certificates struct {
	authority                            *x509.Certificate
	good, expired, otherName, selfSigned tls.Certificate
}

func newCertificates() (*certificates, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("grpctooltest: make a certificate: %w", err)
	}
	now := time.Now()
	here := x509.Certificate{
		Subject:  pkix.Name{CommonName: "grpctooltest"},
		NotAfter: now.Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	authority := here
	authority.IsCA, authority.BasicConstraintsValid, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	authority.Subject.CommonName = "grpctooltest, authority"
	root, err := issue(authority, nil, key)
	if err != nil {
		return nil, err
	}
	c := &certificates{authority: root.Leaf}
	expired, other := here, here
	expired.NotAfter = now.Add(-24 * time.Hour)
	other.IPAddresses, other.DNSNames = nil, []string{"elsewhere.example.com"}
	for _, each := range []struct {
		template x509.Certificate
		from     *x509.Certificate
		to       *tls.Certificate
	}{{here, root.Leaf, &c.good}, {expired, root.Leaf, &c.expired}, {other, root.Leaf, &c.otherName}, {here, nil, &c.selfSigned}} {
		if *each.to, err = issue(each.template, each.from, key); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// issue creates a certificate signed by parent, or a self-signed one if parent is nil.
// All certificates have the same key.
func issue(template x509.Certificate, parent *x509.Certificate, key *ecdsa.PrivateKey) (tls.Certificate, error) {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("grpctooltest: make a certificate: %w", err)
	}
	template.SerialNumber, template.NotBefore = serial, time.Now().Add(-48*time.Hour)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if parent == nil {
		parent = &template
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, parent, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("grpctooltest: make a certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("grpctooltest: make a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}

func (c *certificates) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.authority)
	return pool
}

// config returns a configuration with one certificate; nil means the valid one.
func (c *certificates) config(one *tls.Certificate) *tls.Config {
	if one == nil {
		one = &c.good
	}
	return &tls.Config{Certificates: []tls.Certificate{*one}, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}
}
