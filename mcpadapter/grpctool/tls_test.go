// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/mcpadapter/grpctool"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// authority issues certificates into files.
type authority struct {
	t           *testing.T
	dir, file   string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.file = filepath.Join(a.dir, "ca.pem")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a.key = key
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.write(a.file, "CERTIFICATE", der)
	return a
}

// issue writes a certificate for 127.0.0.1 and its key.
func (a *authority) issue(name string) (certificate, key string) {
	a.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &private.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	certificate, key = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key")
	a.write(certificate, "CERTIFICATE", der)
	a.write(key, "PRIVATE KEY", encoded)
	return certificate, key
}

func (a *authority) write(path, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func tlsFiles(t *testing.T, authorities, certificate, key string) *tls.Config {
	t.Helper()
	config, err := grpctool.TLSFiles(authorities, certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestTLS(t *testing.T) {
	ca := newAuthority(t)
	certificate, key := ca.issue("server")
	overTLS := func(config *tls.Config) *site {
		return newSite(t, func() *grpc.Server {
			server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
			grpctool.NewServer(nil, nil).Register(server)
			return server
		})
	}
	oneWay := overTLS(tlsFiles(t, "", certificate, key))
	mutual := overTLS(tlsFiles(t, ca.file, certificate, key))
	ours, oursKey := ca.issue("client")
	foreign, foreignKey := newAuthority(t).issue("client")

	good := map[string]struct {
		at      *site
		options grpctool.Options
	}{
		"own authority": {oneWay, grpctool.Options{TLS: tlsFiles(t, ca.file, "", ""), BearerToken: "token"}},
		"mutual":        {mutual, grpctool.Options{TLS: tlsFiles(t, ca.file, ours, oursKey)}},
	}
	for name, c := range good {
		if _, err := grpctool.Source(c.at.address, &c.options).Open(within(t)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	bad := map[string]struct {
		at      *site
		options grpctool.Options
		want    string
	}{
		"the system does not know the authority": {oneWay, grpctool.Options{}, "certificate"},
		"no TLS where there must be":             {oneWay, grpctool.Options{Plaintext: true}, ""},
		"no certificate of ours":                 {mutual, grpctool.Options{TLS: tlsFiles(t, ca.file, "", "")}, ""},
		"a certificate of another authority":     {mutual, grpctool.Options{TLS: tlsFiles(t, ca.file, foreign, foreignKey)}, ""},
	}
	for name, c := range bad {
		connection, err := grpctool.Source(c.at.address, &c.options).Open(within(t))
		if err == nil {
			_ = connection.Close(context.Background())
			t.Errorf("%s: it connected", name)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A certificate that was renewed in its file is used for the next connection.
func TestRenewedCertificate(t *testing.T) {
	ca := newAuthority(t)
	certificate, key := ca.issue("server")
	config := tlsFiles(t, "", certificate, key)
	before, err := config.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	ca.issue("server")
	after, err := config.GetCertificate(nil)
	if err != nil || string(before.Certificate[0]) == string(after.Certificate[0]) {
		t.Errorf("the certificate did not change, %v", err)
	}
}

func TestWrongTLSFiles(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, files := range map[string][3]string{
		"no such file":             {"absent.pem", "", ""},
		"no certificate in PEM":    {empty, "", ""},
		`certificate "absent.pem"`: {"", "absent.pem", "absent.key"},
		`with key ""`:              {"", empty, ""},
	} {
		if _, err := grpctool.TLSFiles(files[0], files[1], files[2]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
