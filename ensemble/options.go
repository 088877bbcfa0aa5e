// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"
)

// The default limits of an [Ensemble].
const (
	DefaultConnectTimeout = 5 * time.Second
	DefaultCallTimeout    = 30 * time.Second
	DefaultCloseTimeout   = 10 * time.Second
)

// Options are the choices of an ensemble. Nil, and the zero value of each
// field, mean the default that the field names.
type Options struct {
	// ConnectTimeout bounds one attempt to connect, the first listing of the
	// tools included, and each later listing; default 5 s.
	ConnectTimeout time.Duration
	// CallTimeout bounds one call; default 30 s.
	CallTimeout time.Duration
	// CloseTimeout bounds how long a connection that is closed is given to
	// end politely; default 10 s.
	CloseTimeout time.Duration
	// Settings belong to the ensemble; its invokers read them with the
	// function [Settings]. They are shared by all calls, so nobody changes
	// them. May be nil.
	Settings any
	// Allow names the tools that are offered: globs over the tool's own name,
	// in which * matches any run of characters and ? any one, '/' included.
	// Empty allows all.
	Allow []string
	// Deny names the tools that are set aside, in the same way. It wins over
	// Allow.
	Deny []string
	// Required makes it an error of [Roster.Catalog], and so of a
	// conversation's turn, when this ensemble cannot be reached.
	Required bool
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
	if full.ConnectTimeout <= 0 {
		full.ConnectTimeout = DefaultConnectTimeout
	}
	if full.CallTimeout <= 0 {
		full.CallTimeout = DefaultCallTimeout
	}
	if full.CloseTimeout <= 0 {
		full.CloseTimeout = DefaultCloseTimeout
	}
	if full.Logger == nil {
		full.Logger = zap.NewNop()
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
