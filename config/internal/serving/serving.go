// SPDX-License-Identifier: Apache-2.0

// Package serving reads the table [serve] of a configuration, and makes the options of
// servers from it: who the clients are, what each may use, and how its calls are decided.
package serving

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/consort-go/consort/config/serve"

	mcpserver "github.com/consort-go/consort/mcpadapter/server"

	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"go.uber.org/zap"
)

// offer is a [serve] table in use.
type offer struct{ *serve.Options }

// Options are the parts with which servers are made. Gate and Issuer are required.
type Options struct {
	Roster *ensemble.Roster
	Tools  Tools
	// Own are the tools of the servers themselves.
	Own []invoker.Invoker
	// Trusted are the values of the client over standard input and output.
	Trusted   []invoker.Value
	Audit     *audit.Trail
	Logger    *zap.Logger
	Telemetry *telemetry.Telemetry
	// Calls decide about the calls of clients, in Gate; its Demand and Budgets are set here.
	Calls  clientcalls.Rules
	Gate   *clientcalls.Gate
	Issuer *Issuer
}

// Tools describe the tools that the program itself offers.
type Tools struct {
	// Withheld reports whether clients do not get an item; nil if they get all.
	Withheld func(*ensemble.Item) bool
	// ReachOthers reports whether an item is a tool through which other items are reached,
	// whatever the rules say about them.
	ReachOthers func(*ensemble.Item) bool
	// Pinned are globs for the tools that clients see even if they find the others.
	Pinned []string
}

// withholds reports whether clients do not get an item.
func (t *Tools) withholds(item *ensemble.Item) bool {
	return t.Withheld != nil && t.Withheld(item)
}

// Servers are the options of the servers for the clients.
type Servers struct {
	MCP  *mcpserver.Options
	GRPC *grpctool.ServerOptions
	// Certified are the clients that are identified by a certificate.
	Certified []Certified
}

// Certified is a client that is identified by a certificate.
type Certified struct {
	Name    string
	Trusted []invoker.Value
}

// New returns the options of servers. Servers at an address do not get the values of the
// trusted table, because their clients can be different people. The error is about keys.
func New(options *serve.Options, with *Options) (*Servers, error) {
	s := offer{options}
	copied := s.Options.Options
	made := &Servers{MCP: &copied}
	o := made.MCP
	o.Token, o.Tokens, o.Trusted, o.Tools = s.Token.Reveal(), nil, nil, with.Own
	o.Audit, o.Logger, o.Telemetry = with.Audit, with.Logger, with.Telemetry
	o.AccessLog = s.Listens() && !s.NoAccessLog
	if !s.Listens() {
		o.Trusted = with.Trusted
	}
	errs := []error{s.tokens(made)}
	var err, cannotAsk error
	o.Select, o.Profile, err = s.selections(with.Roster, with.Tools)
	o.Finds, o.Pinned = s.finds, with.Tools.Pinned
	o.Invoke, cannotAsk = s.invokeFunc(with)
	o.ResourceMetadata = s.metadata()
	made.GRPC = overGRPC(o)
	errs = append(errs, err, cannotAsk, s.byIssuer(with, made), s.withTLS(made))
	return made, errors.Join(errs...)
}

// tokens sets the tokens of the clients, and their trusted values.
func (s offer) tokens(made *Servers) error {
	var errs []error
	for i, client := range s.Clients {
		path := fmt.Sprintf("serve.clients[%d]", i)
		trusted, err := grammar.TrustedValues(path+".trusted", client.Trusted)
		if client.Certificate != "" {
			made.Certified = append(made.Certified, Certified{client.Name, trusted})
			continue // withTLS reports the problem
		}
		hash := hashOf(&client)
		if hash == [sha256.Size]byte{} {
			err = errors.Join(err, grammar.About(path+".token", errors.New("missing")))
		}
		errs = append(errs, err)
		made.MCP.Tokens = append(made.MCP.Tokens, mcpserver.BearerToken{
			Token: client.Token.Reveal(), Hash: parseHash(client.TokenHash), Name: client.Name, Trusted: trusted, Expires: client.Expires,
		})
	}
	return errors.Join(errs...)
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
