// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// certificates are a trusted server certificate, and a self-signed one that clients do
// not trust.
type certificates struct{ good, bad tls.Certificate }

func newCertificates() (*certificates, error) {
	good, err := newCertificate("faultserver")
	if err != nil {
		return nil, err
	}
	bad, err := newCertificate("faultserver, self-signed")
	return &certificates{good, bad}, err
}

func newCertificate(name string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("faultserver: make a certificate: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, DNSNames: []string{"localhost"},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("faultserver: make a certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("faultserver: make a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}

func (c *certificates) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.good.Leaf)
	return pool
}

// config returns the TLS configuration for one life of a server. The certificate is
// chosen after the faults at the start have been applied.
func (c *certificates) config(s *server) *tls.Config {
	return &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		select {
		case <-s.ready:
		case <-s.ctx.Done():
			return nil, errors.New("the server has ended")
		}
		if s.is(&s.mistrusted) {
			return &c.bad, nil
		}
		return &c.good, nil
	}}
}
