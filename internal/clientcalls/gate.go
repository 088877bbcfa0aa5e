// SPDX-License-Identifier: Apache-2.0

package clientcalls

import (
	"cmp"
	"context"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	mcpserver "github.com/consort-go/consort/mcpadapter/server"
	"go.uber.org/zap"
)

// Gate runs the calls of clients. One process has one, also when its configuration is
// replaced. Its methods may be called concurrently.
type Gate struct {
	mu      sync.Mutex
	running map[string]bool // intents of calls that this process makes now
	asking  map[string]bool // approvals about which a client's user is being asked
}

// NewGate returns a gate without calls.
func NewGate() *Gate {
	return &Gate{running: map[string]bool{}, asking: map[string]bool{}}
}

// Demand says how a call is approved.
type Demand struct {
	// Who is the only person who may answer. If it is empty, the user of the client is
	// asked, if the client can ask, and everyone who can write to the store may answer.
	Who string
	// Within is how long an answer may take, and how long it then holds. Zero means
	// [DefaultWithin].
	Within time.Duration
}

// DefaultWithin is the default of [Demand].Within.
const DefaultWithin = 24 * time.Hour

// Rules are the part of a configuration that decides about calls.
type Rules struct {
	// Demand returns whether a call of a tool needs an approval. ctx carries the name and
	// the trusted values of the client.
	Demand func(ctx context.Context, tool ensemble.Item) (demand Demand, needed bool)
	// Store opens the store in which approvals wait. It returns nil if there is none.
	Store func(context.Context) (history.Store, error)
	// Others is how long another process may make a call without a sign of it; 0 if no other process can.
	Others time.Duration
	// Address identifies the server of an ensemble, by its settings. ok is false if the
	// ensemble is not part of the configuration.
	Address func(*ensemble.Ensemble) (address string, ok bool)
	// Budgets returns the budgets of a client, which has one account for each Window, in the
	// ledger that Ledger returns.
	Budgets func(ctx context.Context) []Budget
	Ledger  func() budget.Ledger
	// Logger logs requests for approvals and their outcome. Required.
	Logger *zap.Logger
}

// Invoke makes a call, or returns why it is not made. It is for [mcpserver.Options].
func (g *Gate) Invoke(ctx context.Context, rules *Rules, call *mcpserver.ToolCall) (invoker.Output, error) {
	settle, err := rules.reserve(ctx)
	if err != nil {
		return invoker.Output{}, err
	}
	made := false
	defer func() { settle(made) }()
	demand, needed := rules.Demand(ctx, call.Item)
	if !needed {
		made = true
		return call.Make(ctx)
	}
	a, err := g.newApproval(ctx, rules, demand, call)
	if err != nil {
		return invoker.Output{}, err
	}
	a.made = &made
	return a.run(ctx)
}

// begin adds a key to a set; false if it was there already.
func (g *Gate) begin(set map[string]bool, key string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if set[key] {
		return false
	}
	set[key] = true
	return true
}

func (g *Gate) end(set map[string]bool, key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(set, key)
}

func (g *Gate) isRunning(intent string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running[intent]
}

// OwnerPrefix begins the [history.Info].Owner of approvals.
const OwnerPrefix = "approval-"

// IsApproval reports whether a conversation is the approval of a client's call. If a
// process dies while it stores the first canisters of one, it has no owner yet.
func IsApproval(info history.Info) bool {
	return strings.HasPrefix(info.Owner, OwnerPrefix) || info.Owner == "" && approvalID.MatchString(info.ID)
}

// MayBeOwn reports whether a client made the call of an approval, by its identity or its name
// ([access.IdentityFrom], [access.NameFrom]), or whether nobody knows who made it: a client has
// several identities if it comes with and without a certificate, or with other claims.
func MayBeOwn(info history.Info, identity, name string) bool {
	return info.Owner == "" || info.Owner == ownerOf(identity) || name != "" && strings.HasPrefix(info.Title, callsOf(name))
}

// ownerOf returns the owner of the approvals of a client.
func ownerOf(identity string) string { return OwnerPrefix + cmp.Or(identity, "anyone") }

// callsOf begins the titles of the approvals of a client.
func callsOf(name string) string { return cmp.Or(name, "a client") + " calls " }

var approvalID = regexp.MustCompile("^ask-[a-z2-7]{20}$")
