// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/servedcall"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// selections determines what callers see.
type selections struct {
	auth       *atomic.Pointer[authentication]
	tools      *atomic.Pointer[toolset]
	everything *ensemble.Selection // for callers without a selection of their own
	nothing    *ensemble.Selection
	finding    *finding
	ownNames   bool
	log        *zap.Logger
}

// of returns the part of the roster that a caller may use now.
func (s *selections) of(from *caller) *ensemble.Selection {
	part, ok := s.chosen(s.auth.Load(), from)
	if !ok {
		return s.nothing
	}
	return cmp.Or(part, s.everything)
}

// reaches reports whether the profile of a caller's request exists for the caller.
func (s *selections) reaches(auth *authentication, from *caller) bool {
	if from.profile == "" {
		return true
	}
	_, ok := s.chosen(auth, from)
	return ok
}

// chosen calls Options.Select, or Options.Profile. After a panic the caller may use nothing.
func (s *selections) chosen(auth *authentication, from *caller) (part *ensemble.Selection, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			logevent.Log(from.ctx, s.log, zapcore.ErrorLevel, "the function Select or Profile panicked: its caller may use nothing", logevent.ServeRequestPanicked, zap.Any("panic", p))
			part, ok = nil, false
		}
	}()
	switch {
	case from.profile != "" && auth.profile == nil:
		return nil, false
	case from.profile != "":
		return auth.profile(from.ctx, from.profile)
	case auth.choose == nil:
		return nil, true
	}
	return auth.choose(from.ctx), true
}

// isSelective reports whether callers can have different selections.
func (a *authentication) isSelective() bool { return a.choose != nil || a.profile != nil }

// parts caches the tools that callers with a selection see. It belongs to an
// authentication, so that the selections of an earlier one are forgotten.
type parts struct {
	mu sync.Mutex
	of map[*ensemble.Selection]*toolset
}

// maxParts bounds the selections whose tools or digests are kept.
const maxParts = 1 << 10

// seenBy returns the tools of a toolset that callers with a selection see.
func (s *selections) seenBy(selection *ensemble.Selection, set *toolset) *toolset {
	if selection == s.everything {
		return set
	}
	p := &s.auth.Load().parts
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.of[selection]; known != nil && known.whole == set {
		return known
	}
	if p.of == nil || len(p.of) >= maxParts {
		p.of = make(map[*ensemble.Selection]*toolset)
	}
	some := set.seenBy(selection, s.ownNames)
	p.of[selection] = some
	return some
}

// seenBy returns a toolset of the tools in a selection. Their names are the same as
// without the others.
func (set *toolset) seenBy(selection *ensemble.Selection, ownNames bool) *toolset {
	some := &toolset{catalog: set.catalog, whole: set, byName: make(map[string]*offeredTool), log: zap.NewNop()}
	for _, t := range set.own {
		if selection.Contains(servedcall.Item(t, t.Ensemble())) {
			some.own = append(some.own, t)
		}
	}
	some.fill(slices.DeleteFunc(slices.Clone(set.catalog.Tools()), func(t *ensemble.Tool) bool { return !selection.ContainsTool(t) }), ownNames)
	return some
}

// sdkFor returns the SDK's server for a request without a session. It compares headers with
// the arguments of the tools that it knows (SEP-2243), before it calls receive. A caller
// that does not see a tool gets another server, which knows none.
func (h *handler) sdkFor(r *http.Request) *mcp.Server {
	set, key := h.offers.tools.Load(), r.Header[requestKey]
	if set == nil || len(set.headed) == 0 || len(key) != 1 {
		return h.sdk
	}
	from, ok := h.requests.Load(key[0])
	if !ok {
		return h.unaware
	}
	selection := h.selects.of(from.(*caller))
	if selection == h.selects.everything || r.Header.Get("Mcp-Method") != "tools/call" {
		return h.sdk // these headers are compared with the body first
	}
	name := r.Header.Get("Mcp-Name")
	if t, known := h.selects.seenBy(selection, set).byName[name], set.byName[name]; t != nil && known != nil && known.Tool == t.Tool {
		return h.sdk
	}
	return h.unaware
}

// withCaller attaches the caller of a request for the functions that the SDK calls.
func withCaller(ctx context.Context, from *caller) context.Context {
	return context.WithValue(ctx, callerKey{}, from)
}
