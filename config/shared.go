// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/consort-go/consort/config/internal/serving"

	"github.com/consort-go/consort/converse/agenttool"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/internal/loginpages"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/mcpadapter/login"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// shared is what an assembly shares with its successors.
type shared struct {
	latest  atomic.Pointer[Assembly]
	secrets *redact.Growing
	starts  *ensemble.Starts
	tool    *agenttool.Tool // nil if the tool is not served
	gate    *clientcalls.Gate
	calls   *budget.Memory // counts the calls of clients where nothing is stored
	closers []func() error

	pages     *loginpages.Pages
	loggingIn sync.Mutex // guards the rest
	logins    []*login.Client
	pagesAt   string                               // the address of pages
	identify  func(next http.Handler) http.Handler // checks the requests of clients

	issuer serving.Issuer // of the tokens of served clients

	opening     sync.Mutex // guards history and openHistory
	history     history.Store
	openHistory func(context.Context) (history.Store, error) // nil without a [history] table
}

// newAssembly returns an assembly whose log has none of the secrets. It sets the functions
// of the options that redact them.
func newAssembly(secrets []string, o *AssembleOptions) *Assembly {
	if before := o.Previous; before != nil {
		before.shared.secrets.Add(secrets...)
		o.redact, o.Logger = before.Redact, before.Logger
		return &Assembly{Redact: before.Redact, RedactPart: before.RedactPart, Logger: o.Logger, shared: before.shared, former: before.offered()}
	}
	common := &shared{secrets: redact.NewGrowing(secrets...), gate: clientcalls.NewGate(), calls: budget.NewMemory()}
	if clean := common.secrets.Text; o.Replaceable || !common.secrets.IsEmpty() {
		o.redact = clean
		o.Logger = o.Logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core { return redact.Core(core, clean) }))
	}
	common.pages = common.newLoginPages(o)
	return &Assembly{Redact: common.secrets.Text, RedactPart: common.secrets.Part, Logger: o.Logger, shared: common}
}

// latest returns the assembly that has replaced a, or a.
func (a *Assembly) latest() *Assembly {
	if newest := a.shared.latest.Load(); newest != nil {
		return newest
	}
	return a // it is not complete yet
}

// offered returns the servers of a, and former ones that are still offered because the servers that
// replace them have not been connected yet.
func (a *Assembly) offered() []named {
	ensembles := a.Roster.Ensembles()
	return append(slices.Clone(a.servers), slices.DeleteFunc(slices.Clone(a.former), func(n named) bool {
		return !slices.Contains(ensembles, n.made) || slices.ContainsFunc(a.servers, func(s named) bool { return s.made == n.made })
	})...)
}

// unchanged returns the ensemble of a server that has the same settings in a, or nil.
func (a *Assembly) unchanged(n named) *ensemble.Ensemble {
	if a == nil || n.kept == nil {
		return nil
	}
	for _, was := range a.servers {
		if was.path() != n.path() {
			continue
		}
		origin := n.kept.Origin
		n.kept.Origin = was.kept.Origin // lines above it may have moved
		same := reflect.DeepEqual(was.server, n.server)
		n.kept.Origin = origin
		if same {
			return was.made
		}
	}
	return nil
}

// close closes everything that assemblies share, except the roster. The pages use the clients of
// logins, whose logins can be stored in the conversation store.
func (s *shared) close() error {
	return closeAll(append(slices.Clone(s.closers), s.closeHistory, s.closeLogins, s.pages.Close)) // the last one first
}

// loggedIn remembers the login at a server. One that a reload has replaced can still be under
// way.
func (s *shared) loggedIn(client *login.Client) {
	s.loggingIn.Lock()
	defer s.loggingIn.Unlock()
	s.logins = append(s.logins, client)
}

// closeLogins waits until no login is being renewed.
func (s *shared) closeLogins() error {
	s.loggingIn.Lock()
	defer s.loggingIn.Unlock()
	var errs []error
	for _, client := range s.logins {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}
