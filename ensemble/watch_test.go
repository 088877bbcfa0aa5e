// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
)

// listener keeps the news of a roster.
type listener struct {
	mu   sync.Mutex
	got  []ensemble.News
	done chan struct{}
}

// listen watches until ctx ends.
func listen(ctx context.Context, roster *ensemble.Roster) *listener {
	l := &listener{done: make(chan struct{})}
	news := roster.Watch(ctx)
	go func() {
		defer close(l.done)
		for n := range news {
			l.mu.Lock()
			l.got = append(l.got, n)
			l.mu.Unlock()
		}
	}()
	return l
}

// take returns the news since the last call.
func (l *listener) take() []ensemble.NewsKind {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	var kinds []ensemble.NewsKind
	for _, n := range l.got {
		kinds = append(kinds, n.Kind)
	}
	l.got = nil
	slices.Sort(kinds)
	return kinds
}

// watched runs a test with a watcher in a bubble.
func watched(t *testing.T, options *ensemble.Options, test func(*testing.T, *ensembletest.Source, *ensemble.Roster, *listener)) {
	inLibrary(t, options, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		roster, err := ensemble.NewRoster(e)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		l := listen(ctx, roster)
		test(t, source, roster, l)
		cancel()
		<-l.done
	})
}

func wantNews(t *testing.T, what string, l *listener, want ...ensemble.NewsKind) {
	t.Helper()
	if got := l.take(); !slices.Equal(got, want) {
		t.Errorf("%s: the news is %v, want %v", what, got, want)
	}
}

// TestNewsWithoutCatalog: news arrives whether or not a list is requested.
func TestNewsWithoutCatalog(t *testing.T) {
	watched(t, nil, func(t *testing.T, source *ensembletest.Source, roster *ensemble.Roster, l *listener) {
		if err := roster.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantNews(t, "after connecting", l)
		source.SetTools(ensembletest.Echo())
		wantNews(t, "other tools", l, ensemble.ToolsChanged)
		source.Tell(ensemble.News{Kind: ensemble.PromptsChanged})
		source.Tell(ensemble.News{Kind: ensemble.ResourcesChanged})
		wantNews(t, "other prompts and resources", l, ensemble.PromptsChanged, ensemble.ResourcesChanged)
		source.Tell(ensemble.News{Kind: ensemble.ResourceUpdated, URI: "test://greeting"})
		wantNews(t, "an update that nobody wants", l)
	})
}

// TestAwayIsNews: so is coming back.
func TestAwayIsNews(t *testing.T) {
	watched(t, &ensemble.Options{Restart: ensemble.Restart{Policy: ensemble.RestartAlways}},
		func(t *testing.T, source *ensembletest.Source, roster *ensemble.Roster, l *listener) {
			if err := roster.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantNews(t, "after connecting", l)
			all := []ensemble.NewsKind{ensemble.PromptsChanged, ensemble.ResourcesChanged, ensemble.ToolsChanged}
			source.Fail(ensembletest.Open, 2, errDied)
			source.Lose(errDied)
			time.Sleep(time.Second)
			wantNews(t, "gone", l, all...)
			time.Sleep(time.Minute)
			wantNews(t, "back", l, all...)
		})
}

// TestWatchEnds: with ctx, with the loop and with the roster, and nothing is
// left, which the bubble sees to.
func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		roster, err := ensemble.NewRoster(ensemble.Local("l"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		byContext, byRoster := listen(ctx, roster), listen(t.Context(), roster)
		synctest.Wait()
		cancel()
		<-byContext.done
		if err := roster.Close(t.Context()); err != nil {
			t.Error(err)
		}
		<-byRoster.done
		for range roster.Watch(t.Context()) {
			t.Error("news of a roster that is closed")
		}
	})
}

// TestSubscription: updates are reported as long as there is a subscriber.
func TestSubscription(t *testing.T) {
	watched(t, nil, func(t *testing.T, source *ensembletest.Source, roster *ensemble.Roster, l *listener) {
		update := func() { source.Tell(ensemble.News{Kind: ensemble.ResourceUpdated, URI: "test://greeting"}) }
		first, err := roster.Subscribe(t.Context(), "test://greeting")
		if err != nil {
			t.Fatal(err)
		}
		second, err := roster.Subscribe(t.Context(), "test://greeting")
		if err != nil || source.Count(ensembletest.Subscribe) != 1 {
			t.Fatalf("the second: %v after %d", err, source.Count(ensembletest.Subscribe))
		}
		update()
		wantNews(t, "with two", l, ensemble.ResourceUpdated)
		source.Tell(ensemble.News{Kind: ensemble.ResourceUpdated, URI: "test://greeting/part"})
		wantNews(t, "of a part", l, ensemble.ResourceUpdated)
		first()
		first()
		update()
		wantNews(t, "with one", l, ensemble.ResourceUpdated)
		second()
		update()
		wantNews(t, "with none", l)
		if got := source.Subscribed(); len(got) != 0 {
			t.Errorf("the connection is subscribed to %q", got)
		}
		third, err := roster.Subscribe(t.Context(), "test://greeting")
		if err != nil {
			t.Fatal(err)
		}
		update()
		wantNews(t, "again", l, ensemble.ResourceUpdated)
		third()
		if _, err := roster.Subscribe(t.Context(), "test://nothing"); codeOf(t, err) != invoker.NotFound {
			t.Errorf("a resource that is not there: %v", err)
		}
	})
}

// TestSubscriptionSurvives: a loss. The ensemble comes back by itself, and says
// that there may have been an update.
func TestSubscriptionSurvives(t *testing.T) {
	watched(t, &ensemble.Options{IdleDisconnect: time.Minute}, func(t *testing.T, source *ensembletest.Source, roster *ensemble.Roster, l *listener) {
		stop, err := roster.Subscribe(t.Context(), "test://greeting")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		wantNews(t, "before", l)
		source.Lose(errDied)
		time.Sleep(2 * time.Second)
		got := l.take()
		if !slices.Contains(got, ensemble.ResourceUpdated) {
			t.Errorf("after the loss the news is %v", got)
		}
		if got := source.Subscribed(); !slices.Equal(got, []string{"test://greeting"}) {
			t.Errorf("the fresh connection is subscribed to %q", got)
		}
		source.Tell(ensemble.News{Kind: ensemble.ResourceUpdated, URI: "test://greeting"})
		wantNews(t, "of the fresh connection", l, ensemble.ResourceUpdated)
		stop()
		time.Sleep(2 * time.Minute)
		if got := source.Connections(); got != 0 {
			t.Errorf("%d connections when nobody is subscribed", got)
		}
	})
}

// A subscription that cannot be renewed is tried again over the same connection, and its
// resource counts as updated each time.
func TestSubscriptionIsRenewedLater(t *testing.T) {
	watched(t, nil, func(t *testing.T, source *ensembletest.Source, roster *ensemble.Roster, l *listener) {
		stop, err := roster.Subscribe(t.Context(), "test://greeting")
		if err != nil {
			t.Fatal(err)
		}
		source.Fail(ensembletest.Subscribe, 2, errDied)
		source.Lose(errDied)
		time.Sleep(5 * time.Second)
		for range 2 {
			if got := source.Subscribed(); len(got) > 0 {
				t.Errorf("the connection is subscribed to %q", got)
			}
			if got := l.take(); !slices.Contains(got, ensemble.ResourceUpdated) {
				t.Errorf("the news is %v", got)
			}
			time.Sleep(30 * time.Second)
		}
		if got := source.Subscribed(); !slices.Equal(got, []string{"test://greeting"}) {
			t.Errorf("in the end the connection is subscribed to %q", got)
		}
		wantNews(t, "with the subscription", l, ensemble.ResourceUpdated)
		time.Sleep(time.Hour)
		wantNews(t, "later", l)
		if got := source.Count(ensembletest.Subscribe); got != 4 {
			t.Errorf("%d requests to subscribe", got)
		}
		stop()
	})
}

// TestLateSubscription: a subscription that is established after its caller has left is
// ended, without an effect on others.
func TestLateSubscription(t *testing.T) {
	watched(t, &ensemble.Options{MaxSubscriptions: 1}, func(t *testing.T, source *ensembletest.Source, roster *ensemble.Roster, l *listener) {
		const uri = "test://greeting"
		release := source.Hang(ensembletest.Subscribe, true)
		leave := func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := roster.Subscribe(ctx, uri); err == nil {
				t.Error("subscribed to what hangs")
			}
		}
		leave()
		leave()
		if got := source.Count(ensembletest.Subscribe); got != 1 {
			t.Errorf("the connection was asked %d times at a time", got)
		}
		release()
		synctest.Wait()
		if got := source.Subscribed(); len(got) > 0 {
			t.Errorf("nobody is subscribed, and the connection to %q", got)
		}
		stop, err := roster.Subscribe(t.Context(), uri)
		if err != nil {
			t.Fatal(err)
		}
		stop()
		synctest.Wait()
		if got := source.Subscribed(); len(got) > 0 {
			t.Errorf("in the end the connection is subscribed to %q", got)
		}
		stop, err = roster.Subscribe(t.Context(), "test://items/1") // there is room for it
		if err != nil {
			t.Fatal(err)
		}
		stop()
	})
}

// TestLimitOfSubscriptions: there is one, and it is said.
func TestLimitOfSubscriptions(t *testing.T) {
	watched(t, &ensemble.Options{MaxSubscriptions: 2}, func(t *testing.T, _ *ensembletest.Source, roster *ensemble.Roster, _ *listener) {
		for i := range 2 {
			if _, err := roster.Subscribe(t.Context(), fmt.Sprintf("test://items/%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := roster.Subscribe(t.Context(), "test://items/3"); codeOf(t, err) != invoker.Denied {
			t.Errorf("one too many: %v", err)
		}
	})
}

// TestSlowWatcher: unread news is merged.
func TestSlowWatcher(t *testing.T) {
	inLibrary(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		roster, err := ensemble.NewRoster(e)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		news := roster.Watch(ctx)
		if err := roster.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			source.Tell(ensemble.News{Kind: ensemble.ResourcesChanged})
		}
		source.Tell(ensemble.News{Kind: ensemble.PromptsChanged})
		got := 0
		for n := range news {
			if got++; n.Kind == ensemble.PromptsChanged {
				break
			}
		}
		if got != 2 {
			t.Errorf("%d pieces of news, want 2", got)
		}
	})
}
