// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/sha256"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/consort-go/consort/config/serve"

	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/values"

	"github.com/consort-go/consort/config/internal/document"
)

// Kind returns the grammar of the table [serve].
func Kind(s *serve.Options) grammar.Kind {
	of := offer{s}
	return grammar.Table(of.fields(), func(r *grammar.Reader, n *document.Node) { of.check(r, n, n.Parent.Member("model") != nil) })
}

func (s offer) fields() []grammar.Field {
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
		grammar.Key("http_tls", grammar.Table(tlsFields(&s.HTTPTLS), checkTLS)),
		grammar.Key("grpc_tls", grammar.Table(tlsFields(&s.GRPCTLS), checkTLS)),
		grammar.Key("health", listenAddress(&s.Health)),
		grammar.Key("watch", grammar.Not(&s.NoWatch)),
		grammar.Key("access_log", grammar.Not(&s.NoAccessLog)),
		grammar.Key("console", grammar.Choice(&s.Console, consoleRoles...)),
		grammar.Key("trace_url", traceAddress(&s.TraceURL)),
		grammar.Key("token", bearer(&s.Token)),
		grammar.Key("clients", grammar.Each(&s.Clients, func(c *serve.Client) grammar.Kind {
			return grammar.Table(clientFields(c), func(r *grammar.Reader, n *document.Node) { checkClient(c, r, n) })
		})),
		grammar.Key("profiles", grammar.Each(&s.Profiles, func(p *serve.Profile) grammar.Kind {
			return grammar.Table(profileFields(p), func(r *grammar.Reader, n *document.Node) { checkProfile(p, r, n) })
		})),
		grammar.Key("search", grammar.Boolean(&s.Search)),
		grammar.Key("rules", grammar.Each(&s.Rules, func(rule *serve.Rule) grammar.Kind {
			return grammar.Table(clientRuleFields(rule), func(r *grammar.Reader, n *document.Node) { checkClientRule(rule, r, n) })
		})),
		grammar.Key("budgets", grammar.Each(&s.Budgets, func(b *serve.Budget) grammar.Kind {
			return grammar.Table(clientBudgetFields(b), func(r *grammar.Reader, n *document.Node) { checkClientBudget(b, r, n) })
		})),
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
		grammar.Key("oidc", grammar.Optional(&s.OIDC, func(o *serve.OIDC) grammar.Kind {
			return grammar.Table(oidcFields(o), func(r *grammar.Reader, n *document.Node) { checkOIDC(o, r, n) })
		})),
		grammar.Key("resource_metadata", grammar.Optional(&s.ResourceMetadata, func(m *serve.ResourceMetadata) grammar.Kind {
			return grammar.Table(metadataFields(m), func(r *grammar.Reader, n *document.Node) { checkMetadata(m, r, n) })
		})),
	}
}

func clientFields(c *serve.Client) []grammar.Field {
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
		grammar.Key("approve", grammar.WordFor(&c.Approve, grammar.Means("allow", false), grammar.Means("ask", true))),
		grammar.Key("console", grammar.Choice(&c.Console, consoleRoles...)),
	}
}

// consoleRoles say what a client may do in the console.
var consoleRoles = []string{"off", "read", "answer", "audit", "operate"}

// traceAddress is the address of the page of a trace.
func traceAddress(to *values.Value) grammar.Kind {
	kind := grammar.Address(to)
	read := kind.Read
	kind.Read = func(r *grammar.Reader, n *document.Node) {
		read(r, n)
		if text := to.Reveal(); text != "" && !strings.Contains(text, "{trace_id}") && !strings.Contains(text, "{conversation_id}") {
			r.Wrong(n, "expected {trace_id} or {conversation_id} in it, such as https://jaeger.example.com/trace/{trace_id}")
		}
	}
	return kind
}

func checkClient(c *serve.Client, r *grammar.Reader, n *document.Node) {
	r.EmptyLists(n, "allow", "deny")
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

func metadataFields(m *serve.ResourceMetadata) []grammar.Field {
	return []grammar.Field{
		grammar.Key("resource", grammar.Address(&m.Resource)),
		grammar.Key("authorization_servers", grammar.Each(&m.AuthorizationServers, grammar.Address)),
		grammar.Key("scopes", grammar.Each(&m.Scopes, grammar.Text)),
	}
}

func checkMetadata(m *serve.ResourceMetadata, r *grammar.Reader, n *document.Node) {
	if n.Member("resource") == nil {
		r.Missing(n, "resource", `missing: expected the URL of this server, such as resource = "https://tools.example.com/mcp"`)
	}
}

// check validates the table as a whole. hasModel reports whether the file has a model.
func (s offer) check(r *grammar.Reader, n *document.Node, hasModel bool) {
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
	if list, ok := n.Member("hosts").AsList(); ok && len(list) == 0 {
		r.Wrong(n.Member("hosts"), "expected the names that clients use; without the key, any name is answered if clients are identified, and otherwise only localhost and its addresses")
	}
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
func (s offer) distinct(r *grammar.Reader, clients *document.Node) {
	elements, _ := clients.AsList()
	if len(elements) != len(s.Clients) {
		return
	}
	seen := map[[sha256.Size]byte]bool{}
	for i, client := range s.Clients {
		hash, key := hashOf(&client), "token"
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
