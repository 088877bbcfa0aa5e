// SPDX-License-Identifier: Apache-2.0

package loginpages

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/login"
)

// Kind says whose login a server has.
type Kind int

// The kinds of servers.
const (
	NoLogin Kind = iota // nobody logs in
	Shared              // the gateway is logged in, for all clients
	Own                 // each client logs in
)

// nobody is the identity of a person who has none, such as the user of the program, for the
// cookie. No client has it: it is not the text of a hash.
const nobody = "a person without an identity"

// Server is a server with a login of people.
type Server struct {
	Kind Kind
	// Begin begins a login for an identity, which is empty for a server of the kind [Shared];
	// see [login.Client.Begin].
	Begin func(ctx context.Context, identity, callback string) (*login.Redirect, error)
}

func (p *Pages) server(name string) Server {
	if p.options.Servers == nil {
		return Server{}
	}
	return p.options.Servers()[name]
}

// Kind returns whose login a server has.
func (p *Pages) Kind(server string) Kind { return p.server(server).Kind }

// Visit is a login that a person begins who is known already, by a session of another page.
type Visit struct {
	Server, Client string // as in [Request]
	Back           string // the path of the page to go back to
	// May returns an error if the person may not log in there any more. It is called before the
	// login begins and before it is stored; may be nil.
	May func() error
	// Done is called when the login was stored; may be nil.
	Done func(context.Context)
}

// Open begins the login of the person whose request it is, and returns the path of its page.
// The response makes their browser known. The caller must check before that the
// person may do so, and give Visit.May for later.
func (p *Pages) Open(w http.ResponseWriter, r *http.Request, v Visit) (path string, err error) {
	kind := p.Kind(v.Server)
	base, err := url.Parse(p.base())
	switch {
	case kind == NoLogin:
		return "", invoker.Failf(invoker.NotFound, "The server %q has no login of people.", v.Server)
	case err != nil || base.Host == "":
		return "", invoker.Failf(invoker.Unauthorized, "There is no page to log in at, because the gateway does not know its own address: set serve.resource_metadata.resource.")
	case !strings.EqualFold(r.Host, base.Host):
		return "", invoker.Failf(invoker.Unauthorized, "The pages to log in are at %s: open this page there.", base.Scheme+"://"+base.Host)
	}
	own, ok := p.options.Identity(r.Context())
	if !ok && kind == Own {
		return "", invoker.Failf(invoker.Unauthorized, "The server %q has a login for each client, and this request has no client.", v.Server)
	}
	identity := cmp.Or(own, nobody)
	if kind == Shared {
		own = ""
	}
	a, err := p.attempt(&Request{Server: v.Server, Client: v.Client, Identity: identity, Begin: func(ctx context.Context, callback string) (*login.Redirect, error) {
		server := p.server(v.Server) // a reload may have changed it
		if server.Kind != kind {
			return nil, fmt.Errorf("the server %q has another kind of login now", v.Server)
		}
		return server.Begin(ctx, own, callback)
	}}, kind, &v)
	if err != nil {
		return "", err
	}
	p.remember(w, identity)
	return Path + a.id, nil
}
