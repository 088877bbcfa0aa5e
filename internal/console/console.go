// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/pins"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/internal/loginpages"
	"github.com/consort-go/consort/internal/openstreams"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"go.uber.org/zap"
)

// Prefix begins the path of each page.
const Prefix = "/console"

// Role is a set of rights: the things that a person may do.
type Role uint8

// The roles.
const (
	Nothing Role = 0                  // has no access
	Read    Role = 1                  // sees the person's own conversations
	Answer  Role = Read | 2           // sends messages, answers waits, cancels and forks in them, calls tools
	Audit   Role = Read | 4           // sees everything, and changes nothing
	Operate Role = Answer | Audit | 8 // sees and changes everything
)

// Roles are the names of the roles in a configuration.
var Roles = map[string]Role{"off": Nothing, "read": Read, "answer": Answer, "audit": Audit, "operate": Operate}

// May reports whether a role includes another one.
func (r Role) May(what Role) bool { return r&what == what }

// Caller is the person that a token belongs to.
type Caller struct {
	Name  string // for the audit, and as the author of answers
	Owner string // of the person's conversations, as the store names it
	Role  Role
	// Identity is the person's name as a client. It identifies the person's own calls.
	Identity string
}

// Options are the parts of a program that a console shows. Functions may be called
// concurrently.
type Options struct {
	// Identify passes requests with a valid header Authorization to a handler and refuses
	// others (401). Tokens reports whether it asks for tokens: if not, people log in only
	// with [Console.Link].
	Identify func(http.Handler) http.Handler
	Tokens   func() bool
	// Caller returns who sent an identified request.
	Caller func(context.Context) (Caller, error)

	// Store has the conversations of all owners; nil if none are stored.
	Store history.Store
	// Engine continues conversations; nil if this process runs none. Runs reports whether it
	// may continue a conversation, and Begin stores the first message of a new one.
	// Feed has the events of the engine's conversations; nil if Engine is.
	Engine engine.Engine
	Feed   *httpapi.Feed
	Runs   func(history.Info) bool
	// Active reports whether this process continues a conversation by itself; nil if that is not known.
	Active func(conversation string) bool
	Begin  func(ctx context.Context, conversation string, message canister.User) error
	// Admit is called for each message and each answer that a person sends to a conversation of
	// Engine, also again, as httpapi.Options.Admit is. Nil calls enter.
	Admit func(ctx context.Context, entry httpapi.Entry, enter func(context.Context) error) error

	// Roster has the ensembles, and Select the part that a caller may use; nil means all.
	Roster *ensemble.Roster
	Select func(context.Context) *ensemble.Selection
	// Trust adds the trusted values of the person to the context of a request, for resources and
	// prompts. Nil means that the context has them already.
	Trust func(context.Context) context.Context
	// Call calls a tool for a caller, by the rules for clients.
	Call func(ctx context.Context, tool *ensemble.Tool, arguments json.RawMessage) (invoker.Output, error)
	// Shown returns the definitions of a catalog as a model receives them, and the tools that
	// it does not receive; nil means as they are.
	Shown func(*ensemble.Catalog) (shown []*ensemble.Tool, aside []ensemble.Aside)
	// Pins returns the files of pinned tools. It may be nil.
	Pins func() ([]*pins.File, error)
	// Login returns whose login an ensemble has; may be nil.
	Login func(ensemble string) loginpages.Kind
	// OpenLogin begins a login for the person of a request and returns the path of its page.
	// The page calls stillAllowed before it continues, which returns an error if the person
	// may no longer log in. It may be nil.
	OpenLogin func(w http.ResponseWriter, r *http.Request, ensemble string, stillAllowed func() error) (path string, err error)
	// LoginCommand returns the command that logs the program in at an ensemble.
	LoginCommand func(ensemble string) string
	// Reload reads the configuration again and says what changed; nil if it cannot.
	Reload func(context.Context) (string, error)

	// TraceURL returns the address of the page of a trace, with {trace_id} and
	// {conversation_id} in the places of the IDs; "" for none. It may be nil.
	TraceURL func() string

	// Budget is what conversations may spend; nil means no bounds. Its prices count the cost
	// of exchanges.
	Budget func() *budget.Policy
	// Audit receives a record of each action; may be nil. Records returns the path of the
	// file of all records, or "".
	Audit   *audit.Trail
	Records func() string

	// Patience bounds each part of a page that reads conversations. The default is 0.06 to 0.4 s
	// for searches, 1 s for what is not finished, 3 s for spending, and 1 min for its export.
	Patience time.Duration

	Redact func(string) string
	// RedactPart is like Redact for texts that arrive in pieces, as [redact.PartFunc] describes it. With
	// Redact and without RedactPart, pages show a message when it is complete.
	RedactPart redact.PartFunc
	Logger     *zap.Logger
	Now        func() time.Time // default time.Now
}

// Console is the handler of the pages. Use New to create one.
type Console struct {
	Options
	clean    cleaner // Redact
	mux      *http.ServeMux
	sessions *sessions
	foreign  *http.CrossOriginProtection
	asset    map[string]asset
	others   *httpapi.Feed // the conversations that the engine does not run

	renderings *renderings
	streams    openstreams.PerOwner // of conversations
	exports    openstreams.PerOwner // that are under way
	pages      openstreams.PerOwner // that read many conversations or the audit, and are being made

	failed    failedLogins
	latencies latencies
	unread    *unreadLog
	done      chan struct{} // closed by Close
	watching  sync.WaitGroup
}

// The pages, by what they are about.
type (
	conversationPages struct{ console *Console }
	waitPages         struct{ console *Console } // approvals, questions, unknown outcomes
	serverPages       struct{ console *Console } // what is connected, and what it may cost
	toolPages         struct{ console *Console }
	libraryPages      struct{ console *Console } // resources and prompts
	recordPages       struct{ console *Console } // spending and the audit
)

// New returns a console. It serves the paths that begin with [Prefix]. The caller must call
// Close.
func New(options Options) *Console {
	c := &Console{Options: options, mux: http.NewServeMux(), renderings: newRenderings(), foreign: http.NewCrossOriginProtection(), asset: assets()}
	c.exports.Most, c.pages.Most = maxExports, maxPages
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Pins == nil {
		c.Pins = func() ([]*pins.File, error) { return nil, nil }
	}
	switch {
	case c.Redact == nil:
		c.Redact, c.RedactPart = func(s string) string { return s }, func(s string, _ bool) (clean, held string) { return s, "" }
	case c.RedactPart == nil:
		c.RedactPart = func(string, bool) (clean, held string) { return "", "" }
	}
	c.Redact, c.RedactPart = withoutEllipses(c.Redact, c.RedactPart)
	c.clean = c.Redact
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	c.sessions, c.unread = newSessions(c.Now), &unreadLog{console: c, logged: map[string]time.Time{}}
	c.others = httpapi.NewFeed(onlyLog{c.Store}, c.Store)
	c.routes()
	if c.done = make(chan struct{}); c.Roster != nil {
		c.watching.Go(func() { c.latencies.watch(c.Roster, c.done) })
	}
	return c
}

// Close ends the streams of conversations that the engine does not run, and the samples of
// latencies. It must be called once.
func (c *Console) Close() {
	close(c.done)
	c.watching.Wait()
	c.others.Close()
}

func (c *Console) routes() {
	conversations, waiting, servers, tools, library, records := conversationPages{c}, waitPages{c}, serverPages{c}, toolPages{c}, libraryPages{c}, recordPages{c}
	c.mux.HandleFunc("GET "+Prefix+"/static/{name}", c.serveAsset)
	c.mux.HandleFunc("GET "+Prefix+"/login", c.loginPage)
	c.mux.HandleFunc("POST "+Prefix+"/login", c.login)
	c.mux.HandleFunc("GET "+Prefix+"/link", c.followLink)
	c.handle("POST /logout", Read, c.logout)
	c.handle("GET /{$}", Read, heavy(c, servers.nowPage))
	c.handle("POST /ensembles/{name}/login", Answer, servers.openLogin)
	c.handle("POST /ensembles/{name}/{what}", Operate, servers.changeEnsemble)
	c.handle("POST /reload", Operate, servers.reload)
	c.handle("GET /conversations", Read, heavy(c, conversations.historyPage))
	c.handle("POST /conversations", Answer, conversations.begin)
	c.handle("GET /conversations/{id}", Read, conversations.conversationPage)
	c.handle("GET /conversations/{id}/raw", Read, conversations.raw)
	c.handle("GET /conversations/{id}/live", Read, conversations.live)
	c.handle("GET /conversations/{id}/images/{number}/{index}", Read, conversations.image)
	c.handle("POST /conversations/{id}/{what}", Answer, conversations.act)
	c.handle("GET /waiting", Read, heavy(c, waiting.waitingPage))
	c.handle("POST /waiting/{id}/{wait}", Answer, waiting.answer)
	c.handle("GET /tools", Read, tools.toolsPage)
	c.handle("GET /tools/{name}", Read, tools.toolPage)
	c.handle("POST /tools/{name}", Answer, tools.callTool)
	c.handle("GET /pins", Audit, tools.pinsPage)
	c.handle("POST /pins", Operate, tools.acceptPin)
	c.handle("GET /library", Read, library.withLibrary(library.libraryPage))
	c.handle("GET "+resourcePath, Read, library.withLibrary(library.resourcePage))
	c.handle("POST "+resourcePath, Answer, library.withLibrary(library.readResource))
	c.handle("GET "+promptPath+"{name}", Read, library.withLibrary(library.promptPage))
	c.handle("POST "+promptPath+"{name}", Answer, library.withLibrary(library.getPrompt))
	c.handle("GET /spend", Read, heavy(c, records.spendPage))
	c.handle("GET /spend.csv", Read, records.spendCSV)
	c.handle("GET /spend.json", Read, records.spendJSON)
	c.handle("GET /audit", Audit, heavy(c, records.auditPage))
	c.handle("GET /audit.jsonl", Audit, records.auditExport)
	c.mux.HandleFunc("GET "+Prefix, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, Prefix+"/", http.StatusSeeOther)
	})
	c.mux.HandleFunc(Prefix+"/", func(w http.ResponseWriter, r *http.Request) {
		c.refuse(w, r, http.StatusNotFound, "There is no such page.")
	})
}

// ServeHTTP implements [http.Handler].
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	header.Set("X-Frame-Options", "DENY")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	if err := c.foreign.Check(r); err != nil {
		c.refuse(w, r, http.StatusForbidden, "This request comes from another site and is refused.")
		return
	}
	c.mux.ServeHTTP(w, r)
}

// handler answers the request of a person.
type handler func(w http.ResponseWriter, r *http.Request, p *person)

// maxForm bounds the body of a request, in bytes.
const maxForm = 2 << 20

// handle routes a pattern, below [Prefix], to a handler for people with a role. Each POST
// must have the token of the session.
func (c *Console) handle(pattern string, least Role, serve handler) {
	method, path, _ := strings.Cut(pattern, " ")
	c.mux.HandleFunc(method+" "+Prefix+path, func(w http.ResponseWriter, r *http.Request) {
		c.identified(w, r, func(w http.ResponseWriter, r *http.Request, p *person) {
			if !p.Role.May(least) {
				c.refuse(w, r, http.StatusForbidden, "Your role does not permit this.")
				return
			}
			if _, err := url.ParseQuery(r.URL.RawQuery); err != nil { // without a filter there would be more than was asked for
				c.refuse(w, r, http.StatusBadRequest, "The address is damaged: a part of its query cannot be read.")
				return
			}
			if r.Method == http.MethodPost {
				r.Body = http.MaxBytesReader(w, r.Body, maxForm)
				if err := r.ParseForm(); err != nil {
					c.refuse(w, r, http.StatusBadRequest, "The form could not be read: it is too large or damaged.")
					return
				}
				if err := p.mayContinue(c, r); err != nil { // the form may have taken long to arrive
					c.refuse(w, r, http.StatusForbidden, "Nothing was done: "+err.Error()+".")
					return
				}
				if !p.session.isForm(r.PostForm.Get(formField)) {
					c.refuse(w, r, http.StatusForbidden, "The form is not from this session. Go back, load the page again, and repeat.")
					return
				}
			}
			serve(w, r, p)
		})
	})
}

// maxPages is how many pages that read much may be made for one person at once, so that one person does
// not slow the others down.
const maxPages = 4

// heavy bounds how many of the pages of a handler, and of the others that it bounds, are made for one person
// at once.
func heavy(c *Console, serve handler) handler {
	return func(w http.ResponseWriter, r *http.Request, p *person) {
		end, ok := c.pages.Open(p.session.owner)
		if !ok {
			w.Header().Set("Retry-After", "1")
			c.refuse(w, r, http.StatusTooManyRequests, fmt.Sprintf("%d pages of yours are being made, which is the limit. Load this page again in a moment.", maxPages))
			return
		}
		defer end()
		serve(w, r, p)
	}
}

// person is the author of a request.
type person struct {
	Caller
	session  *session
	isScript bool // the script of an open page has sent the request
}

// sees reports whether a person may see a conversation.
func (p *person) sees(info history.Info) bool {
	return p.Role.May(Audit) || p.Owner != "" && info.Owner == p.Owner
}

// info returns a conversation that a person may see. For any other it answers 404, so that
// nobody learns whether it exists.
func (c *Console) info(w http.ResponseWriter, r *http.Request, p *person) (history.Info, bool) {
	info, err := c.visible(r.Context(), p, r.PathValue("id"))
	_, isDamaged := errors.AsType[*history.CorruptError](err)
	switch {
	case err == nil:
	case r.Context().Err() != nil && !errors.Is(err, history.ErrNotFound):
		c.fail(w, r, err)
	case errors.Is(err, history.ErrNotFound) || isDamaged && !p.Role.May(Audit):
		c.refuse(w, r, http.StatusNotFound, "There is no such conversation.")
	default: // also for one that does not exist
		c.refuse(w, r, http.StatusServiceUnavailable, "The conversation cannot be read now. "+c.clean.errorText(c.unread.hide(r.Context(), p, err)))
	}
	return info, err == nil
}

// visible returns a conversation that a person may see. For any other, the error is
// [history.ErrNotFound].
func (c *Console) visible(ctx context.Context, p *person, conversation string) (info history.Info, err error) {
	if c.Store == nil || history.CheckID(conversation) != nil {
		return info, history.ErrNotFound
	}
	if info, err = c.Store.Info(ctx, conversation); err == nil && !p.sees(info) && !c.waitsFor(ctx, p, info) {
		return history.Info{}, history.ErrNotFound
	}
	return info, err
}

// waitsFor reports whether the call of a client waits for a person.
func (c *Console) waitsFor(ctx context.Context, p *person, info history.Info) bool {
	one := unfinished{Info: info}
	return p.canBeNamed() && clientcalls.IsApproval(info) && c.readEnd(ctx, &one) == nil && p.isNamed(&one)
}

// cost returns the cost of an exchange, if its model has a price. If the configuration has only
// one price, it is that of all models.
func (c *Console) cost(a canister.Assistant) (budget.Money, bool) {
	policy := c.policy()
	if policy == nil || a.Usage == nil {
		return 0, false
	}
	price, ok := policy.Prices[a.Model]
	if !ok && len(policy.Prices) == 1 {
		for _, only := range policy.Prices {
			price, ok = only, true
		}
	}
	return price.Cost(*a.Usage), ok
}

func (c *Console) policy() *budget.Policy {
	if c.Budget == nil {
		return nil
	}
	return c.Budget()
}
