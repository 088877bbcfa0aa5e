// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/consort-go/consort/internal/logevent"
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
	defaultMaxTools       = 1000

	defaultMaxResources     = 10_000
	defaultMaxSubscriptions = 1000
)

// Options configure an ensemble. Nil, and the zero value of each field, mean the
// default documented at the field.
type Options struct {
	// ConnectTimeout bounds one attempt to connect, including the first listing of the
	// tools, and each later listing, including listings of resources and prompts;
	// default 5 s. It begins when the source is asked to open, after the waits for the
	// end of the previous connection and for Starts.
	ConnectTimeout time.Duration
	// Starts bounds how many of the ensembles that share it start a process at the same
	// time, for sources that are a [Spawner]. If nil, the ensemble shares a bound with
	// all other ensembles of the program that do not set one: twice the number of
	// processors. ConnectTimeout does not run while a start waits.
	Starts *Starts
	// CallTimeout ends a call that shows no sign of life, neither an answer nor a
	// progress report, for this long. Default 30 s.
	CallTimeout time.Duration
	// CallLimit bounds the duration of a call, whatever it reports, including its
	// repetition; default 10 min. Both limits of a call begin when there is a connection,
	// and are suspended while the call is held; see [invoker.Call.Hold].
	CallLimit time.Duration
	// CloseTimeout bounds the graceful end of a connection that is closed; default
	// 10 s.
	CloseTimeout time.Duration
	// Restart determines what happens after a loss or a failed attempt to connect. By
	// default, the next use connects again.
	Restart Restart
	// KeepAlive is how long a connection may be silent before it is pinged, if it is a
	// [Pinger]. The connection is lost when no answer comes within a time that is KeepAlive
	// or 5 s, whichever is longer, but no more than ConnectTimeout. Answers to calls and
	// progress reports count as answers. While a call runs, no ping is sent until one of the
	// running calls has timed out, because many servers answer nothing while they work;
	// but the connection is lost if it is an [Unreader] and says that the peer has read
	// nothing for the same time. 0 disables it.
	KeepAlive time.Duration
	// IdleDisconnect is how long a connection may be without a call or a subscription before it
	// is closed; the next call opens a fresh one. Until then the tools stay on offer as
	// they were last listed. 0 disables it.
	IdleDisconnect time.Duration
	// Refresh is how long a list of tools, resources or prompts is valid if its
	// connection does not say that it has changed. The next use after that lists again
	// and waits for the result; if listing fails, the old list stays valid. The end of this
	// time does not reconnect an ensemble that was disconnected because it was idle. 0
	// disables it, because servers notify of changes; [Ensemble.Refresh] lists at once.
	Refresh time.Duration
	// Trust determines which hints of tools are believed; default TrustReads, and TrustAll
	// for Go functions: [LocalSource] and package ensemble/local.
	Trust Trust
	// MaxTools is the maximum number of tools on offer, in the order of their own
	// names; the others are set aside. Default 1000.
	MaxTools int
	// MaxResources is the maximum number of resources, of templates and of prompts on
	// offer, each; the others are left out. Default 10,000.
	MaxResources int
	// MaxSubscriptions is the maximum number of resources with a subscription at a
	// time; default 1000.
	MaxSubscriptions int
	// Fill passes trusted values ([invoker.Trusted]) to tools as arguments. It maps the
	// name of an argument to the name of a value. It applies to each tool that has such
	// an argument, as [invoker.Fill] does: the model does not see the argument. A call
	// that names the argument is refused, whether or not the tool declares that it
	// takes it.
	Fill map[string]string
	// Needs are the names of required trusted values. Without them, calls of tools,
	// reads of resources and requests for prompts fail with UNAUTHORIZED.
	Needs []string
	// Settings belong to the ensemble; its invokers read them with the function
	// [Settings]. All calls share them, so they must not be modified. May be nil.
	Settings any
	// Allow names the tools, prompts and resources that are offered: globs that are
	// matched against the name of a tool or prompt on its server, the URI of a resource,
	// and the text of a template, in which * matches any run of characters and ? any
	// single one, '/' included. A URI that a template matches must be allowed itself, as
	// it is and in other spellings that a server may read. A list that names only tools hides
	// all resources and prompts; "*://*" allows resources. Empty allows all.
	Allow []string
	// Deny names the items to set aside, in the same way. It takes precedence over Allow.
	Deny []string
	// Screen checks the tools of each listing that Allow and Deny let pass, in the
	// order of their names, and returns errors by the tool's own name: such a tool is set
	// aside with the error as the reason. The definitions have no invisible characters and no
	// arguments of Fill, and must not be modified. If Screen panics, the listing fails. Screen may be called concurrently, and its time counts towards the time
	// limit of the listing. Nil lets all pass; package pins has a Screen.
	Screen func(definitions []*invoker.Definition) map[string]error `json:"-"`
	// OmitInstructions hides the server's advice about its use from models and from the
	// clients of a gateway; see [Catalog.Instructions].
	OmitInstructions bool
	// Required makes [Roster.Catalog], and so a conversation's turn, fail when this
	// ensemble cannot be reached. [Health] is not Ready without it, so that it connects
	// again by itself; see [RestartOnUse].
	Required bool
	// Redact removes secrets from the texts that [Roster.Health] reports about the
	// ensemble, from the server's instructions, from the errors of attempts to connect
	// that are sent to Telemetry, and from the texts about calls that are sent to Logger:
	// a short form of their arguments, and their errors. Secret trusted values are always
	// removed from the latter. Nil leaves texts as they are. Redact may be called
	// concurrently. A text on which it panics is withheld.
	Redact func(text string) string `json:"-"`
	// Telemetry reports the ensemble to OpenTelemetry: its state, until it is closed,
	// and each attempt to connect, including the requests made during it. Calls and
	// listings are reported to the Telemetry of their context, which conversations and
	// servers put there, or to this one if the context has none. If this one is nil,
	// attempts to connect are reported to the Telemetry of the use that began them.
	Telemetry *telemetry.Telemetry
	// Logger receives the log of the ensemble; nil disables logging.
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
	orDefault(&full.ConnectTimeout, defaultConnectTimeout)
	orDefault(&full.CallTimeout, defaultCallTimeout)
	orDefault(&full.CallLimit, DefaultCallLimit)
	orDefault(&full.CloseTimeout, defaultCloseTimeout)
	orDefault(&full.MaxTools, defaultMaxTools)
	orDefault(&full.MaxResources, defaultMaxResources)
	orDefault(&full.MaxSubscriptions, defaultMaxSubscriptions)
	full.Restart = full.Restart.withDefaults()
	full.Logger = logevent.Logger(full.Logger)
	if full.Redact == nil {
		full.Redact = func(text string) string { return text }
	}
	return full
}

func orDefault[T int | time.Duration](value *T, fallback T) {
	if *value <= 0 {
		*value = fallback
	}
}

type settingsKey struct{}

// withSettings returns ctx with the settings, if there are any.
func (o *Options) withSettings(ctx context.Context) context.Context {
	if o.Settings == nil {
		return ctx
	}
	return context.WithValue(ctx, settingsKey{}, o.Settings)
}

// Settings returns the settings of the ensemble whose invoker is running with ctx:
// [Options].Settings, if they have type T.
func Settings[T any](ctx context.Context) (T, bool) {
	settings, ok := ctx.Value(settingsKey{}).(T)
	return settings, ok
}
