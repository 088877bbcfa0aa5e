// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/forked"
	"github.com/consort-go/consort/internal/logevent"
	"go.uber.org/zap"
)

// search looks through the store for unfinished conversations: once, or repeatedly if
// other processes share the store and may leave work behind. A search that fails is
// repeated until the store can be searched. If single conversations cannot be read it is
// repeated Options.Retries times, because most such errors stay.
func (l *Local) search() {
	filter, seen := history.Filter{Open: true}, map[string]time.Time{}
	for failed, unread := 0, 0; ; {
		began := time.Now()
		if l.opts.Others > 0 {
			filter.Until = began.Add(-l.opts.Others)
		}
		pause := l.opts.Others
		switch isAway, isUnread := l.scheduleMatches(filter, seen); {
		case isAway:
			pause = l.opts.pause(failed)
			failed++
		case isUnread && unread < l.opts.Retries:
			pause = l.opts.pause(unread)
			failed, unread = 0, unread+1
		case l.opts.Others == 0:
			return
		default:
			filter.Since = filter.Until.Add(-Skew) // the clock of the store may be late
			if failed = 0; !isUnread {
				unread = 0
			}
		}
		if wait(l.lifetime, l.lifetime, pause) != nil {
			return
		}
	}
}

// scheduleMatches schedules the conversations that match a filter, except forks that have not
// begun. At first, without Since, it also schedules conversations that wait or have an answer as
// their last canister, whenever they changed: another process rarely asks a model for them. It reports whether the store could not be searched, and whether
// single conversations could not be read but perhaps can be later. seen has the times of the changes for which conversations were scheduled before: each is
// scheduled once, and without other processes once whatever changes later. It drops conversations
// that cannot match again.
func (l *Local) scheduleMatches(filter history.Filter, seen map[string]time.Time) (isAway, isUnread bool) {
	defer func() {
		if value := recover(); value != nil {
			isAway = true
			l.panicked("", fmt.Errorf("engine: %w", contain.Recovered("the store", value)))
		}
	}()
	maps.DeleteFunc(seen, func(_ string, changed time.Time) bool { return changed.Before(filter.Since) })
	listed := filter
	if filter.Since.IsZero() {
		listed.Until = time.Time{}
	}
	for info, err := range l.store.List(l.lifetime, listed) {
		if err == nil {
			isYoung := !filter.Until.IsZero() && !info.Changed.Before(filter.Until)
			if forked.IsUntouched(info) || isYoung && info.Last != canister.KindWait && info.Last != canister.KindAnswer {
				continue
			}
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
		switch {
		case Permanent(err): // it concerns a single conversation, which stays as it is
		case info.ID == "":
			isAway = true
		default:
			isUnread = true
		}
	}
	return isAway, isUnread
}
