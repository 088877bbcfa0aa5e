// SPDX-License-Identifier: Apache-2.0

package historytest_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/historytest"
	"github.com/consort-go/consort/internal/testing/suite"
)

// brokenStore is a store in memory with one rule broken: a function that is
// there takes the place of a method.
type brokenStore struct {
	*history.Memory
	read     func(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error]
	append   func(ctx context.Context, conversation string, length int, canisters []canister.Canister) error
	list     func(ctx context.Context, filter history.Filter) iter.Seq2[history.Info, error]
	info     func(ctx context.Context, conversation string) (history.Info, error)
	describe func(ctx context.Context, conversation string, change history.Change) error
	fork     func(ctx context.Context, conversation string, length int, to string) error
	remove   func(ctx context.Context, conversation string, length int) error
	closes   func() error
}

func (b *brokenStore) Read(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
	if b.read == nil {
		return b.Memory.Read(ctx, conversation, after)
	}
	return b.read(ctx, conversation, after)
}

func (b *brokenStore) Append(ctx context.Context, conversation string, length int, canisters ...canister.Canister) error {
	if b.append == nil {
		return b.Memory.Append(ctx, conversation, length, canisters...)
	}
	return b.append(ctx, conversation, length, canisters)
}

func (b *brokenStore) List(ctx context.Context, filter history.Filter) iter.Seq2[history.Info, error] {
	if b.list == nil {
		return b.Memory.List(ctx, filter)
	}
	return b.list(ctx, filter)
}

func (b *brokenStore) Info(ctx context.Context, conversation string) (history.Info, error) {
	if b.info == nil {
		return b.Memory.Info(ctx, conversation)
	}
	return b.info(ctx, conversation)
}

func (b *brokenStore) Describe(ctx context.Context, conversation string, change history.Change) error {
	if b.describe == nil {
		return b.Memory.Describe(ctx, conversation, change)
	}
	return b.describe(ctx, conversation, change)
}

func (b *brokenStore) Fork(ctx context.Context, conversation string, length int, to string) error {
	if b.fork == nil {
		return b.Memory.Fork(ctx, conversation, length, to)
	}
	return b.fork(ctx, conversation, length, to)
}

func (b *brokenStore) Delete(ctx context.Context, conversation string, length int) error {
	if b.remove == nil {
		return b.Memory.Delete(ctx, conversation, length)
	}
	return b.remove(ctx, conversation, length)
}

func (b *brokenStore) Close() error {
	if b.closes == nil {
		return b.Memory.Close()
	}
	return b.closes()
}

// retried appends at whatever length there is: without the comparison.
func (b *brokenStore) retried(ctx context.Context, conversation string, length int, canisters []canister.Canister) error {
	for {
		err := b.Memory.Append(ctx, conversation, length, canisters...)
		var conflict *history.ConflictError
		if !errors.As(err, &conflict) {
			return err
		}
		length = conflict.Length
	}
}

// oneByOne appends each canister by itself.
func (b *brokenStore) oneByOne(ctx context.Context, conversation string, length int, canisters []canister.Canister) error {
	for i, c := range canisters {
		if err := b.Memory.Append(ctx, conversation, length+i, c); err != nil {
			return err
		}
	}
	return nil
}

// reading passes each canister through change.
func reading(change func(canister.Canister) canister.Canister) func(*brokenStore) {
	return func(b *brokenStore) {
		b.read = func(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
			return func(yield func(canister.Canister, error) bool) {
				for c, err := range b.Memory.Read(ctx, conversation, after) {
					if err == nil {
						c = change(c)
					}
					if !yield(c, err) {
						return
					}
				}
			}
		}
	}
}

// filtering passes each filter through change.
func filtering(change func(*history.Filter)) func(*brokenStore) {
	return func(b *brokenStore) {
		b.list = func(ctx context.Context, filter history.Filter) iter.Seq2[history.Info, error] {
			change(&filter)
			return b.Memory.List(ctx, filter)
		}
	}
}

// informing passes each info through change.
func informing(change func(*history.Info)) func(*brokenStore) {
	return func(b *brokenStore) {
		b.info = func(ctx context.Context, conversation string) (history.Info, error) {
			info, err := b.Memory.Info(ctx, conversation)
			change(&info)
			return info, err
		}
	}
}

// folding makes two IDs one.
func folding(fold func(string) string) func(*brokenStore) {
	return func(b *brokenStore) {
		b.append = func(ctx context.Context, conversation string, length int, canisters []canister.Canister) error {
			return b.Memory.Append(ctx, fold(conversation), length, canisters...)
		}
		b.read = func(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
			return b.Memory.Read(ctx, fold(conversation), after)
		}
		b.info = func(ctx context.Context, conversation string) (history.Info, error) {
			info, err := b.Memory.Info(ctx, fold(conversation))
			info.ID = conversation
			return info, err
		}
	}
}

// text changes the text of a person.
func text(change func(string) string) func(*brokenStore) {
	return reading(func(c canister.Canister) canister.Canister {
		if u, ok := c.(canister.User); ok && len(u.Content) > 0 {
			u.Content = slices.Clone(u.Content)
			for i, content := range u.Content {
				if t, ok := content.(canister.TextContent); ok {
					t.Text = change(t.Text)
					u.Content[i] = t
				}
			}
			return u
		}
		return c
	})
}

// listing passes each list through change.
func listing(change func([]history.Info)) func(*brokenStore) {
	return func(b *brokenStore) {
		b.list = func(ctx context.Context, filter history.Filter) iter.Seq2[history.Info, error] {
			return func(yield func(history.Info, error) bool) {
				var infos []history.Info
				for info, err := range b.Memory.List(ctx, filter) {
					if err != nil {
						yield(info, err)
						return
					}
					infos = append(infos, info)
				}
				change(infos)
				for _, info := range infos {
					if !yield(info, nil) {
						return
					}
				}
			}
		}
	}
}

// live also yields canisters that are appended during the loop.
func (b *brokenStore) live(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
	return func(yield func(canister.Canister, error) bool) {
		for more := true; more; {
			more = false
			for c, err := range b.Memory.Read(ctx, conversation, after) {
				if !yield(c, err) || err != nil {
					return
				}
				more = true
				after++
			}
		}
	}
}

// allButOne lacks the last canister.
func (b *brokenStore) allButOne(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
	return func(yield func(canister.Canister, error) bool) {
		info, _ := b.Memory.Info(ctx, conversation)
		for c, err := range b.Memory.Read(ctx, conversation, after) {
			if after++; after >= info.Length || !yield(c, err) {
				return
			}
		}
	}
}

// fromTheStart also yields the canisters before.
func (b *brokenStore) fromTheStart(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
	return func(yield func(canister.Canister, error) bool) {
		place := 0
		for c, err := range b.Memory.Read(ctx, conversation, 0) {
			if _, bad := canister.Marshal(c); bad != nil || place >= after && !yield(c, err) {
				return
			}
			place++
		}
	}
}

// heedless does not look at its context.
func (b *brokenStore) heedless(_ context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
	return b.Memory.Read(context.Background(), conversation, after)
}

// again appends existing canisters again.
func (b *brokenStore) again(ctx context.Context, conversation string, length int, canisters []canister.Canister) error {
	if info, err := b.Memory.Info(ctx, conversation); err == nil {
		length = max(length, info.Length)
	}
	return b.retried(ctx, conversation, length, canisters)
}

// describeAll clears omitted fields.
func (b *brokenStore) describeAll(ctx context.Context, conversation string, change history.Change) error {
	if change.Title == nil {
		change.Title = new(string)
	}
	return b.Memory.Describe(ctx, conversation, change)
}

// forkAtEven cuts only at even places.
func (b *brokenStore) forkAtEven(ctx context.Context, conversation string, length int, to string) error {
	return b.Memory.Fork(ctx, conversation, length-length%2, to)
}

// forkOver replaces an existing conversation.
func (b *brokenStore) forkOver(ctx context.Context, conversation string, length int, to string) error {
	if conversation != to {
		_ = b.Memory.Delete(ctx, to, history.AnyLength)
	}
	return b.Memory.Fork(ctx, conversation, length, to)
}

// removeForks deletes the forks too.
func (b *brokenStore) removeForks(ctx context.Context, conversation string, length int) error {
	for info, err := range b.Memory.List(ctx, history.Filter{}) {
		if err == nil && info.Parent == conversation {
			_ = b.Memory.Delete(ctx, info.ID, history.AnyLength)
		}
	}
	return b.Memory.Delete(ctx, conversation, length)
}

// ended counts appends, for a delete that waits for one.
var ended atomic.Int64

// lookedAt deletes after a check, and does not check again if another writer has appended
// meanwhile.
func (b *brokenStore) lookedAt(ctx context.Context, conversation string, length int) error {
	before := ended.Load()
	info, err := b.Memory.Info(ctx, conversation)
	if err != nil {
		return ignoreNotFound(err)
	}
	if err := history.CheckDelete(conversation, info.Length, length); err != nil {
		return err
	}
	for length >= 0 && ended.Load() == before && ctx.Err() == nil {
		runtime.Gosched()
	}
	return b.Memory.Delete(ctx, conversation, history.AnyLength)
}

// counted appends as it ought to, for lookedAt.
func (b *brokenStore) counted(ctx context.Context, conversation string, length int, canisters []canister.Canister) error {
	defer ended.Add(1)
	return b.Memory.Append(ctx, conversation, length, canisters...)
}

// anyIdentity accepts invalid IDs.
func (b *brokenStore) anyIdentity(ctx context.Context, conversation string, length int, canisters []canister.Canister) error {
	if history.CheckID(conversation) != nil {
		conversation = "other"
	}
	return b.Memory.Append(ctx, conversation, length, canisters...)
}

// closeOnce does not want to be closed again.
func (b *brokenStore) closeOnce() error {
	_, err := b.Memory.Info(context.Background(), "")
	return errors.Join(ignoreNotFound(err), b.Memory.Close())
}

func ignoreNotFound(err error) error {
	if errors.Is(err, history.ErrNotFound) {
		return nil
	}
	return err
}

var storeBreaks = map[string]func(*brokenStore){
	"Append/read": func(b *brokenStore) {
		b.read = func(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
			return b.Memory.Read(ctx, conversation, after-after%2)
		}
	},
	"Append/nothing": func(b *brokenStore) {
		b.info = func(ctx context.Context, conversation string) (history.Info, error) {
			info, err := b.Memory.Info(ctx, conversation)
			if errors.Is(err, history.ErrNotFound) {
				return history.Info{ID: conversation}, nil
			}
			return info, err
		}
	},
	"Append/compare": func(b *brokenStore) { b.append = b.retried },
	"Append/compare length": func(b *brokenStore) {
		b.append = func(ctx context.Context, conversation string, length int, canisters []canister.Canister) error {
			err := b.Memory.Append(ctx, conversation, length, canisters...)
			var conflict *history.ConflictError
			if errors.As(err, &conflict) {
				conflict.Length = 0
			}
			return err
		}
	},
	"Append/again": func(b *brokenStore) {
		b.append = func(ctx context.Context, conversation string, length int, canisters []canister.Canister) error {
			if info, err := b.Memory.Info(ctx, conversation); err == nil && info.Length != length {
				return &history.ConflictError{Conversation: conversation, Expected: length, Length: info.Length}
			}
			return b.Memory.Append(ctx, conversation, length, canisters...)
		}
	},
	"Append/again partly": func(b *brokenStore) { b.append = b.oneByOne },
	"Append/whole":        func(b *brokenStore) { b.append = b.oneByOne },
	"Append/race":         func(b *brokenStore) { b.append = b.retried },
	"Append/race-of-two":  func(b *brokenStore) { b.append = b.retried },
	"Append/race-of-same": func(b *brokenStore) { b.append = b.again },
	"Append/many":         reading(func(c canister.Canister) canister.Canister { return canister.WithHead(c, canister.Head{ID: "w0-0"}) }),
	"Read/prefix":         func(b *brokenStore) { b.read = b.allButOne },
	"Read/prefix-of-two":  reading(func(c canister.Canister) canister.Canister { return canister.WithHead(c, canister.Head{ID: "c0"}) }),
	"Read/snapshot":       func(b *brokenStore) { b.read = b.live },
	"Read/long":           func(b *brokenStore) { b.read = b.fromTheStart },
	"Canisters/golden":    text(strings.ToUpper),
	"Canisters/golden times": reading(func(c canister.Canister) canister.Canister {
		h := c.Header()
		h.Time = h.Time.Truncate(time.Microsecond)
		return canister.WithHead(c, h)
	}),
	"Canisters/odd": text(func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }),
	"Canisters/odd unknown": reading(func(c canister.Canister) canister.Canister {
		h := c.Header()
		h.Unknown = nil
		return canister.WithHead(c, h)
	}),
	"Canisters/large": text(func(s string) string { return s[:min(len(s), 100_000)] }),
	"Histories/whole": reading(func(c canister.Canister) canister.Canister {
		if answer, ok := c.(canister.Answer); ok {
			answer.By = ""
			return answer
		}
		return c
	}),
	"Histories/whole again": func(b *brokenStore) { b.append = b.again },
	"Histories/torn":        func(b *brokenStore) { b.read = b.allButOne },
	"List/order":            listing(func(infos []history.Info) { slices.Reverse(infos) }),
	"List/filter open":      filtering(func(f *history.Filter) { f.Open = false }),
	"List/filter tags":      filtering(func(f *history.Filter) { f.Tags = f.Tags[:min(len(f.Tags), 1)] }),
	"List/filter owner":     filtering(func(f *history.Filter) { f.Owner = "" }),
	"List/filter since":     filtering(func(f *history.Filter) { f.Since = time.Time{} }),
	"List/filter until":     filtering(func(f *history.Filter) { f.Until = time.Time{} }),
	"List/search":           filtering(func(f *history.Filter) { f.Text, _, _ = strings.Cut(strings.TrimSpace(f.Text), " ") }),
	"List/limit":            filtering(func(f *history.Filter) { f.Limit = 0 }),
	"Describe":              informing(func(info *history.Info) { slices.Reverse(info.Tags) }),
	"Describe all":          func(b *brokenStore) { b.describe = b.describeAll },
	"Info":                  informing(func(info *history.Info) { info.Length = min(info.Length, 3) }),
	"Info last":             informing(func(info *history.Info) { info.Last = canister.KindUser }),
	"Fork/anywhere":         func(b *brokenStore) { b.fork = b.forkAtEven },
	"Fork/of-fork":          func(b *brokenStore) { b.remove = b.removeForks },
	"Fork/errors":           func(b *brokenStore) { b.fork = b.forkOver },
	"Delete/frees":          func(b *brokenStore) { b.remove = func(ctx context.Context, _ string, _ int) error { return ctx.Err() } },
	"Delete/compare": func(b *brokenStore) {
		b.remove = func(ctx context.Context, c string, _ int) error { return b.Memory.Delete(ctx, c, history.AnyLength) }
	},
	"Delete/compare all the same": func(b *brokenStore) {
		b.remove = func(ctx context.Context, c string, length int) error {
			defer b.Memory.Delete(ctx, c, history.AnyLength)
			return b.Memory.Delete(ctx, c, length)
		}
	},
	"Delete/race":         func(b *brokenStore) { b.remove, b.append = b.lookedAt, b.counted },
	"Delete/race append":  func(b *brokenStore) { b.append = b.retried },
	"Delete/race-of-two":  func(b *brokenStore) { b.remove, b.append = b.lookedAt, b.counted },
	"Identities/odd":      folding(strings.ToLower),
	"Identities/odd path": folding(func(s string) string { return strings.ReplaceAll(s, "//", "/") }),
	"Identities/bad":      func(b *brokenStore) { b.append = b.anyIdentity },
	"Errors/not-found": func(b *brokenStore) {
		b.describe = func(ctx context.Context, _ string, _ history.Change) error { return ctx.Err() }
	},
	"End/context": func(b *brokenStore) {
		b.remove = func(_ context.Context, c string, length int) error {
			return b.Memory.Delete(context.Background(), c, length)
		}
	},
	"End/context read":          func(b *brokenStore) { b.read = b.heedless },
	"End/during":                func(b *brokenStore) { b.read = b.heedless },
	"End/close":                 func(b *brokenStore) { b.closes = func() error { return nil } },
	"End/close twice":           func(b *brokenStore) { b.closes = b.closeOnce },
	"Durable/all forgetful":     forgetful,
	"Durable/appends forgetful": forgetful,
	"Shared/seen forgetful":     forgetful,
}

// forgetful is a store that is another each time that it is opened.
func forgetful(b *brokenStore) { b.Memory = history.NewMemory() }

// TestBrokenStore runs the suite over a store that breaks one rule; only for
// TestStoreSuiteFinds, which runs it in a process of its own.
func TestBrokenStore(t *testing.T) {
	name := suite.BrokenRule(t, "HISTORYTEST_BREAK")
	historytest.TestStore(t, func(*testing.T) historytest.Harness {
		memory := history.NewMemory()
		open := func() (history.Store, error) {
			b := &brokenStore{Memory: memory}
			storeBreaks[name](b)
			return b, nil
		}
		torn := func(append func(), _ float64) (history.Store, error) {
			append()
			return open()
		}
		return historytest.Harness{Open: open, Durable: true, Shared: true, Torn: torn, Patience: 5 * time.Second}
	})
}

// TestStoreSuiteFinds checks that each case of the suite can fail.
func TestStoreSuiteFinds(t *testing.T) {
	suite.Finds(t, "TestBrokenStore", "HISTORYTEST_BREAK", storeBreaks)
}
