// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"time"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/logevent"
	"go.uber.org/zap"
)

// search looks through the store for unfinished conversations: once, or repeatedly if
// other processes share the store and may leave work behind. A search that fails is
// repeated until the whole store was searched.
func (l *Local) search() {
	filter, seen := history.Filter{Open: true}, map[string]time.Time{}
	for n := 0; ; {
		began := time.Now()
		if l.opts.Others > 0 {
			filter.Until = began.Add(-l.opts.Others)
		}
		if l.scheduleMatches(filter, seen) {
			if l.opts.Others > 0 { // the clock of the store may be late
				filter.Since = filter.Until.Add(-Skew)
			}
			n = 0
		} else {
			n++
		}
		pause := l.opts.Others
		switch {
		case n > 0:
			pause = l.opts.pause(n - 1)
		case l.opts.Others == 0:
			return
		}
		if wait(l.lifetime, l.lifetime, pause) != nil {
			return
		}
	}
}

// scheduleMatches schedules the conversations that match a filter, and reports whether the whole
// store was searched. seen has the times of the changes for which conversations were scheduled
// before: each is scheduled once, and without other processes once whatever changes later. It
// drops conversations that cannot match again.
func (l *Local) scheduleMatches(filter history.Filter, seen map[string]time.Time) (whole bool) {
	defer func() {
		if value := recover(); value != nil {
			whole = false
			l.panicked("", fmt.Errorf("engine: %w", contain.Recovered("the store", value)))
		}
	}()
	whole = true
	maps.DeleteFunc(seen, func(_ string, changed time.Time) bool { return changed.Before(filter.Since) })
	for info, err := range l.store.List(l.lifetime, filter) {
		if err == nil {
			if changed, ok := seen[info.ID]; !ok || l.opts.Others > 0 && !changed.Equal(info.Changed) {
				l.scheduler.schedule(info.ID, tries{})
			}
			if l.opts.Others == 0 || !info.Changed.Before(filter.Until.Add(-Skew)) {
				seen[info.ID] = info.Changed
			}
			continue
		}
		err = contain.Error(err)
		if l.lifetime.Err() == nil {
			l.opts.Logger.Error("the store could not be searched for unfinished conversations", logevent.SearchFailed, zap.Error(err))
		}
		whole = whole && Permanent(err) // permanent errors concern single conversations, which stay as they are
	}
	return whole
}
