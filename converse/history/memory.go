// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
)

// Memory is a [Store] that lasts as long as its process.
type Memory struct {
	mu    sync.Mutex
	kept  map[string]*kept
	clock func() time.Time
}

// kept is a conversation.
type kept struct {
	info      Info
	canisters []canister.Canister // only ever appended to: readers and forks share it
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{kept: map[string]*kept{}, clock: time.Now} }

// Read implements [Log].
func (m *Memory) Read(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
	return func(yield func(canister.Canister, error) bool) {
		m.mu.Lock()
		var list []canister.Canister
		if k := m.kept[conversation]; k != nil {
			list = k.canisters
		}
		m.mu.Unlock()
		for _, c := range list[min(max(after, 0), len(list)):] {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// Append implements [Log].
func (m *Memory) Append(ctx context.Context, conversation string, length int, canisters ...canister.Canister) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kept[conversation]
	if k == nil {
		k = &kept{info: Info{ID: conversation}}
	}
	todo, err := Add(conversation, len(k.canisters), length, canisters, func(place int) (string, error) {
		return k.canisters[place].Header().ID, nil
	})
	if !todo {
		return err
	}
	k.info.Changed = m.clock()
	if k.info.Created.IsZero() {
		k.info.Created = k.info.Changed
	}
	k.canisters = append(k.canisters, canisters...)
	k.count()
	m.kept[conversation] = k
	return nil
}

// count brings the info up to date with the canisters.
func (k *kept) count() {
	k.info.Length = len(k.canisters)
	if k.info.Length > 0 {
		k.info.Last = k.canisters[k.info.Length-1].Kind()
	}
}

// List implements [Store].
func (m *Memory) List(ctx context.Context, filter Filter) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for _, info := range m.matching(filter) {
			if err := ctx.Err(); err != nil {
				yield(Info{}, err)
				return
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (m *Memory) matching(filter Filter) []Info {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []Info
	for _, k := range m.kept {
		if filter.Allows(k.info) && k.says(filter.Words()) {
			found = append(found, k.copy())
		}
	}
	slices.SortFunc(found, func(a, b Info) int {
		return cmp.Or(b.Changed.Compare(a.Changed), cmp.Compare(a.ID, b.ID))
	})
	if filter.Limit > 0 {
		found = found[:min(filter.Limit, len(found))]
	}
	return found
}

// says reports whether all words stand in the conversation.
func (k *kept) says(words []string) bool {
	if len(words) == 0 {
		return true
	}
	var text strings.Builder
	text.WriteString(strings.ToLower(k.info.Title))
	for _, c := range k.canisters {
		text.WriteString("\n" + strings.ToLower(TextOf(c)))
	}
	all := text.String()
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(all, word) })
}

func (k *kept) copy() Info {
	info := k.info
	info.Tags = slices.Clone(info.Tags)
	return info
}

// Info implements [Store].
func (m *Memory) Info(_ context.Context, conversation string) (Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kept[conversation]
	if k == nil {
		return Info{}, fmt.Errorf("%w: %q", ErrNotFound, conversation)
	}
	return k.copy(), nil
}

// Describe implements [Store].
func (m *Memory) Describe(_ context.Context, conversation string, change Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kept[conversation]
	if k == nil {
		return fmt.Errorf("%w: %q", ErrNotFound, conversation)
	}
	k.info = change.Apply(k.info)
	return nil
}

// Apply returns the info as the change makes it.
func (c Change) Apply(info Info) Info {
	if c.Title != nil {
		info.Title = *c.Title
	}
	if c.Tags != nil {
		info.Tags = slices.Clone(*c.Tags)
		slices.Sort(info.Tags)
		info.Tags = slices.Compact(info.Tags)
	}
	if c.Owner != nil {
		info.Owner = *c.Owner
	}
	return info
}

// Fork implements [Store].
func (m *Memory) Fork(_ context.Context, conversation string, length int, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	from := m.kept[conversation]
	switch {
	case from == nil:
		return fmt.Errorf("%w: %q", ErrNotFound, conversation)
	case length < 0 || length > len(from.canisters):
		return fmt.Errorf("%w: %q has %d canisters and not %d", ErrNotFound, conversation, len(from.canisters), length)
	case m.kept[to] != nil:
		return fmt.Errorf("%w: %q", ErrExists, to)
	}
	fork := &kept{info: from.copy(), canisters: from.canisters[:length:length]}
	fork.info.ID, fork.info.Parent, fork.info.ParentLength = to, conversation, length
	fork.info.Created, fork.info.Changed, fork.info.Last = m.clock(), m.clock(), ""
	fork.count()
	m.kept[to] = fork
	return nil
}

// Delete implements [Store].
func (m *Memory) Delete(_ context.Context, conversation string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.kept, conversation)
	return nil
}

// Close implements [Store]; there is nothing to end.
func (m *Memory) Close() error { return nil }
