// SPDX-License-Identifier: Apache-2.0

package command

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// httpTLS is the table of a server with that authority's certificate, for clients of another.
func (a *authority) httpTLS(clients *authority) string {
	return strings.Replace(a.tls(clients), "grpc_tls", "http_tls", 1)
}

// secured sends requests with a certificate and a token, each if set.
type secured struct {
	http  *http.Transport
	token string
}

func (c *secured) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	return c.http.RoundTrip(r)
}

// clientOverTLS returns an HTTP client that trusts ca, with a certificate of own if it is set.
func clientOverTLS(t *testing.T, ca string, own *authority, name, token string) *http.Client {
	t.Helper()
	certificate, key := "", ""
	if own != nil {
		certificate, key = own.file(name+".pem"), own.file(name+".key")
	}
	config, err := grpctool.TLSFiles(ca, certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: &secured{transport, token}, Timeout: 20 * time.Second}
}

// whoOverHTTPS calls echo, and returns the text of the tool or the failure.
func (s *service) whoOverHTTPS(client *http.Client) string {
	s.t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).Connect(s.t.Context(),
		&mcp.StreamableClientTransport{Endpoint: s.url, HTTPClient: client}, nil)
	if err != nil {
		return err.Error()
	}
	defer session.Close()
	return called(s.t, session, "echo", `{}`)
}

// Over HTTP the certificate of a client says who it is. All others are refused: without a
// certificate, with one of another authority, with one that has expired, and with one whose
// names no client has.
func TestServeHTTPWithCertificates(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef"
	ours, theirs, other := newAuthority(t), newAuthority(t), newAuthority(t)
	ours.server()
	theirs.client("advisor", "spiffe://example.com/advisor")
	theirs.client("ben", "")
	theirs.client("stranger", "spiffe://example.com/ben")
	theirs.issue("late", &x509.Certificate{
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, DNSNames: []string{"ben"}, NotAfter: time.Now().Add(-time.Minute),
	})
	theirs.issue("purpose", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSNames: []string{"ben"}})
	other.client("ben", "")
	const byName = `clients = [{certificate = "spiffe://example.com/advisor", trusted = {user = "advisor"}}, {certificate = "ben", name = "ben", ` +
		`trusted = {user = "ben"}}]` + "\n"
	const refused, notLetIn = "Forbidden", "remote error: tls"
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
			ours.httpTLS(nil) + "token = \"" + token + "\"\n",
			[]attempt{{nil, "", token, `{}`}, {nil, "", "wrong", "Unauthorized"}, {nil, "", "", "Unauthorized"}, {theirs, "ben", token, `{}`}},
		},
		"any of an authority": {ours.httpTLS(theirs), []attempt{{theirs, "stranger", "", `{}`}, {other, "ben", "", notLetIn}, {nil, "", token, notLetIn}}},
		"by name": {ours.httpTLS(theirs) + byName, []attempt{
			{theirs, "advisor", "", `{"user_id":"advisor"}`}, {theirs, "ben", "", `{"user_id":"ben"}`},
			{theirs, "stranger", "", refused}, {theirs, "stranger", token, refused},
			{theirs, "late", "", notLetIn}, {theirs, "purpose", "", notLetIn},
			{other, "ben", "", notLetIn}, {nil, "", "", notLetIn}, {nil, "", token, notLetIn},
		}},
		"and a token": {
			ours.httpTLS(theirs) + "token = \"" + token + "\"\n",
			[]attempt{{theirs, "ben", token, `{}`}, {theirs, "ben", "", "Unauthorized"}, {nil, "", token, notLetIn}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			fill := ""
			if strings.Contains(test.serve, "user =") {
				fill = forPerson
			}
			table, _ := library(t, "allow = [\"echo\"]\n"+fill)
			s := serve(t, true, "--config", file(t, table, "[serve]\nhttp = \"127.0.0.1:0\"\nown_names = true\n"+test.serve))
			for _, a := range test.attempts {
				if got := s.whoOverHTTPS(clientOverTLS(t, ours.file("ca.pem"), a.own, a.name, a.token)); got != a.want && !strings.Contains(got, a.want) {
					t.Errorf("%s with the token %q: %s, want %s", a.name, a.token, got, a.want)
				}
			}
			if got := s.whoOverHTTPS(clientOverTLS(t, other.file("ca.pem"), theirs, "ben", token)); !strings.Contains(got, "certificate") {
				t.Errorf("a client that does not trust the server: %s", got)
			}
			s.signal(syscall.SIGTERM)
			s.ends(exit.Done)
		})
	}
}

// The session of a client with a certificate is not found with the certificate of another one,
// and it is found after a renewal.
func TestSessionOfAnotherCertificate(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t), newAuthority(t)
	ours.server()
	theirs.client("ada", "")
	theirs.client("eve", "")
	table, _ := library(t, "allow = [\"echo\"]\n")
	s := serve(t, true, "--config", file(t, table, "[serve]\nhttp = \"127.0.0.1:0\"\n", ours.httpTLS(theirs),
		`clients = [{certificate = "ada", name = "ada"}, {certificate = "eve", name = "eve"}]`+"\n"))
	post := func(who, session, body string) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			request.Header.Set("Mcp-Session-Id", session)
		}
		response, err := clientOverTLS(t, ours.file("ca.pem"), theirs, who, "").Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response
	}
	session := post("ada", "", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},`+
		`"clientInfo":{"name":"c","version":"1"}}}`, "2025-06-18")).Header.Get("Mcp-Session-Id")
	const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	if got := post("eve", session, ping); session == "" || got.StatusCode != http.StatusNotFound {
		t.Errorf("with another certificate the session %q is answered with %s", session, got.Status)
	}
	theirs.client("ada", "") // renewed, with a new key
	if got := post("ada", session, ping); got.StatusCode != http.StatusOK {
		t.Errorf("with a renewed certificate: %s", got.Status)
	}
	s.signal(syscall.SIGTERM)
	s.ends(exit.Done)
}
