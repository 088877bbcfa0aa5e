// SPDX-License-Identifier: Apache-2.0

package findtools

import (
	"context"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/findcall"
	"github.com/consort-go/consort/internal/glob"
	"github.com/consort-go/consort/internal/tokenestimate"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
)

// Options are the options of a [Model].
type Options struct {
	// Tools is the name that [Ensemble] was called with. Required.
	Tools string
	// Pinned are globs for the names of tools that the model is always shown, such as
	// files__read_file or files__*. A star stands for any characters, also none. Those that
	// are too many for the model ([converse.Limiter]) are found like the others. The tools
	// that the client of a conversation brings are shown first.
	Pinned []string
	// Above is how many tokens the definitions of all tools may have, as estimated with
	// three bytes per token, before the model is shown only some of them. 0 means that
	// it never sees all. A model that takes no more than a number of tools
	// ([converse.Limiter]) never sees more than that either.
	Above int64
}

// Model is a model that finds tools by words. All its methods may be called concurrently.
type Model struct {
	inner      converse.Model
	find, call string // the names of the two tools
	pinned     []string
	above      int64
	most       int                          // tools that the inner model takes; 0 means no limit
	searched   *atomic.Bool                 // whether the conversation that it is bound to has begun to search; nil if it is bound to none
	last       *atomic.Pointer[view]        // of the last request
	sent       *atomic.Pointer[sentHistory] // of the conversation that it is bound to; nil if it is bound to none
}

var (
	_ converse.Binder    = (*Model)(nil)
	_ converse.Screener  = (*Model)(nil)
	_ converse.Limiter   = (*Model)(nil)
	_ converse.Describer = (*Model)(nil)
	_ io.Closer          = (*Model)(nil)
)

// New returns a model that is shown few tools and finds the others.
func New(model converse.Model, options *Options) *Model {
	m := &Model{
		inner: model, find: ensemble.NameFor(options.Tools, findcall.FindName), call: ensemble.NameFor(options.Tools, findcall.CallName),
		pinned: slices.Clone(options.Pinned), above: options.Above, last: &atomic.Pointer[view]{},
	}
	if limiter, ok := model.(converse.Limiter); ok {
		m.most = limiter.MaxTools()
	}
	return m
}

// view is what a request shows of a list of tools.
type view struct {
	of        *converse.Toolset
	all, some *converse.Toolset // without the two tools, and with only the client's and the pinned ones besides
	many      bool              // whether all are too many to be shown
	shown     map[string]bool   // the tools of some
}

// viewOf returns the view of a list of tools. The same tools have the same lists as in the
// last request, because the inner model may have cached what it has derived from them.
func (m *Model) viewOf(set *converse.Toolset) *view {
	last := m.last.Load()
	if last != nil && last.of == set {
		return last
	}
	v := &view{of: set, all: &converse.Toolset{}, some: &converse.Toolset{}, shown: m.shownOf(set.Definitions)}
	var tokens int64
	for _, d := range set.Definitions {
		if !m.isOwn(d.Name) {
			v.all.Definitions = append(v.all.Definitions, d)
			tokens += tokenestimate.InText(len(d.Name) + len(d.Description) + len(d.InputSchema))
		}
		if v.shown[d.Name] {
			v.some.Definitions = append(v.some.Definitions, d)
		}
	}
	v.many = tokens > m.above || m.most > 0 && len(v.all.Definitions) > m.most
	if last != nil {
		v.all, v.some = same(last.all, v.all), same(last.some, v.some)
	}
	m.last.Store(v)
	return v
}

// shownOf returns the names of the tools that are shown while the model searches: the two
// tools, then the client's tools, which cannot be found, then the pinned ones, up to the
// number that the inner model takes.
func (m *Model) shownOf(definitions []*invoker.Definition) map[string]bool {
	var own, client, pinned []string
	for _, d := range definitions {
		switch {
		case m.isOwn(d.Name):
			own = append(own, d.Name)
		case isClients(d.Name):
			client = append(client, d.Name)
		case slices.ContainsFunc(m.pinned, func(pattern string) bool { return glob.Match(pattern, d.Name) }):
			pinned = append(pinned, d.Name)
		}
	}
	names := slices.Concat(own, client, pinned)
	if m.most > 0 {
		names = names[:min(len(names), max(m.most, len(own)))]
	}
	shown := map[string]bool{}
	for _, name := range names {
		shown[name] = true
	}
	return shown
}

func (m *Model) isOwn(name string) bool { return name == m.find || name == m.call }

// isClients reports whether a tool is one that the client of a conversation brings. The names
// of all tools of ensembles contain "__", and the names of a client's tools do not.
func isClients(name string) bool { return !strings.Contains(name, "__") }

// same returns the first list if both have the same tools, and the second one otherwise.
func same(before, now *converse.Toolset) *converse.Toolset {
	if slices.Equal(before.Definitions, now.Definitions) {
		return before
	}
	return now
}

// Exchange asks the model that was wrapped.
func (m *Model) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	if request.Tools == nil || !request.Purpose.Answers() {
		return m.inner.Exchange(ctx, request)
	}
	v := m.viewOf(request.Tools)
	asked := *request
	if !m.searches(v, request.History) {
		asked.Tools = v.all
		return m.inner.Exchange(ctx, &asked)
	}
	asked.Tools, asked.History = v.some, m.wrapped(request.History, v)
	return func(yield func(converse.ModelEvent, error) bool) {
		for event, err := range m.inner.Exchange(ctx, &asked) {
			switch own := event.(type) {
			case converse.Delta:
				if own.Invocation == m.call {
					continue // announced with the reply, which has the name of the tool
				}
			case converse.Reply:
				for i, call := range m.unwrapped(own.Invocations) {
					if own.Invocations[i].Name == m.call && !yield(converse.Delta{Invocation: call.Name}, nil) {
						return
					}
				}
				own.Invocations = m.unwrapped(own.Invocations)
				event = own
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

// searches reports whether the model is to search. A conversation that has begun to search
// does not stop, so that its requests go on as they began.
func (m *Model) searches(v *view, history []canister.Canister) bool {
	if m.searched != nil && m.searched.Load() {
		return true
	}
	if !v.many && !slices.ContainsFunc(history, m.isSearch) {
		return false
	}
	if m.searched != nil {
		m.searched.Store(true)
	}
	return true
}

func (m *Model) isSearch(c canister.Canister) bool {
	invocation, ok := c.(canister.Invocation)
	return ok && invocation.Name == m.find
}

// Shown returns the tools of a list that a conversation shows its model from the start, by
// name, and whether the model finds the others. If it does not, the two tools that find
// and call are the only others.
func (m *Model) Shown(set *converse.Toolset) (shown map[string]bool, finds bool) {
	v := m.viewOf(set)
	if v.many {
		return maps.Clone(v.shown), true
	}
	shown = map[string]bool{}
	for _, d := range v.all.Definitions {
		shown[d.Name] = true
	}
	return shown, false
}

// Bind returns a model for one conversation.
func (m *Model) Bind() converse.Model {
	bound := *m
	if binder, ok := m.inner.(converse.Binder); ok {
		bound.inner = binder.Bind()
	}
	bound.searched, bound.sent = &atomic.Bool{}, &atomic.Pointer[sentHistory]{}
	return &bound
}

// Screen returns why the wrapped model cannot be offered a tool.
func (m *Model) Screen(definition *invoker.Definition) error {
	if screener, ok := m.inner.(converse.Screener); ok {
		return screener.Screen(definition)
	}
	return nil
}

// MaxTools returns 0: any number of tools can be found.
func (m *Model) MaxTools() int { return 0 }

// Shortened returns which parts of a tool the wrapped model leaves out.
func (m *Model) Shortened(definition *invoker.Definition) string {
	if limiter, ok := m.inner.(converse.Limiter); ok {
		return limiter.Shortened(definition)
	}
	return ""
}

// Describe returns the description of the wrapped model.
func (m *Model) Describe() telemetry.ModelInfo {
	if describer, ok := m.inner.(converse.Describer); ok {
		return describer.Describe()
	}
	return telemetry.ModelInfo{}
}

// Close closes the wrapped model, if it has a method Close.
func (m *Model) Close() error {
	if closer, ok := m.inner.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}
