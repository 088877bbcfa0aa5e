// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// airline has settings that the model neither sees nor chooses.
type airline struct{ MaxItems int }

type luggage struct {
	Items []string `json:"items" jsonschema:"what to check in"`
}

// checkIn finds the settings of its ensemble and the current call in its context.
func checkIn(ctx context.Context, l luggage) (string, error) {
	limits, _ := ensemble.Settings[airline](ctx)
	if len(l.Items) > limits.MaxItems {
		return "", invoker.Failf(invoker.Denied, "%d items are too many: %d may fly", len(l.Items), limits.MaxItems)
	}
	call := invoker.CallFrom(ctx)
	for i, item := range l.Items {
		call.Report(invoker.Progress{Done: float64(i + 1), Total: float64(len(l.Items)), Message: item})
	}
	return fmt.Sprintf("%d items are checked in", len(l.Items)), nil
}
