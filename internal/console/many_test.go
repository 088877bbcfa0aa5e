// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/postgres"
	"github.com/consort-go/consort/converse/history/sqlite"
	"github.com/consort-go/consort/internal/testing/consolestage"
	"github.com/consort-go/consort/internal/testing/pgtest"
)

// filled puts n conversations into a store: each has the word "common", every 5,000th one the
// word "seldom".
func filled(t *testing.T, store history.Store, n int) {
	t.Helper()
	head := func(id string) canister.Head { return canister.Head{ID: id} }
	var all sync.WaitGroup
	for worker := range 16 {
		all.Go(func() {
			for i := worker; i < n; i += 16 {
				said := fmt.Sprintf("What about the common number %d?", i)
				if i%5000 == 0 {
					said += " It is seldom."
				}
				err := store.Append(t.Context(), fmt.Sprintf("c%06d", i), 0, canister.User{Head: head("u"), Content: canister.Texts(said)},
					canister.Invocation{Head: head("i"), Message: "a", CallID: "i", Name: fmt.Sprintf("tool_%d", i%7), Arguments: "{}"},
					canister.Result{Head: head("r"), Invocation: "i", Content: canister.Texts("the result of the tool")},
					canister.Assistant{Head: head("b"), Content: canister.Texts("That is the answer.")})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// Pages of a list do not take longer with many conversations. CONSORT_TEST_CONVERSATIONS=100000
// measures that, and fails if the median of a page takes more than 100 ms.
func TestManyConversations(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("CONSORT_TEST_CONVERSATIONS"))
	gate := err == nil
	patience := time.Duration(-1) // as in a program
	if !gate {
		n, patience = 12, 0
	}
	for name, open := range map[string]func(*testing.T) (history.Store, error){
		"sqlite": func(t *testing.T) (history.Store, error) {
			return sqlite.Open(filepath.Join(t.TempDir(), "many.db"), nil)
		},
		"postgres": func(t *testing.T) (history.Store, error) { return postgres.Open(t.Context(), pgtest.DSN(t), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			store, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			filled(t, store, n)
			for _, err := range store.List(t.Context(), history.Filter{Text: "common"}) { // indexes all
				if err != nil {
					t.Fatal(err)
				}
			}
			ops := consolestage.Start(t, consolestage.Options{Store: store, Patience: patience}).Login(t, consolestage.Ops)
			for path, want := range map[string]string{
				"": "c0", "?q=common": "<mark>common</mark>", "?q=common+number": "<mark>", "?q=answer+common": "<mark>", "?q=seldom": "",
				"?q=absent": "", "?tool=tool_3": "<mark>tool_3</mark>",
			} {
				took := make([]time.Duration, map[bool]int{true: 5, false: 1}[gate])
				for i := range took {
					began := time.Now()
					if page := ops.Get("/conversations" + path).Text; !strings.Contains(page, want) {
						t.Errorf("%s lacks %s:\n%s", path, want, page)
					}
					took[i] = time.Since(began)
				}
				if median := medianOf(took); testing.Verbose() {
					t.Logf("%-18s %v", path, median.Round(time.Millisecond))
					if gate && median > 100*time.Millisecond {
						t.Errorf("%s takes %v", path, median)
					}
				}
			}
		})
	}
}

func medianOf(took []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[len(sorted)/2]
}

// counted counts what is read from a store.
type counted struct {
	history.Store
	infos, canisters atomic.Int64
}

func (s *counted) List(ctx context.Context, filter history.Filter) iter.Seq2[history.Info, error] {
	return func(yield func(history.Info, error) bool) {
		for info, err := range s.Store.List(ctx, filter) {
			s.infos.Add(1)
			if !yield(info, err) {
				return
			}
		}
	}
}

func (s *counted) Read(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
	return func(yield func(canister.Canister, error) bool) {
		for one, err := range s.Store.Read(ctx, conversation, after) {
			s.canisters.Add(1)
			if !yield(one, err) {
				return
			}
		}
	}
}

// A page of a list reads about as much as it shows, however many conversations there are.
func TestListsReadLittle(t *testing.T) {
	store := &counted{Store: history.NewMemory()}
	filled(t, store, 1000)
	ops := consolestage.Start(t, consolestage.Options{Store: store}).Login(t, consolestage.Ops)
	for path, most := range map[string]struct{ infos, canisters int64 }{
		"": {60, 200}, "?q=common": {800, 600}, "?tool=tool_3": {800, 600}, "?q=absent": {1400, 0},
	} {
		store.infos.Store(0)
		store.canisters.Store(0)
		ops.Get("/conversations" + path)
		if infos, canisters := store.infos.Load(), store.canisters.Load(); infos > most.infos || canisters > most.canisters {
			t.Errorf("%q reads %d conversations and %d canisters, want at most %+v", path, infos, canisters, most)
		}
	}
}

// timed is a store whose clock goes on by 20 ms for each conversation that is read.
type timed struct {
	history.Store
	begin time.Time
	reads atomic.Int64
}

func (s *timed) now() time.Time {
	return s.begin.Add(time.Duration(s.reads.Load()) * 20 * time.Millisecond)
}

func (s *timed) Read(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
	s.reads.Add(1)
	return s.Store.Read(ctx, conversation, after)
}

const notComplete = "This list is not complete"

// Approvals that others decide about do not hide what waits for a person.
func TestApprovalsOfOthers(t *testing.T) {
	store := &timed{Store: history.NewMemory(), begin: time.Now()}
	ada := consolestage.Start(t, consolestage.Options{Store: store, Patience: -1, Now: store.now}).Login(t, consolestage.Ada)
	for i := range 4 {
		id := fmt.Sprintf("mine-%d", i)
		stored(t, store, id, "owner-ada", asking(id, "", "1", "{}")...)
	}
	for _, path := range []string{"/waiting", "/"} {
		if strings.Contains(ada.Get(path).Text, notComplete) {
			t.Errorf("%s: four waits are too many", path)
		}
	}
	for i := range 100 {
		id := fmt.Sprintf("ask-%d", i)
		stored(t, store, id, "approval-eve", asking(id, "zed", "1", "{}")...)
	}
	for _, path := range []string{"/waiting", "/"} {
		page := ada.Get(path).Text
		if n := strings.Count(page, `href="/console/conversations/mine-`); n != 4 || !strings.Contains(page, notComplete) {
			t.Errorf("%s shows %d of the 4 conversations that wait, and says that there are more: %t", path, n, strings.Contains(page, notComplete))
		}
	}
}

// Unfinished conversations of one client do not hide approvals from those who decide, be they
// named or operators.
func TestApprovalsAmongMany(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	for id, who := range map[string]string{"ask-ada": "ada", "ask-any": ""} {
		stored(t, s.Store, id, "approval-zoe", asking(id, who, "1", "{}")...)
	}
	for i := range 501 {
		stored(t, s.Store, fmt.Sprintf("e-%d", i), "owner-eve", canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("x")})
	}
	for token, want := range map[string]struct {
		ids string
		cut bool
	}{consolestage.Ada: {"ask-ada", false}, consolestage.Ops: {"ask-ada ask-any", true}} {
		page := s.Login(t, token).Get("/waiting").Text
		for _, id := range strings.Fields(want.ids) {
			if !strings.Contains(page, "/console/conversations/"+id) {
				t.Errorf("the page lacks %s, which waits for %s", id, token)
			}
		}
		if strings.Contains(page, notComplete) != want.cut {
			t.Errorf("to %s the page says that there are more: %t", token, !want.cut)
		}
	}
}
