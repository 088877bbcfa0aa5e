// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
)

// The default limits of an [Ensemble].
const (
	defaultConnectTimeout = 5 * time.Second
	defaultCallTimeout    = 30 * time.Second
	DefaultCallLimit      = 10 * time.Minute
	defaultCloseTimeout   = 10 * time.Second
	DefaultMaxTools       = 1000

	DefaultMaxResources     = 10_000
	defaultMaxSubscriptions = 1000
)

// Options are the choices of an ensemble. Nil, and the zero value of each
// field, mean the default that the field names.
type Options struct {
	// ConnectTimeout bounds one attempt to connect, the first listing of the
	// tools included, and each later listing, that of resources and prompts
	// too; default 5 s. It begins when the source is asked to open:
	// the end of the connection before, and Starts, are waited for first.
	ConnectTimeout time.Duration
	// Starts bounds how many ensembles start a process at a time, for sources
	// that are a [Spawner]: those that share it. Nil is the bound that all
	// ensembles of the program share which are given none: twice the number of
	// its processors. ConnectTimeout does not run while a start waits.
	Starts *Starts
	// CallTimeout ends a call that gives no sign of life for so long: neither
	// an answer nor a report of progress. Default 30 s.
	CallTimeout time.Duration
	// CallLimit ends a call that takes so long, whatever it reports, its
	// repetition included; default 10 min. Both limits of a call stand still
	// while it is held; see [invoker.Call.Hold].
	CallLimit time.Duration
	// CloseTimeout bounds how long a connection that is closed is given to
	// end politely; default 10 s.
	CloseTimeout time.Duration
	// Restart says what happens after a loss or a failed attempt to connect;
	// by default the next use connects again.
	Restart Restart
	// KeepAlive is how long a connection may be silent before it is pinged, if
	// it is a [Pinger]. It is lost when no answer comes within the same time, but
	// no less than 5 s and no more than ConnectTimeout. Answers to calls and
	// reports of progress count as answers. While a call runs, no ping is sent
	// until one has waited in vain, because many servers answer nothing while
	// they work; but an [Unreader] that has read nothing for that time is lost.
	// 0 is off.
	KeepAlive time.Duration
	// IdleDisconnect is how long a connection may be without a call before it
	// is closed; the next call opens a fresh one. The tools stay on offer
	// meanwhile, as they were listed last. 0 is off.
	IdleDisconnect time.Duration
	// Refresh is how long a list of tools, resources or prompts stands although
	// its connection has not said that it has changed: the next use after that
	// asks anew and waits for the answer, or for a failure, after which the old
	// list stands. It does not wake an ensemble that was disconnected for want of
	// use. 0 is off, because servers tell of changes; [Ensemble.Refresh] asks at
	// once.
	Refresh time.Duration
	// Trust says which tools' hints are believed when a call may or may not
	// have taken effect; default TrustReads, and TrustAll for [LocalSource].
	Trust Trust
	// MaxTools is how many tools are offered at most, in the order of their
	// own names; the others are set aside. Default 1000.
	MaxTools int
	// MaxResources is how many resources, how many templates and how many
	// prompts are offered at most; the others are left out. Default 10,000.
	MaxResources int
	// MaxSubscriptions is to how many resources there may be a subscription at
	// a time; default 1000.
	MaxSubscriptions int
	// Fill names trusted values ([invoker.Trusted]) that are given to tools as
	// arguments: the name of the argument, and that of the value. It holds for
	// each tool that has such an argument, as [invoker.Fill] does: the model
	// does not see it. A call that names it is refused, whether the tool says
	// that it takes it or not.
	Fill map[string]string
	// Needs are the names of trusted values without which no tool of the
	// ensemble is called, no resource read and no prompt got: UNAUTHORIZED.
	Needs []string
	// Settings belong to the ensemble; its invokers read them with the
	// function [Settings]. They are shared by all calls, so nobody changes
	// them. May be nil.
	Settings any
	// Allow names the tools that are offered: globs over the tool's own name,
	// in which * matches any run of characters and ? any one, '/' included.
	// Empty allows all. Neither Allow nor Deny filters resources and prompts.
	Allow []string
	// Deny names the tools that are set aside, in the same way. It wins over
	// Allow.
	Deny []string
	// Screen looks at the tools of each listing that Allow and Deny let pass,
	// in the order of their names, and returns errors by name: such a tool is
	// set aside with the error as the reason. The definitions are as models see
	// them, and nobody changes them. It may be called concurrently, and takes
	// of the time that listing has. Nil lets all pass; package pins has one.
	Screen func(definitions []*invoker.Definition) map[string]error
	// OmitInstructions keeps what the server says about its use from models and
	// from the clients of a gateway; see [Catalog.Instructions].
	OmitInstructions bool
	// Required makes it an error of [Roster.Catalog], and so of a
	// conversation's turn, when this ensemble cannot be reached.
	Required bool
	// Redact takes what is secret out of the texts that [Roster.Health] tells
	// of the ensemble, and out of what Logger is told of calls: a short form of
	// their arguments, and how they failed. Secret trusted values are taken out
	// of the latter in any case. Nil leaves texts as they are. It may be called
	// concurrently. A text on which it panics is withheld.
	Redact func(text string) string
	// Telemetry shows the ensemble to OpenTelemetry: how it stands, until it is
	// closed, and each attempt to connect, with what is asked meanwhile. Calls
	// and listings are shown to the Telemetry of their context, which
	// conversations and servers put there, and to this one if it has none; and
	// so are attempts to connect to that of the use which began them, if this
	// one is nil.
	Telemetry *telemetry.Telemetry
	// Logger takes what is worth knowing; nil is silent.
	Logger *zap.Logger
}

// withDefaults returns a copy with the defaults filled in.
func (o *Options) withDefaults() Options {
	var full Options
	if o != nil {
		full = *o
	}
	full.Allow = slices.Clone(full.Allow)
	full.Deny = slices.Clone(full.Deny)
	full.Fill = maps.Clone(full.Fill)
	full.Needs = slices.Clone(full.Needs)
	if full.ConnectTimeout <= 0 {
		full.ConnectTimeout = defaultConnectTimeout
	}
	if full.CallTimeout <= 0 {
		full.CallTimeout = defaultCallTimeout
	}
	if full.CallLimit <= 0 {
		full.CallLimit = DefaultCallLimit
	}
	full.Restart = full.Restart.withDefaults()
	if full.MaxTools <= 0 {
		full.MaxTools = DefaultMaxTools
	}
	if full.MaxResources <= 0 {
		full.MaxResources = DefaultMaxResources
	}
	if full.MaxSubscriptions <= 0 {
		full.MaxSubscriptions = defaultMaxSubscriptions
	}
	if full.CloseTimeout <= 0 {
		full.CloseTimeout = defaultCloseTimeout
	}
	full.Logger = event.Logger(full.Logger)
	if full.Redact == nil {
		full.Redact = func(text string) string { return text }
	}
	return full
}

type settingsKey struct{}

// Settings returns the settings of the ensemble whose invoker is running with
// ctx: [Options].Settings, if they are of type T.
func Settings[T any](ctx context.Context) (T, bool) {
	settings, ok := ctx.Value(settingsKey{}).(T)
	return settings, ok
}
