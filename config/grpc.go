// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"strings"
	"time"

	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/values"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/plaintext"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/mcpadapter/grpctool"
)

// GRPCServer is one server that is reached over gRPC; see package grpctool.
type GRPCServer struct {
	// Address is the address of the server: HOST:PORT, or another gRPC target such as
	// unix:/run/tools.sock. Exactly one of Address and Dapr is set.
	Address values.Value
	// Dapr is the app ID by which this program's Dapr sidecar knows the server.
	// DAPR_GRPC_ENDPOINT and DAPR_GRPC_PORT locate the sidecar, DAPR_API_TOKEN is sent to
	// it.
	Dapr values.Value
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
	Token values.Value
	// Metadata is sent with each request; may be nil.
	Metadata map[string]values.Value
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
	// CA has the root certificates for verifying the server; empty means those of the
	// system.
	CA values.Value
	// Certificate and Key are those of this client; set both or neither.
	Certificate, Key values.Value
}

// grpcServer is one [grpc.NAME] table.
func grpcServer(s **GRPCServer) grammar.Kind {
	*s = new(GRPCServer)
	return grammar.Table((*s).fields(), (*s).check).LenientIf("enabled", false)
}

func (s *GRPCServer) fields() []grammar.Field {
	return append(s.Supervision.fields(), []grammar.Field{
		grammar.Key("address", grpcTarget(&s.Address)),
		grammar.Key("dapr", grammar.Expanded(&s.Dapr)),
		grammar.Key("service", grammar.WordFor(&s.MCP, grammar.Means("tools", false), grammar.Means("mcp", true))),
		grammar.Key("tls", grammar.Table(s.tlsFields(), s.checkTLS)),
		grammar.Key("token", grpcToken(&s.Token)),
		grammar.Key("metadata", grammar.ByName(&s.Metadata, metadataValue, plaintext.MetadataName)),
		grammar.Key("category", grammar.Text(&s.Category)),
		grammar.Key("caller", grammar.Text(&s.Caller)),
		grammar.Key("max_message", grammar.Size(&s.MaxMessage)),
		grammar.Key("ping_after", pingAfter(&s.PingAfter)),
		grammar.Key("sampling", grammar.Boolean(&s.Sampling)),
		grammar.Key("roots", grammar.Each(&s.Roots, root)),
		grammar.Key("client_roots", grammar.Boolean(&s.ClientRoots)),
		grammar.Key("protocol", grammar.ProtocolVersion(&s.Protocol)),
		grammar.Key("trusted", grammar.Table([]grammar.Field{
			grammar.Key("arguments", grammar.ByName(&s.Fill, grammar.Text[string], plaintext.ArgumentName)),
			grammar.Key("metadata", grammar.ByName(&s.TrustedMetadata, grammar.Text[string], plaintext.MetadataName)),
		}, nil)),
	}...)
}

func (s *GRPCServer) tlsFields() []grammar.Field {
	return []grammar.Field{
		grammar.Key("ca", grammar.Path(&s.TLS.CA)),
		grammar.Key("certificate", grammar.Path(&s.TLS.Certificate)),
		grammar.Key("key", grammar.Path(&s.TLS.Key)),
		grammar.Key("plaintext", grammar.Boolean(&s.Plaintext)),
		grammar.Key("plaintext_secrets", grammar.Boolean(&s.PlaintextSecrets)),
	}
}

func (s *GRPCServer) checkTLS(r *grammar.Reader, n *document.Node) {
	certificate, key, plain := n.Member("certificate"), n.Member("key"), n.Member("plaintext")
	switch {
	case certificate != nil && key == nil:
		r.Missing(n, "key", `missing: expected the file of the certificate's key, such as key = "client.key"`)
	case key != nil && certificate == nil:
		r.Missing(n, "certificate", `missing: expected the file of the key's certificate, such as certificate = "client.pem"`)
	}
	for _, name := range []string{"ca", "certificate", "key"} {
		if stray := n.Member(name); stray != nil && s.Plaintext {
			r.WrongKey(stray, "plaintext = true disables TLS; remove one of them")
		}
	}
	if secrets := n.Member("plaintext_secrets"); s.PlaintextSecrets && !s.Plaintext {
		at := secrets
		if plain != nil {
			at = plain
		}
		r.Faults.Add(grammar.FaultAt(r.Source.Of(at), at.KeyAt, secrets.Path(), "only with plaintext = true; with TLS, others cannot read them"))
	}
}

// check validates the table as a whole.
func (s *GRPCServer) check(r *grammar.Reader, n *document.Node) {
	s.Supervision.check(r, n)
	address, dapr := n.Member("address"), n.Member("dapr")
	switch {
	case address == nil && dapr == nil:
		r.Missing(n, "address", `missing: expected the address of the server, such as address = "tools.example.com:443", or dapr for one behind a Dapr sidecar`)
	case address != nil && dapr != nil:
		later := address
		if dapr.KeyAt > address.KeyAt {
			later = dapr
		}
		r.WrongKey(later, "a server has either address or dapr, not both: remove one")
	}
	if plain := s.Plaintext && dapr != nil; plain {
		stray := n.Member("tls").Member("plaintext")
		r.WrongKey(stray, "the address of the sidecar, in DAPR_GRPC_ENDPOINT, decides whether TLS is used")
	}
	s.speaks(r, n)
	s.exposes(r, n, address)
	s.twice(r, n)
}

// speaks reports keys that have no meaning for the chosen service.
func (s *GRPCServer) speaks(r *grammar.Reader, n *document.Node) {
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
			r.WrongKey(stray, "not for a server with service = %q: remove it", other)
		}
	}
}

// exposes reports secrets that would leave the machine in plain text, unless
// PlaintextSecrets allows it.
func (s *GRPCServer) exposes(r *grammar.Reader, n, address *document.Node) {
	if address == nil || s.Address == (values.Value{}) || !s.Plaintext || s.PlaintextSecrets || grpctool.IsLocal(s.Address.Reveal()) {
		return
	}
	secret := s.Token.Reveal() != "" || len(s.Metadata) > 0 || len(s.TrustedMetadata) > 0 || len(s.Fill) > 0
	if plain := n.Member("tls").Member("plaintext"); secret {
		r.Wrong(plain, "the token, the metadata and trusted values would be sent unencrypted to another machine; use TLS, or allow it with plaintext_secrets = true")
	}
}

// twice reports metadata that is set twice.
func (s *GRPCServer) twice(r *grammar.Reader, n *document.Node) {
	fixed := map[string]string{}
	if n.Member("token") != nil {
		fixed["authorization"] = "token"
	}
	report := func(table *document.Node) {
		for _, member := range table.Members() {
			if by, is := fixed[member.Key]; is {
				r.WrongKey(member, "this metadata is set in %s already", by)
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
func distinctServers(r *grammar.Reader, root *document.Node) {
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
			line, _ := r.Source.Position(earlier.KeyAt)
			r.WrongKey(later, "another server already has this name: %s on line %d", earlier.Path(), line)
		}
	}
}

// grpcTarget is the address of a gRPC server.
func grpcTarget(to *values.Value) grammar.Kind {
	return grammar.Kind{Name: "a string with variables", Read: func(r *grammar.Reader, n *document.Node) {
		e, ok := r.Replace(n)
		switch {
		case !ok || !r.Filled(n, e):
		case strings.HasPrefix(e.Text, "http://"), strings.HasPrefix(e.Text, "https://"):
			r.Wrong(n, `expected a gRPC address, such as "tools.example.com:443"; TLS is used unless tls = {plaintext = true}`)
		default:
			*to = grammar.ValueOf(e, e.Shown)
		}
	}}
}

// grpcToken is a bearer token that is valid in gRPC metadata.
func grpcToken(to *values.Value) grammar.Kind {
	v := grammar.Secret(to)
	return grammar.Kind{Name: v.Name, Read: func(r *grammar.Reader, n *document.Node) {
		if v.Read(r, n); strings.ContainsFunc(to.Reveal(), func(c rune) bool { return c <= ' ' || c > '~' }) {
			r.Wrong(n, "expected a bearer token: printable ASCII without spaces, and without the word Bearer")
		}
	}}
}

// metadataValue is a secret that is valid in gRPC metadata (gRPC over HTTP/2, section
// Requests).
func metadataValue(to *values.Value) grammar.Kind {
	v := grammar.Secret(to)
	return grammar.Kind{Name: v.Name, Read: func(r *grammar.Reader, n *document.Node) {
		v.Read(r, n)
		text := to.Reveal()
		unfit := strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) || strings.TrimSpace(text) != text
		if unfit && !strings.HasSuffix(n.Key, "-bin") {
			r.Wrong(n, "expected printable ASCII without spaces at an end; metadata whose name ends in -bin takes any text")
		}
	}}
}

// minPing is the minimum that gRPC enforces; it raises shorter times to this.
const minPing = 10 * time.Second

func pingAfter(to *time.Duration) grammar.Kind {
	v := grammar.Duration(to)
	return grammar.Kind{Name: v.Name, Read: func(r *grammar.Reader, n *document.Node) {
		if v.Read(r, n); *to != 0 && *to < minPing {
			r.Wrong(n, `expected a duration of at least "10s"; keepalive has no such limit`)
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
			return nil, grammar.About("tls", err)
		}
	}
	address, application := s.Address.Reveal(), s.Dapr.Reveal()
	switch {
	case address != "" && application != "":
		return nil, errors.New("the server has both an address and an application of Dapr")
	case address == "" && application == "":
		return nil, errors.New("the server has no address")
	case s.MCP:
		client := o.clientOptions(name, s.Protocol, s.Sampling, s.ClientRoots, s.Roots)
		if application != "" {
			return grpctool.DaprMCP(application, options, &client), nil
		}
		return grpctool.MCP(address, options, &client), nil
	case application != "":
		return grpctool.Dapr(application, options), nil
	}
	return grpctool.Source(address, options), nil
}
