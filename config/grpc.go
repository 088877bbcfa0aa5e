// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"strings"
	"time"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/plaintext"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/mcpadapter/grpctool"
)

// GRPCServer is one server that is reached over gRPC; see package grpctool.
type GRPCServer struct {
	// Address is the address of the server: HOST:PORT, or another gRPC target such as
	// unix:/run/tools.sock. Exactly one of Address and Dapr is set.
	Address Value
	// Dapr is the app ID by which this program's Dapr sidecar knows the server.
	// DAPR_GRPC_ENDPOINT and DAPR_GRPC_PORT locate the sidecar, DAPR_API_TOKEN is sent to
	// it.
	Dapr Value
	// MCP says that the server offers MCP messages as frames of a stream, and not the tool
	// service; the key is service.
	MCP bool
	// TLS names the root certificates for verifying the server, and the certificate of this
	// client; the zero value is TLS with the root certificates of the system. Plaintext
	// disables TLS.
	TLS       TLS
	Plaintext bool
	// PlaintextSecrets allows sending the token, metadata and trusted values without TLS
	// to other machines too, where others can read them.
	PlaintextSecrets bool
	// Token is the bearer token of each request; may be empty.
	Token Value
	// Metadata is sent with each request; may be nil.
	Metadata map[string]Value
	// Category requests only the tools of this category. Caller identifies the caller in
	// the server's audit trail. Both are for the tool service only, and may be empty.
	Category, Caller string
	// MaxMessage limits the size of one message, in bytes; 0 means 16 MiB.
	MaxMessage int64
	// PingAfter is how long the connection may be silent during a call before an HTTP/2
	// ping is sent, at least 10 s; 0 means never. KeepAlive needs no HTTP/2 and also
	// works between calls.
	PingAfter time.Duration
	// Roots are like the Roots of a [Server], for MCP only.
	Roots []Root
	// ClientRoots is like ClientRoots of a [Server], for MCP only.
	ClientRoots bool
	// Sampling lets the server ask the conversation's model. Protocol fixes the protocol
	// version. Both are for MCP only, as in [Server].
	Sampling bool
	Protocol string
	// TrustedMetadata maps metadata keys to the names of trusted values. They are sent with
	// each tool call; for the tool service only. Fill passes trusted values as arguments.
	TrustedMetadata map[string]string
	Supervision
}

// TLS names files in PEM form. The certificate and its key are read again for each
// connection.
type TLS struct {
	// CA has the root certificates for verifying the other side. For a client, empty means
	// the root certificates of the system; for a server, that clients need no certificate.
	CA Value
	// Certificate and Key are this side's; set both or neither. A server needs them.
	Certificate, Key Value
}

// grpcServer is one [grpc.NAME] table.
func grpcServer(s **GRPCServer) value {
	*s = new(GRPCServer)
	return tableOf((*s).fields(), (*s).check).lenientIf("enabled", false)
}

func (s *GRPCServer) fields() []field {
	return append(s.Supervision.fields(), []field{
		{"address", grpcTarget(&s.Address)},
		{"dapr", expanded(&s.Dapr)},
		{"service", wordFor(&s.MCP, word[bool]{"tools", false}, word[bool]{"mcp", true})},
		{"tls", tableOf(s.tlsFields(), s.checkTLS)},
		{"token", grpcToken(&s.Token)},
		{"metadata", byName(&s.Metadata, metadataValue, plaintext.MetadataName)},
		{"category", text(&s.Category)},
		{"caller", text(&s.Caller)},
		{"max_message", size(&s.MaxMessage)},
		{"ping_after", pingAfter(&s.PingAfter)},
		{"sampling", boolean(&s.Sampling)},
		{"roots", each(&s.Roots, root)},
		{"client_roots", boolean(&s.ClientRoots)},
		{"protocol", protocolVersion(&s.Protocol)},
		{"trusted", tableOf([]field{
			{"arguments", byName(&s.Fill, text[string], plaintext.ArgumentName)},
			{"metadata", byName(&s.TrustedMetadata, text[string], plaintext.MetadataName)},
		}, nil)},
	}...)
}

func (s *GRPCServer) tlsFields() []field {
	return []field{
		{"ca", directory(&s.TLS.CA)},
		{"certificate", directory(&s.TLS.Certificate)},
		{"key", directory(&s.TLS.Key)},
		{"plaintext", boolean(&s.Plaintext)},
		{"plaintext_secrets", boolean(&s.PlaintextSecrets)},
	}
}

func (s *GRPCServer) checkTLS(r *reader, n *document.Node) {
	certificate, key, plain := n.Member("certificate"), n.Member("key"), n.Member("plaintext")
	switch {
	case certificate != nil && key == nil:
		r.missing(n, "key", `missing: expected the file of the certificate's key, such as key = "client.key"`)
	case key != nil && certificate == nil:
		r.missing(n, "certificate", `missing: expected the file of the key's certificate, such as certificate = "client.pem"`)
	}
	for _, name := range []string{"ca", "certificate", "key"} {
		if stray := n.Member(name); stray != nil && s.Plaintext {
			r.wrongKey(stray, "plaintext = true disables TLS; remove one of them")
		}
	}
	if secrets := n.Member("plaintext_secrets"); s.PlaintextSecrets && !s.Plaintext {
		at := secrets
		if plain != nil {
			at = plain
		}
		r.problems.add(problemAt(r.source.Of(at), at.KeyAt, secrets.Path(), "only with plaintext = true; with TLS, others cannot read them"))
	}
}

// check validates the table as a whole.
func (s *GRPCServer) check(r *reader, n *document.Node) {
	s.Supervision.check(r, n)
	address, dapr := n.Member("address"), n.Member("dapr")
	switch {
	case address == nil && dapr == nil:
		r.missing(n, "address", `missing: expected the address of the server, such as address = "tools.example.com:443", or dapr for one behind a Dapr sidecar`)
	case address != nil && dapr != nil:
		later := address
		if dapr.KeyAt > address.KeyAt {
			later = dapr
		}
		r.wrongKey(later, "a server has either address or dapr, not both: remove one")
	}
	if plain := s.Plaintext && dapr != nil; plain {
		stray := n.Member("tls").Member("plaintext")
		r.wrongKey(stray, "the address of the sidecar, in DAPR_GRPC_ENDPOINT, decides whether TLS is used")
	}
	s.speaks(r, n)
	s.exposes(r, n, address)
	s.twice(r, n)
}

// speaks reports keys that have no meaning for the chosen service.
func (s *GRPCServer) speaks(r *reader, n *document.Node) {
	strays := []*document.Node{n.Member("sampling"), n.Member("protocol"), n.Member("roots"), n.Member("client_roots"), n.Member("instructions")}
	other := "tools"
	if s.MCP {
		strays, other = []*document.Node{n.Member("category"), n.Member("caller")}, "mcp"
		if trusted := n.Member("trusted"); trusted != nil {
			strays = append(strays, trusted.Member("metadata"))
		}
	}
	for _, stray := range strays {
		if stray != nil {
			r.wrongKey(stray, "not for a server with service = %q: remove it", other)
		}
	}
}

// exposes reports secrets that would leave the machine in plain text, unless
// PlaintextSecrets allows it.
func (s *GRPCServer) exposes(r *reader, n, address *document.Node) {
	if address == nil || s.Address.held == nil || !s.Plaintext || s.PlaintextSecrets || grpctool.IsLocal(s.Address.Reveal()) {
		return
	}
	secret := s.Token.Reveal() != "" || len(s.Metadata) > 0 || len(s.TrustedMetadata) > 0
	if plain := n.Member("tls").Member("plaintext"); secret {
		r.wrong(plain, "the token and the metadata would be sent unencrypted to another machine; use TLS, or allow it with plaintext_secrets = true")
	}
}

// twice reports metadata that is set twice.
func (s *GRPCServer) twice(r *reader, n *document.Node) {
	fixed := map[string]string{}
	if n.Member("token") != nil {
		fixed["authorization"] = "token"
	}
	report := func(table *document.Node) {
		for _, member := range table.Members() {
			if by, is := fixed[member.Key]; is {
				r.wrongKey(member, "this metadata is set in %s already", by)
			}
		}
	}
	if all := n.Member("metadata"); all != nil {
		report(all)
		for _, member := range all.Members() {
			fixed[member.Key] = "metadata"
		}
	}
	if trusted := n.Member("trusted"); trusted != nil && trusted.Member("metadata") != nil {
		report(trusted.Member("metadata"))
	}
}

// distinctServers reports server names that are used twice.
func distinctServers(r *reader, root *document.Node) {
	mcp, grpc := root.Member("mcp"), root.Member("grpc")
	if mcp == nil || grpc == nil {
		return
	}
	for _, over := range grpc.Members() {
		if earlier := mcp.Member(over.Key); earlier != nil {
			later := over
			if earlier.KeyAt > over.KeyAt {
				earlier, later = over, earlier
			}
			line, _ := r.source.Position(earlier.KeyAt)
			r.wrongKey(later, "another server already has this name: %s on line %d", earlier.Path(), line)
		}
	}
}

// grpcTarget is the address of a gRPC server.
func grpcTarget(to *Value) value {
	return value{kind: "a string with variables", read: func(r *reader, n *document.Node) {
		e, ok := r.replace(n)
		switch {
		case !ok || !r.filled(n, e):
		case strings.HasPrefix(e.Text, "http://"), strings.HasPrefix(e.Text, "https://"):
			r.wrong(n, `expected a gRPC address, such as "tools.example.com:443"; TLS is used unless tls = {plaintext = true}`)
		default:
			*to = valueOf(e, e.Shown)
		}
	}}
}

// grpcToken is a bearer token that is valid in gRPC metadata.
func grpcToken(to *Value) value {
	v := secret(to)
	return value{kind: v.kind, read: func(r *reader, n *document.Node) {
		if v.read(r, n); strings.ContainsFunc(to.Reveal(), func(c rune) bool { return c <= ' ' || c > '~' }) {
			r.wrong(n, "expected a bearer token: printable ASCII without spaces, and without the word Bearer")
		}
	}}
}

// metadataValue is a secret that is valid in gRPC metadata (gRPC over HTTP/2, section
// Requests).
func metadataValue(to *Value) value {
	v := secret(to)
	return value{kind: v.kind, read: func(r *reader, n *document.Node) {
		v.read(r, n)
		text := to.Reveal()
		unfit := strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) || strings.TrimSpace(text) != text
		if unfit && !strings.HasSuffix(n.Key, "-bin") {
			r.wrong(n, "expected printable ASCII without spaces at an end; metadata whose name ends in -bin takes any text")
		}
	}}
}

// minPing is the minimum that gRPC enforces; it raises shorter times to this.
const minPing = 10 * time.Second

func pingAfter(to *time.Duration) value {
	v := duration(to)
	return value{kind: v.kind, read: func(r *reader, n *document.Node) {
		if v.read(r, n); *to != 0 && *to < minPing {
			r.wrong(n, `expected a duration of at least "10s"; keepalive has no such limit`)
		}
	}}
}

// source returns the source that connects to s.
func (s *GRPCServer) source(name string, o *AssembleOptions) (ensemble.Source, error) {
	options := &grpctool.Options{
		Server:           name,
		Logger:           o.Logger,
		Category:         s.Category,
		Caller:           s.Caller,
		Plaintext:        s.Plaintext,
		BearerToken:      s.Token.Reveal(),
		Metadata:         reveal(s.Metadata),
		TrustedMetadata:  s.TrustedMetadata,
		PlaintextSecrets: s.PlaintextSecrets,
		MaxMessage:       int(s.MaxMessage),
		KeepAlive:        s.PingAfter,
	}
	if !s.Plaintext {
		var err error
		if options.TLS, err = grpctool.TLSFiles(s.TLS.CA.Reveal(), s.TLS.Certificate.Reveal(), s.TLS.Key.Reveal()); err != nil {
			return nil, about("tls", err)
		}
	}
	address, application := s.Address.Reveal(), s.Dapr.Reveal()
	switch {
	case address != "" && application != "":
		return nil, errors.New("the server has both an address and an application of Dapr")
	case address == "" && application == "":
		return nil, errors.New("the server has no address")
	case s.MCP:
		client := o.Client
		client.Server, client.Logger, client.Protocol = name, o.Logger, s.Protocol
		allowSampling(&client, s.Sampling)
		client.CallRoots = s.ClientRoots
		client.Roots = rootsOf(s.Roots, client.Roots)
		if application != "" {
			return grpctool.DaprMCP(application, options, &client), nil
		}
		return grpctool.MCP(address, options, &client), nil
	case application != "":
		return grpctool.Dapr(application, options), nil
	}
	return grpctool.Source(address, options), nil
}
