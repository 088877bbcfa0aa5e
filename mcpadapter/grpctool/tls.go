// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
)

// TLSFiles returns the TLS of a client, or of a server, from files in PEM.
//
// authorities are those whose certificates the other end may have; "" is the
// system's roots for a client, and asks no client for one on a server.
// certificate and key are those of this end, "" for none; they are read again
// for each connection, so that they can be renewed in place.
func TLSFiles(authorities, certificate, key string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if authorities != "" {
		text, err := os.ReadFile(authorities)
		if err != nil {
			return nil, fmt.Errorf("TLS authorities: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("TLS authorities: %s holds no certificate in PEM", authorities)
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

// IsLocal reports whether a gRPC target leads to no other machine: a loopback
// address, or a Unix socket.
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
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
