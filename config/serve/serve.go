// SPDX-License-Identifier: Apache-2.0

// Package serve has the options with which a configuration is offered to other MCP hosts:
// the table [serve] of its file.
package serve

import (
	"errors"
	"net"
	"slices"

	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/internal/hostnames"
	mcpserver "github.com/consort-go/consort/mcpadapter/server"
)

// Options configure how the tools, resources and prompts of a configuration are offered to
// other MCP hosts. Its own fields hide the fields of the embedded Options that have the same
// name. config.Assemble sets Trusted, Tokens, Select, Profile, Finds, Invoke, Pinned,
// AccessLog, Audit, Logger and Telemetry. Without HTTP and GRPC, one client is served over
// standard input and output.
type Options struct {
	mcpserver.Options
	// Converse also offers the tool converse, which holds conversations with the model.
	// If config.Config.Keeps is true, config.Assemble does not offer it; the program that
	// serves must offer it, on an engine.
	Converse bool
	// Health is the address of an HTTP endpoint that reports the health of the servers,
	// as ensemble.Roster.HealthHandler does. It requires no token. Empty disables it.
	Health values.Value
	// HTTP is the address, HOST:PORT, for streamable HTTP. GRPC is the address for gRPC,
	// which offers the tool service and MCP in the frames of a stream. All options apply to
	// both, except Hosts, Origins, MaxBodies, Stateless and ResourceMetadata, which are for
	// HTTP only.
	HTTP, GRPC values.Value
	// HTTPTLS and GRPCTLS configure TLS for HTTP and GRPC. The zero value disables it. If
	// ClientCA is set, clients must have a certificate.
	HTTPTLS, GRPCTLS TLS
	// Token is the bearer token that each request must have. Its clients have no trusted
	// values.
	Token values.Value
	// Clients lists the clients, each with a token or a certificate, and with its trusted
	// values. Token and Clients are mutually exclusive.
	Clients []Client
	// Profiles are named parts of the offer, each at /mcp/NAME over HTTP.
	Profiles []Profile
	// Rules decide what clients may use, in addition to the lists of Clients. They apply to
	// a client over standard input and output too.
	Rules []Rule
	// Budgets limit how many calls each client may make.
	Budgets []Budget
	// Search shows clients only two tools, which find and call the others, and the tools that
	// config.Tools.Pinned names. Clients in the profile search always see these. [Profile].Search
	// decides for other profiles.
	Search bool
	// Open allows calls without a token at addresses that other machines can reach.
	Open bool
	// Console is what clients without a Console of their own may do in the console, which is
	// served next to HTTP if tokens are required: "off", "read", "answer", "audit" or "operate". Empty
	// means "read".
	Console string
	// TraceURL is the address of the page of a trace: the console replaces {trace_id} and
	// {conversation_id} in it and links there. Empty means no links.
	TraceURL values.Value
	// NoAccessLog turns off the log entry of each request over HTTP and GRPC.
	NoAccessLog bool
	// OIDC accepts the access tokens of an issuer; may be nil.
	OIDC *OIDC
	// ResourceMetadata tells clients where to get tokens. Nil publishes what OIDC says, if
	// its audience is a URL.
	ResourceMetadata *ResourceMetadata
	// NoWatch leaves changes of the configuration file unnoticed until the program is
	// told; the key is watch = false. config.Assemble ignores it.
	NoWatch bool
}

// MayListen returns an error if s must not serve HTTP at an address. Either other
// machines can reach the address, while s requires neither a token nor a certificate and is not
// Open; or all clients are identified by certificates, which HTTP does not request. The error
// says what to change.
func (s *Options) MayListen(address string) error {
	certified := s.HTTPTLS.ClientCA.Reveal() != ""
	if len(s.Clients) > 0 && !s.TakesTokens() && !certified {
		return errors.New("the clients are identified by certificates, which HTTP does not request: set http_tls.client_ca, give one of them a token, or serve only gRPC")
	}
	return s.mayListen(address, s.TakesTokens() || certified)
}

// MayListenGRPC is like [Options.MayListen] for gRPC.
func (s *Options) MayListenGRPC(address string) error {
	if len(s.Clients) > 0 && !s.TakesTokens() && !s.TakesCertificates() {
		return errors.New("the clients are identified by certificates, which gRPC does not request: set grpc_tls.client_ca, give one of them a token, or serve only HTTP")
	}
	return s.mayListen(address, s.TakesTokens() || s.TakesCertificates())
}

func (s *Options) mayListen(address string, known bool) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return errors.New(`expected an address such as "127.0.0.1:8080"`)
	}
	if hostnames.IsThisMachine(host) {
		return nil
	}
	if s.Open || known {
		return nil
	}
	return errors.New(`without a token, anyone who can reach this address can call the tools: set token, clients or oidc, listen at 127.0.0.1 only, or allow it with open = true`)
}

// AnswersOnlyLoopbackNames reports whether HTTP is open to other machines but rejects
// requests for any name other than the loopback names.
func (s *Options) AnswersOnlyLoopbackNames() bool {
	return s.HTTP.Reveal() != "" && s.Open && len(s.Hosts) == 0 && !s.TakesTokens() && s.HTTPTLS.ClientCA.Reveal() == ""
}

// Listens reports whether s serves at an address, not over standard input and output.
func (s *Options) Listens() bool { return s.HTTP.Reveal() != "" || s.GRPC.Reveal() != "" }

// Asks reports whether calls of some clients need an approval.
func (s *Options) Asks() bool {
	return slices.ContainsFunc(s.Clients, func(c Client) bool { return c.Approve }) ||
		slices.ContainsFunc(s.Rules, func(rule Rule) bool { return rule.Action == Ask })
}

// TakesCertificates reports whether gRPC clients must have a certificate.
func (s *Options) TakesCertificates() bool { return s.GRPCTLS.ClientCA.Reveal() != "" }

// TakesTokens reports whether a client can have a token.
func (s *Options) TakesTokens() bool {
	return s.Token.Reveal() != "" || s.OIDC != nil || slices.ContainsFunc(s.Clients, func(c Client) bool { return c.Token.Reveal() != "" || c.TokenHash != "" })
}
