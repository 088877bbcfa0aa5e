// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"

	"github.com/consort-go/consort/config/serve"

	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/values"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
)

func tlsFields(t *serve.TLS) []grammar.Field {
	return []grammar.Field{
		grammar.Key("certificate", grammar.Path(&t.Certificate)),
		grammar.Key("key", grammar.Path(&t.Key)),
		grammar.Key("client_ca", grammar.Path(&t.ClientCA)),
	}
}

func checkTLS(r *grammar.Reader, n *document.Node) {
	if n.Member("certificate") == nil {
		r.Missing(n, "certificate", `missing: expected the file of this server's certificate, such as certificate = "server.pem"`)
	}
	if n.Member("key") == nil {
		r.Missing(n, "key", `missing: expected the file of the certificate's key, such as key = "server.key"`)
	}
}

// byCertificate reports whether a client is identified by a certificate.
func (s offer) byCertificate() bool {
	return slices.ContainsFunc(s.Clients, func(c serve.Client) bool { return c.Certificate != "" })
}

// certificates reports clients whose certificate is not requested or not unique.
func (s offer) certificates(r *grammar.Reader, n, clients *document.Node) {
	elements, _ := clients.AsList()
	if len(elements) != len(s.Clients) {
		return
	}
	seen := map[string]bool{}
	for i, client := range s.Clients {
		at := elements[i].Member("certificate")
		switch {
		case client.Certificate == "":
			continue
		case !asksCertificates(n.Member("http_tls")) && !asksCertificates(n.Member("grpc_tls")):
			r.WrongKey(at, "the server does not request client certificates; set client_ca of http_tls or grpc_tls")
		case seen[client.Certificate]:
			r.Wrong(at, "another client already has this name")
		}
		seen[client.Certificate] = true
	}
}

// asksCertificates reports whether clients need a certificate with a table of TLS, which may
// be nil.
func asksCertificates(table *document.Node) bool {
	return table != nil && table.Member("client_ca") != nil
}

// withTLS adds TLS to the options of the servers, and who the clients with certificates are.
func (s offer) withTLS(made *Servers) (err error) {
	var overHTTP, overGRPC error
	o, rpc := made.MCP, made.GRPC
	o.TLS, o.Certificate, overHTTP = s.tlsOf("serve.http_tls", s.HTTP, s.HTTPTLS)
	rpc.TLS, rpc.Certificate, overGRPC = s.tlsOf("serve.grpc_tls", s.GRPC, s.GRPCTLS)
	return errors.Join(overHTTP, overGRPC)
}

// tlsOf returns the TLS of a listener, and who its clients with certificates are.
func (s offer) tlsOf(key string, address values.Value, t serve.TLS) (made *tls.Config, known access.CertificateFunc, err error) {
	if address.Reveal() == "" || t == (serve.TLS{}) {
		return nil, nil, nil
	}
	if t.Certificate.Reveal() == "" || t.Key.Reveal() == "" {
		return nil, nil, grammar.About(key, errors.New("missing: expected certificate and key"))
	}
	if made, err = grpctool.TLSFiles(t.ClientCA.Reveal(), t.Certificate.Reveal(), t.Key.Reveal()); err != nil {
		return nil, nil, grammar.About(key, err)
	}
	switch {
	case t.ClientCA.Reveal() == "":
	case s.byCertificate():
		known, err = s.knownCertificates()
	case !s.TakesTokens(): // every verified certificate is accepted
		known = func(context.Context, *x509.Certificate) (string, []invoker.Value, error) { return "", nil, nil }
	}
	return made, known, err
}

var errUnknownCertificate = errors.New("the certificate does not belong to a configured client")

// knownCertificates returns a function that finds a client by its certificate.
func (s offer) knownCertificates() (access.CertificateFunc, error) {
	type known struct {
		name   string
		values []invoker.Value
	}
	clients := map[string]known{}
	for i, client := range s.Clients {
		if client.Certificate == "" {
			continue
		}
		trusted, err := grammar.TrustedValues(fmt.Sprintf("serve.clients[%d].trusted", i), client.Trusted)
		if err != nil {
			return nil, err
		}
		clients[client.Certificate] = known{client.Name, trusted}
	}
	return func(_ context.Context, certificate *x509.Certificate) (string, []invoker.Value, error) {
		for _, name := range access.CertificateNames(certificate) {
			if client, ok := clients[name]; ok {
				return client.name, client.values, nil
			}
		}
		return "", nil, errUnknownCertificate
	}, nil
}
