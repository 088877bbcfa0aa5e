// SPDX-License-Identifier: Apache-2.0

// Package sinks passes audit records to several places.
package sinks

import (
	"context"
	"errors"

	"github.com/consort-go/consort/invoker/audit"
)

// All passes each record to several sinks.
type All []audit.Sink

// Record implements [audit.Sink].
func (to All) Record(ctx context.Context, record *audit.Record) error {
	var errs []error
	for _, sink := range to {
		errs = append(errs, sink.Record(ctx, record))
	}
	return errors.Join(errs...)
}
