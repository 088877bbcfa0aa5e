// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// authority issues certificates into files of a folder.
type authority struct {
	t           *testing.T
	folder      string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, folder: t.TempDir()}
	a.certificate, a.key = a.issue("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue writes NAME.pem and NAME.key.
func (a *authority) issue(name string, of *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	of.SerialNumber, of.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	of.NotBefore = time.Now().Add(-time.Hour)
	if of.NotAfter.IsZero() {
		of.NotAfter = time.Now().Add(time.Hour)
	}
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = of, key
	}
	der, err := x509.CreateCertificate(rand.Reader, of, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(filepath.Join(a.folder, file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return certificate, key
}

func (a *authority) server() {
	a.issue("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
}

// client issues a certificate for a client, with a URI if it is one.
func (a *authority) client(name, uri string) {
	a.t.Helper()
	of := &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if uri != "" {
		parsed, err := url.Parse(uri)
		if err != nil {
			a.t.Fatal(err)
		}
		of.URIs = []*url.URL{parsed}
	}
	a.issue(name, of)
}

func (a *authority) file(name string) string { return filepath.Join(a.folder, name) }

// tls is the table of a server with that authority's certificate, and another's
// for its clients if there is one.
func (a *authority) tls(clients *authority) string {
	text := fmt.Sprintf("grpc_tls = {certificate = %q, key = %q", a.file("server.pem"), a.file("server.key"))
	if clients != nil {
		text += fmt.Sprintf(", client_ca = %q", clients.file("ca.pem"))
	}
	return text + "}\n"
}

// whoOverTLS calls echo at a server with a certificate of ca, with a certificate and a
// token, each if set. It returns the text of the tool, or the failure.
func (s *service) whoOverTLS(ca string, own *authority, name, token string) string {
	s.t.Helper()
	certificate, key := "", ""
	if own != nil {
		certificate, key = own.file(name+".pem"), own.file(name+".key")
	}
	config, err := grpctool.TLSFiles(ca, certificate, key)
	if err != nil {
		s.t.Fatal(err)
	}
	options := &grpctool.Options{TLS: config, BearerToken: token}
	e := ensemble.New("served", grpctool.Source(s.overTLS(), options), &ensemble.Options{ConnectTimeout: 10 * time.Second})
	defer e.Close(context.Background())
	tools, err := e.Tools(s.t.Context())
	if err != nil {
		return err.Error()
	}
	for _, tool := range tools {
		if tool.Definition().Name == "echo" {
			output, err := tool.Invoke(s.t.Context(), &invoker.Call{Arguments: []byte(`{}`)})
			if err != nil {
				return err.Error()
			}
			// MCP over the same connection is for the same client.
			link, err := grpctool.DialMCP(s.t.Context(), s.overTLS(), options)
			if err != nil {
				return err.Error()
			}
			defer link.Close(context.Background())
			session, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).Connect(s.t.Context(), link, nil)
			if err != nil {
				return err.Error()
			}
			defer session.Close()
			said := display.Contents(output.Content)
			if same := called(s.t, session, "echo", `{}`); same != said {
				s.t.Errorf("by the tool service it is %s, by MCP %s", said, same)
			}
			return said
		}
	}
	return "no echo"
}

// overTLS waits until the process serves gRPC over TLS, and returns where.
func (s *service) overTLS() string {
	s.t.Helper()
	const before, after = "serving gRPC at ", " over TLS\n"
	waitFor(s.t, "an address: "+s.stderr.String(), func() bool { return strings.Contains(s.stderr.String(), after) })
	head, _, _ := strings.Cut(s.stderr.String(), after)
	_, address, _ := strings.Cut(head, before)
	return address
}

// Over TLS a client knows the server, and by its certificate or its token the
// server knows the client.
func TestServeGRPCOverTLS(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef"
	ours, theirs, other := newAuthority(t), newAuthority(t), newAuthority(t)
	ours.server()
	theirs.client("advisor", "spiffe://example.com/advisor")
	theirs.client("ben", "")
	theirs.client("stranger", "spiffe://example.com/ben")
	other.client("ben", "")
	byName := "clients = [{certificate = \"spiffe://example.com/advisor\", trusted = {user = \"advisor\"}}, {certificate = \"ben\", trusted " +
		"= {user = \"ben\"}}]\n"
	const refused, notLetIn = "cannot connect: server \"ADDRESS\": connecting: UNAUTHORIZED", "cannot connect: server \"ADDRESS\": connecting: UNAVAILABLE"
	type attempt struct {
		own         *authority
		name, token string
		want        string
	}
	for name, test := range map[string]struct {
		serve    string
		attempts []attempt
	}{
		"server alone": {
			ours.tls(nil) + "token = \"" + token + "\"\n",
			[]attempt{{nil, "", token, `{}`}, {nil, "", "wrong", refused}, {nil, "", "", refused}, {theirs, "ben", token, `{}`}},
		},
		"any of an authority": {ours.tls(theirs), []attempt{{theirs, "stranger", "", `{}`}, {other, "ben", "", notLetIn}, {nil, "", token, notLetIn}}},
		"by name": {ours.tls(theirs) + byName, []attempt{
			{theirs, "advisor", "", `{"user_id":"advisor"}`}, {theirs, "ben", "", `{"user_id":"ben"}`},
			{theirs, "stranger", "", refused}, {other, "ben", "", notLetIn}, {nil, "", "", notLetIn},
		}},
		"and a token": {
			ours.tls(theirs) + "token = \"" + token + "\"\n", []attempt{{theirs, "ben", token, `{}`}, {theirs, "ben", "", refused}, {nil, "", token, notLetIn}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			fill := ""
			if strings.Contains(test.serve, "user =") {
				fill = forPerson
			}
			table, _ := library(t, "allow = [\"echo\"]\n"+fill)
			s := serve(t, false, "--config", file(t, table, "[serve]\ngrpc = \"127.0.0.1:0\"\nown_names = true\n"+test.serve))
			for _, a := range test.attempts {
				if got := s.whoOverTLS(ours.file("ca.pem"), a.own, a.name, a.token); got != a.want &&
					!strings.Contains(strings.ReplaceAll(got, s.overTLS(), "ADDRESS"), a.want) {
					t.Errorf("%s with the token %q: %s, want %s", a.name, a.token, got, a.want)
				}
			}
			if got := s.whoOverTLS(other.file("ca.pem"), theirs, "ben", token); !strings.Contains(got, "certificate") {
				t.Errorf("a client that does not trust the server: %s", got)
			}
			s.signal(syscall.SIGTERM)
			s.ends(exit.Done)
		})
	}
}

// Files that are wrong end the command before it serves, and check names them;
// commands that do not serve do without them.
func TestServeGRPCWithWrongFiles(t *testing.T) {
	t.Parallel()
	ours, other := newAuthority(t), newAuthority(t)
	ours.server()
	other.server()
	for want, keys := range map[string]string{
		"no such file":   fmt.Sprintf("grpc_tls = {certificate = %q, key = %q}", ours.file("away.pem"), ours.file("server.key")),
		"does not match": fmt.Sprintf("grpc_tls = {certificate = %q, key = %q}", ours.file("server.pem"), other.file("server.key")),
		"no certificate": fmt.Sprintf("grpc_tls = {certificate = %q, key = %q, client_ca = %q}", ours.file("server.pem"),
			ours.file("server.key"), ours.file("server.key")),
	} {
		config := file(t, atlas(0), "[serve]\ngrpc = \"127.0.0.1:0\"\n"+keys+"\n")
		o := consort(t, "serve", "--config", config).expect(t, exit.Usage)
		contains(t, "standard error", o.stderr, want, "serve.grpc_tls")
		lacks(t, "standard error", o.stderr, "serving")
		contains(t, "the report", consort(t, "check", "--config", config).expect(t, exit.Usage).stdout, want, "serve.grpc_tls")
		consort(t, "call", "atlas", "weather", `{"city":"Oslo"}`, "--config", config).expect(t, exit.Done)
	}
	if got := consort(t, "serve", "--http", "127.0.0.1:0", "--config",
		file(t, "[serve]\ngrpc = \"127.0.0.1:0\"\nclients = [{certificate = \"a\"}]\n"+ours.tls(ours))); got.status != int(exit.Usage) {
		t.Errorf("HTTP is open to clients with certificates: %+v", got)
	} else {
		contains(t, "standard error", got.stderr, "HTTP does not request")
	}
}
