// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
)

// Memory is a [Store] in memory that is lost when the process ends. Its zero value is
// an empty store.
type Memory struct {
	mu            sync.Mutex
	conversations map[string]*stored
	closed        bool
	clock         func() time.Time
}

// stored is a stored conversation.
type stored struct {
	info      Info
	canisters []canister.Canister // append-only: readers and forks share it
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{} }

// usable returns the error of a closed store or an ended context, and initializes a
// zero value. The caller holds mu.
func (m *Memory) usable(ctx context.Context) error {
	if m.closed {
		return ErrClosed
	}
	if m.conversations == nil {
		m.conversations, m.clock = map[string]*stored{}, time.Now
	}
	return ctx.Err()
}

// find returns a conversation, or ErrNotFound. The caller holds mu.
func (m *Memory) find(ctx context.Context, conversation string) (*stored, error) {
	if err := m.usable(ctx); err != nil {
		return nil, err
	}
	k := m.conversations[conversation]
	if k == nil {
		return nil, fmt.Errorf("%w: %q", ErrNotFound, conversation)
	}
	return k, nil
}

// Read implements [Log].
func (m *Memory) Read(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
	return func(yield func(canister.Canister, error) bool) {
		m.mu.Lock()
		k, err := m.find(ctx, conversation)
		var list []canister.Canister
		if err == nil {
			list = k.canisters
		}
		m.mu.Unlock()
		if err != nil && !errors.Is(err, ErrNotFound) {
			yield(nil, err)
			return
		}
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

// Append implements [Log]. It refuses the canisters that a store on disk could not
// write.
func (m *Memory) Append(ctx context.Context, conversation string, expected int, canisters ...canister.Canister) error {
	if err := CheckID(conversation); err != nil {
		return err
	}
	if canister.Encode(io.Discard, canisters...) != nil { // which keeps nothing, unlike MarshalAll
		if _, err := MarshalAll(conversation, canisters); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k, err := m.find(ctx, conversation)
	if errors.Is(err, ErrNotFound) {
		k, err = &stored{info: Info{ID: conversation, Created: m.clock()}}, nil
	}
	if err != nil {
		return err
	}
	todo, err := CheckAppend(conversation, len(k.canisters), expected, canisters, func(index int) (string, error) {
		return k.canisters[index].Header().ID, nil
	})
	if !todo {
		return err
	}
	k.info.Changed = m.clock()
	k.canisters = append(k.canisters, canisters...)
	k.updateInfo()
	m.conversations[conversation] = k
	return nil
}

// updateInfo updates the info from the canisters.
func (k *stored) updateInfo() {
	k.info.Length = len(k.canisters)
	if k.info.Length > 0 {
		k.info.Last = k.canisters[k.info.Length-1].Kind()
	}
}

// List implements [Store].
func (m *Memory) List(ctx context.Context, filter Filter) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		found, err := m.matching(ctx, filter)
		if err != nil {
			yield(Info{}, err)
			return
		}
		for _, info := range found {
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

func (m *Memory) matching(ctx context.Context, filter Filter) ([]Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return nil, err
	}
	var found []Info
	for _, k := range m.conversations {
		if !filter.Match(k.info) {
			continue
		}
		if matches, _ := filter.MatchText(k.info.Title, k.each()); matches {
			found = append(found, k.copyInfo())
		}
	}
	slices.SortFunc(found, Info.Compare)
	if filter.Limit > 0 {
		found = found[:min(filter.Limit, len(found))]
	}
	return found, nil
}

// each yields the canisters; the error is always nil.
func (k *stored) each() iter.Seq2[canister.Canister, error] {
	return func(yield func(canister.Canister, error) bool) {
		for _, c := range k.canisters {
			if !yield(c, nil) {
				return
			}
		}
	}
}

func (k *stored) copyInfo() Info {
	info := k.info
	info.Tags = slices.Clone(info.Tags)
	return info
}

// Info implements [Store].
func (m *Memory) Info(ctx context.Context, conversation string) (Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, err := m.find(ctx, conversation)
	if err != nil {
		return Info{}, err
	}
	return k.copyInfo(), nil
}

// Describe implements [Store].
func (m *Memory) Describe(ctx context.Context, conversation string, change Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, err := m.find(ctx, conversation)
	if err != nil {
		return err
	}
	info, err := change.Apply(k.info)
	if err != nil {
		return err
	}
	k.info = info
	return nil
}

// Fork implements [Store].
func (m *Memory) Fork(ctx context.Context, conversation string, length int, to string) error {
	if err := CheckID(to); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	from, err := m.find(ctx, conversation)
	switch {
	case err != nil:
		return err
	case length < 0 || length > len(from.canisters):
		return fmt.Errorf("%w: %q cannot be forked after %d canisters, it has %d", ErrNotFound, conversation, length, len(from.canisters))
	case m.conversations[to] != nil:
		return fmt.Errorf("%w: %q", ErrExists, to)
	}
	fork := &stored{info: from.copyInfo(), canisters: from.canisters[:length:length]}
	fork.info.ID, fork.info.Parent, fork.info.ParentLength = to, conversation, length
	fork.info.Created, fork.info.Changed, fork.info.Last = m.clock(), m.clock(), ""
	fork.updateInfo()
	m.conversations[to] = fork
	return nil
}

// Delete implements [Store].
func (m *Memory) Delete(ctx context.Context, conversation string, expected int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, err := m.find(ctx, conversation)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err == nil {
		err = CheckDelete(conversation, len(k.canisters), expected)
	}
	if err != nil {
		return err
	}
	delete(m.conversations, conversation)
	return nil
}

// Close implements [Store].
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.conversations = true, nil
	return nil
}
