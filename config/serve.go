// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/values"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/converse/agenttool"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	mcpserver "github.com/consort-go/consort/mcpadapter/server"
)

// Serve configures how the tools, resources and prompts of a configuration are offered to
// other MCP hosts. Its own fields hide the fields of Options that have the same
// name. [Assemble] sets Trusted, Tokens, Select, Profile, Finds, Invoke, Pinned, AccessLog, Audit, Logger and Telemetry. Without
// HTTP and GRPC, one client is served over standard input and output.
type Serve struct {
	mcpserver.Options
	// Converse also offers the tool converse, which holds conversations with the model.
	// If [Config.Keeps] is true, [Assemble] does not offer it; the program that serves
	// must offer it, on an engine.
	Converse bool
	// Health is the address of an HTTP endpoint that reports the health of the servers,
	// as ensemble.Roster.HealthHandler does. It requires no token. Empty disables it.
	Health values.Value
	// HTTP is the address, HOST:PORT, for streamable HTTP. GRPC is the address for gRPC,
	// which offers the tool service and MCP in the frames of a stream. Token, Clients,
	// Open, Rate and Burst apply to both.
	HTTP, GRPC values.Value
	// GRPCTLS configures TLS for GRPC. The zero value disables it. If CA is set, clients
	// must have a certificate.
	GRPCTLS TLS
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
	Rules []ClientRule
	// Budgets limit how many calls each client may make.
	Budgets []ClientBudget
	// Search shows clients only two tools, which find and call the others, and the tools that
	// [Tools].Pinned names. Clients in the profile search always see these. [Profile].Search
	// decides for other profiles.
	Search bool
	// Open allows calls without a token at addresses that other machines can reach.
	Open bool
	// NoAccessLog turns off the log entry of each request over HTTP and GRPC.
	NoAccessLog bool
	// OIDC accepts the access tokens of an issuer; may be nil.
	OIDC *OIDC
	// ResourceMetadata tells clients where to get tokens. Nil publishes what OIDC says, if
	// its audience is a URL.
	ResourceMetadata *ResourceMetadata
	// NoWatch leaves changes of the configuration file unnoticed until the program is
	// told; the key is watch = false. [Assemble] ignores it.
	NoWatch bool
}

// Client is a client that is served over HTTP or gRPC.
type Client struct {
	// Token is the client's bearer token. TokenHash is its hash instead: sha256: and 64
	// hexadecimal digits. Certificate, for gRPC, is the name in the client's certificate:
	// one of its alternative names (URI, DNS or email), or the common name if it has none.
	// Exactly one of the three is set.
	Token       values.Value
	TokenHash   string
	Certificate string
	// Expires is when the token expires; zero means never.
	Expires time.Time
	// Name identifies the client in logs, metrics and the audit; may be empty.
	Name string
	// Trusted holds the trusted values of the client; may be nil.
	Trusted map[string]values.Trusted
	// Allow and Deny are globs: each matches the name of an ensemble, the name of a tool
	// or prompt in the roster ([ensemble.NameFor]), or the URI of a resource. What Deny
	// matches, or what Allow does not match if it is not empty, does not exist for the
	// client. Both need a Name. [Serve].Rules apply too.
	Allow, Deny []string
	// Profile is the name of the only profile that the client may use, at /mcp too and over
	// gRPC; it needs a Name. Empty allows all.
	Profile string
	// Approve is [ActionAsk] if each call of the client needs an approval, unless its tool
	// says that it changes nothing and its ensemble is trusted in that; it needs a Name.
	// Empty and [ActionAllow] ask only where a rule does.
	Approve Action
}

// Profile is a named part of the offer. Within it, the lists and rules of each client apply
// too.
type Profile struct {
	// Name is the end of the path, as in /mcp/NAME. Required.
	Name string
	// Allow and Deny have the same form as in [Client].
	Allow, Deny []string
	// Search is like [Serve].Search, for clients in the profile.
	Search bool
}

// ResourceMetadata is the metadata of a protected resource (RFC 9728).
type ResourceMetadata struct {
	// Resource is the URL of the server as clients use it. Required.
	Resource values.Value
	// AuthorizationServers are the issuers of its tokens.
	AuthorizationServers []values.Value
	// Scopes are the scopes that a token may need; may be nil.
	Scopes []string
}

// MayListen returns an error if s must not serve HTTP at an address. Either other
// machines can reach the address, while s requires no token and is not Open; or all
// clients are identified by certificates, which HTTP does not request. The error says
// what to change.
func (s *Serve) MayListen(address string) error {
	if len(s.Clients) > 0 && !s.byToken() {
		return errors.New("the clients are identified by certificates, which HTTP does not request: give one of them a token, or serve only gRPC")
	}
	return s.mayListen(address, s.byToken())
}

// MayListenGRPC is like [Serve.MayListen] for gRPC, where clients can also have
// certificates.
func (s *Serve) MayListenGRPC(address string) error {
	return s.mayListen(address, s.byToken() || s.asksForCertificates())
}

func (s *Serve) mayListen(address string, known bool) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return errors.New(`expected an address such as "127.0.0.1:8080"`)
	}
	if ip, err := netip.ParseAddr(host); strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback() {
		return nil
	}
	if s.Open || known {
		return nil
	}
	return errors.New(`without a token, anyone who can reach this address can call the tools: set token, clients or oidc, listen at 127.0.0.1 only, or allow it with open = true`)
}

// AnswersOnlyLoopbackNames reports whether HTTP is open to other machines but rejects
// requests for any name other than the loopback names.
func (s *Serve) AnswersOnlyLoopbackNames() bool {
	return s.HTTP.Reveal() != "" && s.Open && len(s.Hosts) == 0 && !s.byToken()
}

func (s *Serve) fields() []grammar.Field {
	return []grammar.Field{
		grammar.Key("name", grammar.Text(&s.Name)),
		grammar.Key("title", grammar.Text(&s.Title)),
		grammar.Key("instructions", grammar.Text(&s.Instructions)),
		grammar.Key("own_names", grammar.Boolean(&s.OwnNames)),
		grammar.Key("converse", grammar.Boolean(&s.Converse)),
		grammar.Key("page_size", grammar.Integer(&s.PageSize, 1)),
		grammar.Key("shutdown_timeout", grammar.Duration(&s.ShutdownTimeout)),
		grammar.Key("http", listenAddress(&s.HTTP)),
		grammar.Key("grpc", listenAddress(&s.GRPC)),
		grammar.Key("grpc_tls", grammar.Table(s.GRPCTLS.serveFields(), s.GRPCTLS.checkServe)),
		grammar.Key("health", listenAddress(&s.Health)),
		grammar.Key("watch", grammar.Not(&s.NoWatch)),
		grammar.Key("access_log", grammar.Not(&s.NoAccessLog)),
		grammar.Key("token", bearer(&s.Token)),
		grammar.Key("clients", grammar.Each(&s.Clients, func(c *Client) grammar.Kind { return grammar.Table(c.fields(), c.check) })),
		grammar.Key("profiles", grammar.Each(&s.Profiles, func(p *Profile) grammar.Kind { return grammar.Table(p.fields(), p.check) })),
		grammar.Key("search", grammar.Boolean(&s.Search)),
		grammar.Key("rules", grammar.Each(&s.Rules, func(rule *ClientRule) grammar.Kind { return grammar.Table(rule.fields(), rule.check) })),
		grammar.Key("budgets", grammar.Each(&s.Budgets, func(b *ClientBudget) grammar.Kind { return grammar.Table(b.fields(), b.check) })),
		grammar.Key("open", grammar.Boolean(&s.Open)),
		grammar.Key("hosts", grammar.Each(&s.Hosts, hostName)),
		grammar.Key("origins", grammar.Each(&s.Origins, origin)),
		grammar.Key("rate", grammar.Number(&s.Rate, 0.001, math.Inf(1))),
		grammar.Key("burst", grammar.Integer(&s.Burst, 1)),
		grammar.Key("parallel", grammar.Integer(&s.Parallel, 1)),
		grammar.Key("max_body", grammar.Size(&s.MaxBody)),
		grammar.Key("max_bodies", grammar.Size(&s.MaxBodies)),
		grammar.Key("max_connections", grammar.Integer(&s.MaxConnections, 1)),
		grammar.Key("max_connections_per_address", grammar.Integer(&s.MaxConnectionsPerAddress, 1)),
		grammar.Key("stateless", grammar.Boolean(&s.Stateless)),
		grammar.Key("oidc", grammar.Optional(&s.OIDC, func(o *OIDC) grammar.Kind { return grammar.Table(o.fields(), o.check) })),
		grammar.Key("resource_metadata", grammar.Optional(&s.ResourceMetadata, func(m *ResourceMetadata) grammar.Kind { return grammar.Table(m.fields(), m.check) })),
	}
}

func (c *Client) fields() []grammar.Field {
	return []grammar.Field{
		grammar.Key("token", bearer(&c.Token)),
		grammar.Key("token_hash", tokenHash(&c.TokenHash)),
		grammar.Key("expires", expiry(&c.Expires)),
		grammar.Key("certificate", grammar.Text(&c.Certificate)),
		grammar.Key("name", grammar.Text(&c.Name)),
		grammar.Key("trusted", grammar.TrustedTable(&c.Trusted)),
		grammar.Key("allow", grammar.Each(&c.Allow, grammar.Text)),
		grammar.Key("deny", grammar.Each(&c.Deny, grammar.Text)),
		grammar.Key("profile", grammar.Text(&c.Profile)),
		grammar.Key("approve", grammar.Choice(&c.Approve, ActionAllow, ActionAsk)),
	}
}

func (c *Client) check(r *grammar.Reader, n *document.Node) {
	emptyLists(r, n, "allow", "deny")
	var first *document.Node
	for _, key := range []string{"token", "token_hash", "certificate"} {
		switch found := n.Member(key); {
		case found != nil && first != nil:
			r.WrongKey(found, "a client is identified by one of token, token_hash and certificate; make it two clients")
		case found != nil:
			first = found
		}
	}
	if first == nil {
		r.Missing(n, "token", `missing: expected the token that the client sends, such as token = "env:ADA_TOKEN", its hash (consort token new makes both), or the name in its certificate`)
	}
	if stray := n.Member("expires"); stray != nil && n.Member("certificate") != nil {
		r.WrongKey(stray, "only for a token; a certificate has an expiry of its own")
	}
}

func (m *ResourceMetadata) fields() []grammar.Field {
	return []grammar.Field{
		grammar.Key("resource", grammar.Address(&m.Resource)),
		grammar.Key("authorization_servers", grammar.Each(&m.AuthorizationServers, grammar.Address)),
		grammar.Key("scopes", grammar.Each(&m.Scopes, grammar.Text)),
	}
}

func (m *ResourceMetadata) check(r *grammar.Reader, n *document.Node) {
	if n.Member("resource") == nil {
		r.Missing(n, "resource", `missing: expected the URL of this server, such as resource = "https://tools.example.com/mcp"`)
	}
}

// Listens reports whether s serves at an address, not over standard input and output.
func (s *Serve) Listens() bool { return s.HTTP.Reveal() != "" || s.GRPC.Reveal() != "" }

// overNetwork lists the keys that are valid only with an address, and overHTTP the keys
// that are valid only with HTTP.
var (
	overNetwork = []string{"token", "clients", "oidc", "open", "rate", "burst"}
	overHTTP    = []string{"hosts", "origins", "max_bodies", "stateless", "resource_metadata"}
)

// strays reports keys whose address is missing.
func (s *Serve) strays(r *grammar.Reader, n *document.Node) {
	http, grpc := n.Member("http") != nil, n.Member("grpc") != nil
	for _, key := range overNetwork {
		if stray := n.Member(key); stray != nil && !http && !grpc {
			r.WrongKey(stray, `only for serving over HTTP or gRPC; set http or grpc, such as http = "127.0.0.1:8080"`)
		}
	}
	if stray := n.Member("grpc_tls"); stray != nil && !grpc {
		r.WrongKey(stray, `only for serving over gRPC; set grpc, such as grpc = "127.0.0.1:50051"`)
	}
	for _, key := range overHTTP {
		if stray := n.Member(key); stray != nil && !http {
			r.WrongKey(stray, `only for serving over HTTP; set http, such as http = "127.0.0.1:8080"`)
		}
	}
}

// check validates the table as a whole. hasModel reports whether the file has a model.
func (s *Serve) check(r *grammar.Reader, n *document.Node, hasModel bool) {
	s.strays(r, n)
	token, clients, open := n.Member("token"), n.Member("clients"), n.Member("open")
	if token != nil && clients != nil {
		r.WrongKey(token, "a server has either token or clients, not both; give this token to one of the clients")
	}
	issuer := n.Member("oidc")
	if s.Open && (token != nil || clients != nil || issuer != nil) {
		r.WrongKey(open, "a server that requires a token is not open")
	}
	elements, _ := clients.AsList()
	// An invalid token is reported separately.
	tokens := token != nil || issuer != nil || slices.ContainsFunc(elements, func(c *document.Node) bool { return c.Member("certificate") == nil })
	for key, at := range map[string]struct {
		values.Value
		may func(string) error
	}{"http": {s.HTTP, s.MayListen}, "grpc": {s.GRPC, s.MayListenGRPC}} {
		if at.Value == (values.Value{}) || tokens {
			continue
		}
		if err := at.may(at.Reveal()); err != nil {
			r.Wrong(n.Member(key), "%s", err)
		}
	}
	s.certificates(r, n, clients)
	if list, ok := clients.AsList(); ok && len(list) == 0 {
		r.Wrong(clients, "expected at least one client")
	}
	s.distinct(r, clients)
	s.checkRules(r, n)
	s.checkProfiles(r, n)
	if burst := n.Member("burst"); burst != nil && n.Member("rate") == nil {
		r.WrongKey(burst, "only together with rate, which limits the requests; set rate")
	}
	if converse := n.Member("converse"); s.Converse && !hasModel {
		r.WrongKey(converse, "conversations need a model; add a [model] table")
	}
}

// distinct reports tokens that several clients share.
func (s *Serve) distinct(r *grammar.Reader, clients *document.Node) {
	elements, _ := clients.AsList()
	if len(elements) != len(s.Clients) {
		return
	}
	seen := map[[sha256.Size]byte]bool{}
	for i, client := range s.Clients {
		hash, key := client.hash(), "token"
		if client.TokenHash != "" {
			key = "token_hash"
		}
		if at := elements[i].Member(key); hash != [sha256.Size]byte{} && seen[hash] && at != nil {
			r.Wrong(at, "another client already has this token")
		}
		seen[hash] = true
	}
}

// listenAddress is an address to listen at.
func listenAddress(to *values.Value) grammar.Kind {
	return grammar.Kind{Name: "an address", Read: func(r *grammar.Reader, n *document.Node) {
		e, ok := r.Replace(n)
		if !ok {
			return
		}
		_, port, err := net.SplitHostPort(e.Text)
		if number, wrong := strconv.ParseUint(port, 10, 16); err != nil || wrong != nil || strconv.FormatUint(number, 10) != port {
			r.Wrong(n, `expected an address such as "127.0.0.1:8080"; port 0 chooses a free one`)
			return
		}
		*to = grammar.ValueOf(e, e.Shown)
	}}
}

// minToken is the minimum length of a token, so that it is hard to guess and redaction
// can find it.
const minToken = 16

// bearer is a token of RFC 6750, section 2.1.
func bearer(to *values.Value) grammar.Kind {
	v := grammar.Secret(to)
	return grammar.Kind{Name: v.Name, Read: func(r *grammar.Reader, n *document.Node) {
		v.Read(r, n)
		token := to.Reveal()
		switch {
		case *to == values.Value{}:
		case strings.Trim(strings.TrimRight(token, "="), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/") != "":
			r.Wrong(n, "expected a bearer token: letters, digits and -._~+/, without the word Bearer")
		case len(token) < minToken:
			r.Wrong(n, "expected a token of at least %d characters, such as the output of openssl rand -hex 32", minToken)
		}
	}}
}

// anyone matches all hosts or all origins.
const anyone = "*"

// hostName is a value of the Host header, with or without a port.
func hostName(to *string) grammar.Kind {
	return grammar.Kind{Name: "a string", Read: func(r *grammar.Reader, n *document.Node) {
		grammar.Text(to).Read(r, n)
		if u, err := url.Parse("http://" + *to); *to != "" && *to != anyone && (err != nil || u.Host != *to || u.Hostname() == "") {
			r.Wrong(n, `expected the name of a host, such as "tools.example.com" or "tools.example.com:8080"`)
		}
	}}
}

// origin is the origin of a web page (RFC 6454, section 6.2).
func origin(to *string) grammar.Kind {
	return grammar.Kind{Name: "a string", Read: func(r *grammar.Reader, n *document.Node) {
		grammar.Text(to).Read(r, n)
		if u, err := url.Parse(*to); *to != "" && *to != anyone && (err != nil || u.Host == "" || *to != u.Scheme+"://"+u.Host) {
			r.Wrong(n, `expected the origin of a web page, such as "https://app.example.com", without a path`)
		}
	}}
}

// assembleServe creates the server options. Servers at an address do not get the values
// of the trusted table, because their clients can be different people.
func (a *Assembly) assembleServe(config *Config, o *AssembleOptions) error {
	s := config.Serve
	if s == nil {
		s = &Serve{}
	}
	copied := s.Options
	options := &copied
	options.Token, options.Tokens, options.Trusted = s.Token.Reveal(), nil, nil
	options.Audit, options.Logger, options.Telemetry = a.Audit, o.Logger, o.seen
	options.AccessLog = s.Listens() && !s.NoAccessLog
	var errs []error
	if !s.Listens() {
		options.Trusted = a.Trusted
	}
	for i, client := range s.Clients {
		path := fmt.Sprintf("serve.clients[%d]", i)
		values, err := grammar.TrustedValues(path+".trusted", client.Trusted)
		if client.Certificate != "" {
			a.certified = append(a.certified, values)
			continue // withTLS reports the problem
		}
		hash := client.hash()
		if hash == [sha256.Size]byte{} {
			err = errors.Join(err, grammar.About(path+".token", errors.New("missing")))
		}
		errs = append(errs, err)
		options.Tokens = append(options.Tokens, mcpserver.BearerToken{Token: client.Token.Reveal(), Hash: parseHash(client.TokenHash), Name: client.Name, Trusted: values, Expires: client.Expires})
	}
	var err, cannotAsk error
	options.Select, options.Profile, err = s.selections(a.Roster, config.Tools)
	options.Finds, options.Pinned = s.finds, config.Tools.Pinned
	options.Invoke, cannotAsk = a.invokeFunc(s)
	errs = append(errs, err, cannotAsk)
	options.ResourceMetadata = s.metadata()
	a.Serve = options
	switch {
	case s.Converse && config.Model == nil:
		errs = append(errs, grammar.About("serve.converse", errors.New("conversations need a model")))
	case s.Converse && !config.Keeps():
		errs = append(errs, a.offerConversations(o))
	}
	a.ServeGRPC = overGRPC(options)
	return errors.Join(append(errs, s.byIssuer(a, a.Serve, a.ServeGRPC), s.withTLS(a.ServeGRPC))...)
}

// overGRPC converts the options to those of a gRPC server.
func overGRPC(o *mcpserver.Options) *grpctool.ServerOptions {
	return &grpctool.ServerOptions{
		Tools:           o.Tools,
		OwnNames:        o.OwnNames,
		Token:           o.Token,
		Tokens:          o.Tokens,
		Trusted:         o.Trusted,
		Select:          o.Select,
		Invoke:          o.Invoke,
		MaxMessage:      int(o.MaxBody),
		Rate:            o.Rate,
		Burst:           o.Burst,
		Parallel:        o.Parallel,
		ShutdownTimeout: o.ShutdownTimeout,
		AccessLog:       o.AccessLog,
		Audit:           o.Audit,
		Logger:          o.Logger,
		Telemetry:       o.Telemetry,

		MaxConnections: o.MaxConnections, MaxConnectionsPerAddress: o.MaxConnectionsPerAddress,
	}
}

// offerConversations adds the tool converse. Its conversations use the trusted values of
// the caller, not of the person who runs the program.
func (a *Assembly) offerConversations(o *AssembleOptions) (err error) {
	if o.Previous == nil {
		a.shared.tool, err = agenttool.New(a.OpenServed(nil), &agenttool.Options{Identity: a.Options.Identity, Logger: o.Logger})
	}
	a.Serve.Tools = []invoker.Invoker{a.shared.tool}
	return grammar.About("serve.converse", err)
}
