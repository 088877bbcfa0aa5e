// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"errors"
	"time"

	"github.com/consort-go/consort/internal/exit"
)

// Prune chooses the conversations to delete, in addition to the configuration.
type Prune struct {
	Keep *time.Duration // after the last change; nil means as the configuration says
	Open bool           // also those that do not end with an answer
	Dry  bool           // only list them
}

// Prune deletes expired conversations and lists them.
func (m *Manager) Prune(ctx context.Context, o Prune) error {
	if o.Keep != nil && *o.Keep <= 0 {
		return exit.Usagef("--keep %v: expected a duration longer than 0, such as 720h", *o.Keep)
	}
	retention := m.retention
	retention.ExpireOpen = retention.ExpireOpen || o.Open
	if o.Keep != nil {
		retention.Keep = *o.Keep
	}
	if retention.KeepsAll() {
		return exit.Usagef("no conversation expires: set how long they are kept with --keep DURATION, longer than 0, or with history.keep of the configuration")
	}
	prune := retention.Apply
	if o.Dry {
		prune = retention.Expired
	}
	list, failed := collect(prune(ctx, m.store, time.Now()))
	return errors.Join(failed, ctx.Err(), m.showList(list))
}
