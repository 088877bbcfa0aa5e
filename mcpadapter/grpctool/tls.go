// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/consort-go/consort/internal/hostnames"
)

// TLSFiles returns the TLS configuration of a client or a server from PEM files.
//
// authorities is a file with the authorities that the peer's certificate may come from;
// if "", a client uses the system's roots, and a server does not ask clients for a
// certificate. It is read once. certificate and key are files for this side, "" for none. They are
// read again for each connection, so that they can be renewed in place.
func TLSFiles(authorities, certificate, key string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if authorities != "" {
		text, err := os.ReadFile(authorities)
		if err != nil {
			return nil, fmt.Errorf("TLS authorities: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("TLS authorities: %s has no certificate in PEM", authorities)
		}
		config.RootCAs, config.ClientCAs = pool, pool
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	if certificate == "" && key == "" {
		return config, nil
	}
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("TLS certificate %q with key %q: %w", certificate, key, err)
		}
		return &pair, nil
	}
	if _, err := load(); err != nil {
		return nil, err
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return load() }
	return config, nil
}

// IsLocal reports whether a gRPC target stays on this machine: a loopback address, or a
// Unix socket.
func IsLocal(target string) bool {
	scheme, rest, found := strings.Cut(target, ":")
	if found && (scheme == "unix" || scheme == "unix-abstract") {
		return true
	}
	if found && strings.HasPrefix(rest, "//") { // scheme://authority/endpoint
		_, target, _ = strings.Cut(strings.TrimPrefix(rest, "//"), "/")
	}
	host, _, err := net.SplitHostPort(target)
	if err != nil {
		host = target
	}
	return hostnames.IsThisMachine(strings.Trim(host, "[]"))
}
