// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"github.com/consort-go/consort/internal/logevent"
	"go.uber.org/zap"
)

// The names of a worker's log events; docs/temporal.md lists them.
var (
	eventSweepFailed  = named("temporal.sweep.failed")
	eventSweepWoke    = named("temporal.sweep.woke")
	eventSDKSaid      = named("temporal.sdk.said")
	eventWorkerFailed = named("temporal.worker.failed")
	eventTurnRetried  = named("temporal.turn.retried")
	eventTurnFailed   = named("temporal.turn.failed")
	eventTurnPanicked = named("temporal.turn.panicked")
	eventCloseFailed  = named("temporal.conversation.close.failed")
)

func named(name string) zap.Field { return zap.String(logevent.Key, name) }
