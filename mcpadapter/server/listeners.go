// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/sha256"
	"maps"
	"sync"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// listKind is one of the lists whose changes clients are notified of.
type listKind int

const (
	toolList listKind = iota
	resourceList
	promptList
)

// digest identifies the contents of a list.
type digest [sha256.Size]byte

// listKinds are the notifications of changed lists (MCP 2025-11-25, server/tools § List
// Changed Notification, and the same for resources and prompts).
var listKinds = map[string]listKind{
	"notifications/tools/list_changed":     toolList,
	"notifications/resources/list_changed": resourceList,
	"notifications/prompts/list_changed":   promptList,
}

// listeners are the sessions that may receive notifications. The SDK notifies all of them
// at once; filter drops what does not concern a caller.
type listeners struct {
	selects *selections
	notify  func(listKind) // makes the SDK notify all sessions
	watched *sync.WaitGroup

	mu sync.Mutex
	of map[*mcp.ServerSession]*listener
	// updating is the ensemble that reports an updated resource, while the SDK sends it.
	updating string

	told [promptList + 1]map[*ensemble.Selection]digest // of the lists that clients know

	dirty   [promptList + 1]bool // lists that have changed and are not compared yet
	compare chan struct{}        // holds a value while there are any
}

// listener is one session.
type listener struct {
	from *caller
	seen [promptList + 1]*ensemble.Selection // whose list the client knows
	due  [promptList + 1]bool                // the list has changed, and the client was not told
}

// add adds the session of a request until it ends.
func (l *listeners) add(of mcp.Session, from *caller) {
	session, ok := of.(*mcp.ServerSession)
	if !ok {
		return
	}
	selection := l.selects.of(from)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[session] != nil {
		return
	}
	l.of[session] = &listener{from: from, seen: [...]*ensemble.Selection{selection, selection, selection}}
	l.watched.Go(func() {
		_ = session.Wait()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.of, session)
	})
}

// filter drops the notifications that do not concern the caller of a session, because their
// subject is not part of its selection.
func (l *listeners) filter(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		kind, isList := listKinds[method]
		updated, isUpdate := req.GetParams().(*mcp.ResourceUpdatedNotificationParams)
		if !l.selects.auth.Load().isSelective() || !isList && !isUpdate {
			return next(ctx, method, req)
		}
		session, _ := req.GetSession().(*mcp.ServerSession)
		if isList && !l.take(session, kind) || isUpdate && !l.mayKnow(session, updated.URI) {
			return nil, nil
		}
		return next(ctx, method, req)
	}
}

// take reports whether a session is due to hear of a changed list, once.
func (l *listeners) take(session *mcp.ServerSession, kind listKind) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.of[session]
	if one == nil || !one.due[kind] {
		return false
	}
	one.due[kind] = false
	return true
}

// mayKnow reports whether a session may hear that a resource was updated.
func (l *listeners) mayKnow(session *mcp.ServerSession, uri string) bool {
	l.mu.Lock()
	one, by := l.of[session], l.updating
	l.mu.Unlock()
	return one != nil && l.selects.of(one.from).Contains(ensemble.Item{Kind: ensemble.ResourceItem, Ensemble: by, Name: uri})
}

// changed notifies the sessions with everything of a changed list, and has it compared for
// the others.
func (l *listeners) changed(kind listKind) {
	if l.selects.auth.Load().isSelective() {
		everything := l.selects.everything
		l.mu.Lock()
		for _, one := range l.of {
			one.due[kind] = one.due[kind] || l.selects.of(one.from) == everything && one.seen[kind] == everything
		}
		l.mu.Unlock()
		l.recompare(kind)
	}
	l.notify(kind)
}

// recompare has lists compared with what clients know.
func (l *listeners) recompare(kinds ...listKind) {
	l.mu.Lock()
	for _, kind := range kinds {
		l.dirty[kind] = true
	}
	l.mu.Unlock()
	select {
	case l.compare <- struct{}{}:
	default:
	}
}

// compareLists notifies the sessions whose part of a list has changed, until ctx ends.
func (l *listeners) compareLists(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.compare:
		}
		for kind := range promptList + 1 {
			l.compareList(ctx, kind)
		}
	}
}

func (l *listeners) compareList(ctx context.Context, kind listKind) {
	everything := l.selects.everything
	l.mu.Lock()
	dirty := l.dirty[kind]
	l.dirty[kind] = false
	all := make(map[*listener]*ensemble.Selection)
	for _, one := range l.of {
		if selection := l.selects.of(one.from); selection != everything || one.seen[kind] != everything {
			all[one] = selection
		}
	}
	l.mu.Unlock()
	if !dirty {
		return
	}
	c := &comparison{of: l, ctx: ctx, kind: kind, digests: make(map[*ensemble.Selection]digest)}
	isDue := false
	for one, selection := range all {
		isDue = c.compare(one, selection) || isDue
	}
	if c.keep(); isDue {
		l.notify(kind)
	}
}

// compareTimeout bounds how long a comparison waits for the lists of servers.
const compareTimeout = 30 * time.Second

// comparison compares the parts of a list with what clients know.
type comparison struct {
	of      *listeners
	ctx     context.Context
	kind    listKind
	digests map[*ensemble.Selection]digest
}

// compare reports whether the client of a session is due to hear of a change.
func (c *comparison) compare(one *listener, selection *ensemble.Selection) bool {
	now, err := c.digest(selection)
	l := c.of
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := one.seen[c.kind]
	told, known := l.told[c.kind][seen]
	others := l.selects.everything
	due := seen != selection && (seen == others || selection == others) || known && (err != nil || told != now)
	one.seen[c.kind] = selection
	one.due[c.kind] = one.due[c.kind] || due
	return due
}

func (c *comparison) digest(selection *ensemble.Selection) (digest, error) {
	if known, ok := c.digests[selection]; ok {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(c.ctx, compareTimeout)
	defer cancel()
	now, err := c.of.selects.digest(ctx, selection, c.kind)
	if err == nil {
		c.digests[selection] = now
	}
	return now, err
}

// keep remembers the digests for the next comparison.
func (c *comparison) keep() {
	l := c.of
	l.mu.Lock()
	defer l.mu.Unlock()
	for selection, now := range c.digests {
		l.tell(selection, c.kind, now)
	}
}

// tell remembers the digest of a list that clients with a selection know; l.mu is held.
func (l *listeners) tell(selection *ensemble.Selection, kind listKind, now digest) {
	known := l.told[kind]
	if known == nil {
		known = make(map[*ensemble.Selection]digest)
		l.told[kind] = known
	}
	if len(known) >= maxParts { // forget earlier configurations
		used := make(map[*ensemble.Selection]bool)
		for _, one := range l.of {
			used[one.seen[kind]] = true
		}
		maps.DeleteFunc(known, func(s *ensemble.Selection, _ digest) bool { return !used[s] })
	}
	known[selection] = now
}

// noteTold remembers that the part of a list was sent to a caller, or that a caller listens to
// its changes. Afterwards compareLists keeps the digest up to date.
func (l *listeners) noteTold(ctx context.Context, selection *ensemble.Selection, kind listKind) {
	if selection == l.selects.everything {
		return
	}
	l.mu.Lock()
	_, known := l.told[kind][selection]
	l.mu.Unlock()
	if known {
		return
	}
	now, err := l.selects.digest(ctx, selection, kind)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known = l.told[kind][selection]; !known {
		l.tell(selection, kind, now)
	}
}

// listen prepares a request to listen to changes: what changes from now on concerns it.
// toolset builds the list of tools.
func (l *listeners) listen(ctx context.Context, req mcp.Request, from *caller, toolset func(context.Context) (*toolset, error)) {
	l.add(req.GetSession(), from)
	p, ok := req.GetParams().(*mcp.SubscriptionsListenParams)
	selection := l.selects.of(from)
	if !ok || p.Notifications == nil || selection == l.selects.everything {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, instructionsWait)
	defer cancel()
	if p.Notifications.ToolsListChanged {
		if _, err := toolset(ctx); err == nil {
			l.noteTold(ctx, selection, toolList)
		}
	}
	if p.Notifications.ResourcesListChanged {
		l.noteTold(ctx, selection, resourceList)
	}
	if p.Notifications.PromptsListChanged {
		l.noteTold(ctx, selection, promptList)
	}
}

// digest returns a digest of the part of a list.
func (s *selections) digest(ctx context.Context, selection *ensemble.Selection, kind listKind) (digest, error) {
	hash := sha256.New()
	switch kind {
	case toolList:
		if set := s.tools.Load(); set != nil {
			for _, t := range s.seenBy(selection, set).tools {
				_, _ = hash.Write(t.listed)
			}
		}
	case resourceList:
		all, err := selection.Resources(ctx)
		if err != nil {
			return digest{}, err
		}
		for _, r := range all.Resources {
			_, _ = hash.Write(listedResource(r))
		}
		for _, t := range all.Templates {
			_, _ = hash.Write(listedTemplate(t))
		}
	case promptList:
		all, err := selection.Prompts(ctx)
		if err != nil {
			return digest{}, err
		}
		for _, p := range all.Prompts {
			_, _ = hash.Write(listedPrompt(p.FullName(), p))
		}
	}
	return digest(hash.Sum(nil)), nil
}
