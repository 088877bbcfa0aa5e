// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/invoker"
)

// gated is an ensemble with the tool work, which answers with text when go is closed.
func gated(t *testing.T, name, text string, open <-chan struct{}) *ensemble.Ensemble {
	t.Helper()
	work, err := invoker.New("work", "Work.", func(ctx context.Context, _ struct{}) (string, error) {
		select {
		case <-open:
			return text, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ensemble.New(name, ensemble.LocalSource(work), &ensemble.Options{CallTimeout: time.Minute, CallLimit: time.Minute})
}

func opened() chan struct{} {
	open := make(chan struct{})
	close(open)
	return open
}

// A removed ensemble finishes its calls and takes no new ones; one that stays is not
// touched; the tools of an older catalog call the ensemble that replaces theirs.
func TestReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		stays, goes, changes := gated(t, "stays", "stays", opened()), gated(t, "goes", "went", open), gated(t, "changes", "before", open)
		roster := newRoster(t, stays, goes, changes)
		before, err := roster.Catalog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tool := func(c *ensemble.Catalog, name string) *ensemble.Tool {
			found, ok := c.Find(name)
			if !ok {
				t.Fatalf("the catalog has no %s", name)
			}
			return found
		}
		since := stays.Snapshot().Since
		type outcome struct {
			text    string
			failure *invoker.Failure
		}
		running := make(chan outcome, 2)
		for _, name := range []string{"goes__work", "changes__work"} {
			go func() {
				text, failure := invoke(t.Context(), tool(before, name))
				running <- outcome{text, failure}
			}()
		}
		synctest.Wait()

		watching, stop := context.WithCancel(t.Context())
		l := listen(watching, roster)
		changed, added := gated(t, "changes", "after", opened()), gated(t, "added", "added", opened())
		if err := roster.Replace(stays, changed, added); err != nil {
			t.Fatal(err)
		}
		kinds := []ensemble.NewsKind{ensemble.PromptsChanged, ensemble.ResourcesChanged, ensemble.ToolsChanged}
		if got := slices.Compact(l.take()); !slices.Equal(got, kinds) {
			t.Errorf("the news is %v", got)
		}
		if _, failure := invoke(t.Context(), tool(before, "goes__work")); failure == nil || failure.Code != invoker.ToolNotFound {
			t.Errorf("a new call of a removed ensemble: %v", failure)
		}
		if text, failure := invoke(t.Context(), tool(before, "changes__work")); text != "after" {
			t.Errorf("a new call of a replaced ensemble: %q, %v", text, failure)
		}
		wantState(t, goes, ensemble.Ready)
		close(open)
		for range 2 {
			if got := <-running; got.text != "went" && got.text != "before" {
				t.Errorf("a running call: %q, %v", got.text, got.failure)
			}
		}
		synctest.Wait()
		wantState(t, goes, ensemble.Closed)
		wantState(t, changes, ensemble.Closed)
		after, err := roster.Catalog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range after.Tools() {
			names = append(names, tool.Name())
		}
		if want := []string{"added__work", "changes__work", "stays__work"}; !slices.Equal(names, want) || len(after.Away()) > 0 {
			t.Errorf("the tools are %v, away is %v", names, after.Away())
		}
		if stays.Snapshot().Since != since {
			t.Error("the ensemble that stays was connected again")
		}
		l.take()
		changed.Refresh(t.Context())
		stop()
		<-l.done
	})
}

// A running call ends no later than with its own limit, and with the roster.
func TestReplaceIsBounded(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *ensemble.Roster){
		"limit":  func(*testing.T, *ensemble.Roster) {},
		"roster": func(t *testing.T, r *ensemble.Roster) { r.Close(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				goes := gated(t, "goes", "", nil)
				roster := newRoster(t, goes)
				tool := toolOf(t, goes, "work")
				ended := make(chan *invoker.Failure)
				go func() {
					_, failure := invoke(t.Context(), tool)
					ended <- failure
				}()
				synctest.Wait()
				if err := roster.Replace(); err != nil {
					t.Fatal(err)
				}
				go end(t, roster)
				if failure := <-ended; failure == nil || failure.Code != invoker.Timeout && failure.Code != invoker.Canceled {
					t.Errorf("the call: %v", failure)
				}
				synctest.Wait()
				wantState(t, goes, ensemble.Closed)
			})
		})
	}
}

// A call that waits for a person is not cut off when its ensemble is removed.
func TestReplaceWaitsForHeldCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool := ensembletest.NewTool("ask", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
			resume := call.Hold()
			defer resume()
			pause(ctx, time.Hour)
			return invoker.Output{}, ctx.Err()
		})
		goes := ensemble.New("goes", ensembletest.NewSource(tool), &ensemble.Options{CallTimeout: time.Second, CallLimit: time.Minute})
		roster := newRoster(t, goes)
		bound := toolOf(t, goes, "ask")
		ended := make(chan error)
		go func() {
			_, err := bound.Invoke(t.Context(), nil)
			ended <- err
		}()
		synctest.Wait()
		if err := roster.Replace(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Errorf("the call: %v", err)
		}
		synctest.Wait()
		wantState(t, goes, ensemble.Closed)
	})
}

// A wrong set is refused as a whole, and a closed roster refuses each.
func TestReplaceRefuses(t *testing.T) {
	a := gated(t, "a", "a", opened())
	roster := newRoster(t, a)
	for _, wrong := range [][]*ensemble.Ensemble{{a, nil}, {a, gated(t, "a", "", nil)}, {gated(t, "", "", nil)}} {
		if err := roster.Replace(wrong...); err == nil {
			t.Errorf("accepted: %v", wrong)
		}
	}
	if got := roster.Ensembles(); len(got) != 1 || got[0] != a {
		t.Errorf("the ensembles are %v", got)
	}
	roster.Close(t.Context())
	if err := roster.Replace(a); !errors.Is(err, ensemble.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// In the middle of a turn, an ensemble that was added is away until it is connected.
func TestLatestAfterReplace(t *testing.T) {
	a, b := gated(t, "a", "a", opened()), gated(t, "b", "b", opened())
	roster := newRoster(t, a)
	if _, err := roster.Catalog(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := roster.Replace(a, b); err != nil {
		t.Fatal(err)
	}
	latest := func() (tools, away int) {
		t.Helper()
		c, err := roster.Latest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(c.Tools()), len(c.Away())
	}
	if tools, away := latest(); tools != 1 || away != 1 {
		t.Errorf("%d tools, %d away", tools, away)
	}
	if err := b.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if tools, away := latest(); tools != 2 || away != 0 {
		t.Errorf("once connected: %d tools, %d away", tools, away)
	}
}

// Subscriptions go to the ensemble that replaces theirs.
func TestSubscriptionsAfterReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := func() (*ensemble.Ensemble, *local.Updates) {
			updates := &local.Updates{}
			options := local.Library{Resources: []local.Resource{ensembletest.TextResource("note://x", "x")}, Updates: updates}
			return ensemble.New("notes", options.Source(), nil), updates
		}
		first, _ := made()
		roster := newRoster(t, first)
		ctx, cancel := context.WithCancel(t.Context())
		l := listen(ctx, roster)
		stop, err := roster.Subscribe(t.Context(), "note://x")
		if err != nil {
			t.Fatal(err)
		}
		second, updates := made()
		if err := second.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := roster.Replace(second); err != nil {
			t.Fatal(err)
		}
		if got := l.take(); !slices.Contains(got, ensemble.ResourceUpdated) {
			t.Errorf("the news is %v", got)
		}
		updates.Tell("note://x")
		wantNews(t, "an update by the new ensemble", l, ensemble.ResourceUpdated)
		stopAnother, err := first.Subscribe(t.Context(), "note://x")
		if err != nil {
			t.Fatalf("subscribing to an ensemble that was replaced: %v", err)
		}
		stopAnother()
		updates.Tell("note://x")
		wantNews(t, "after the end of another subscription", l, ensemble.ResourceUpdated)
		stop()
		updates.Tell("note://x")
		wantNews(t, "after the end of the subscription", l)
		if parts, err := roster.ReadResource(t.Context(), "note://x"); err != nil || parts[0].Text != "x" {
			t.Errorf("%v, %v", parts, err)
		}
		cancel()
		<-l.done
	})
}

// A subscription that moves to an ensemble without a connection makes it connect, and the resource is
// reported as updated when it has.
func TestSubscriptionsWaitForAConnection(t *testing.T) {
	for _, connected := range []bool{true, false} { // without success, or not tried
		synctest.Test(t, func(t *testing.T) {
			made := func() (*ensemble.Ensemble, *ensembletest.Source) {
				source := ensembletest.NewSource()
				source.SetLibrary(ensembletest.ServerLibrary(new(local.Updates)))
				return ensemble.New("notes", source, nil), source
			}
			first, _ := made()
			roster := newRoster(t, first)
			ctx, cancel := context.WithCancel(t.Context())
			l := listen(ctx, roster)
			if _, err := roster.Subscribe(t.Context(), "test://greeting"); err != nil {
				t.Fatal(err)
			}
			second, source := made()
			source.Fail(ensembletest.Open, 2, errDied)
			if connected {
				if err := second.Connect(t.Context()); err == nil {
					t.Fatal("it connected")
				}
			}
			if err := roster.Replace(second); err != nil {
				t.Fatal(err)
			}
			l.take()
			time.Sleep(time.Minute)
			if got := source.Subscribed(); len(got) != 1 {
				t.Errorf("the subscriptions are %v", got)
			}
			if got := l.take(); !slices.Contains(got, ensemble.ResourceUpdated) {
				t.Errorf("after it has connected, the news is %v", got)
			}
			source.Tell(ensemble.News{Kind: ensemble.ResourceUpdated, URI: "test://greeting"})
			wantNews(t, "an update", l, ensemble.ResourceUpdated)
			time.Sleep(time.Hour)
			wantNews(t, "later", l)
			cancel()
			<-l.done
		})
	}
}

// The options of the ensemble that replaces another hold for requests to the other, also for
// one that waits for a connection, and for its subscriptions.
func TestOptionsAfterReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := func(options *ensemble.Options) (*ensemble.Ensemble, *ensembletest.Source) {
			source := ensembletest.NewSource()
			source.SetLibrary(ensembletest.ServerLibrary(new(local.Updates)))
			return ensemble.New("notes", source, options), source
		}
		const uri = "test://greeting"
		first, source := made(&ensemble.Options{Deny: []string{"test://items/1"}})
		roster := newRoster(t, first)
		if _, err := roster.Subscribe(t.Context(), uri); err != nil {
			t.Fatal(err)
		}
		if err := first.Disconnect(t.Context()); err != nil {
			t.Fatal(err)
		}
		release := source.Hang(ensembletest.Open, false)
		defer release()
		waiting := make(chan error)
		go func() {
			_, err := first.ReadResource(t.Context(), uri)
			waiting <- err
		}()
		synctest.Wait()
		second, other := made(&ensemble.Options{Deny: []string{uri, "review"}, Needs: []string{"user"}})
		if err := second.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := roster.Replace(second); err != nil {
			t.Fatal(err)
		}
		if code := codeOf(t, <-waiting); code != invoker.NotFound {
			t.Errorf("the request that waited: %s", code)
		}
		_, read := first.ReadResource(t.Context(), uri)
		_, get := first.GetPrompt(t.Context(), "review", nil)
		_, complete := first.Complete(t.Context(), &ensemble.CompletionRequest{Prompt: "review", Argument: "code"})
		_, subscribe := first.Subscribe(t.Context(), uri)
		for i, err := range []error{read, get, complete, subscribe} {
			if code := codeOf(t, err); code != invoker.NotFound {
				t.Errorf("request %d is denied by the new ensemble: %s", i, code)
			}
		}
		if _, err := first.ReadResource(t.Context(), "test://items/1"); codeOf(t, err) != invoker.Unauthorized {
			t.Errorf("without the value that the new ensemble needs: %v", err)
		}
		trusted := invoker.WithTrusted(t.Context(), invoker.NewTrusted[string]("user").Value("ada"))
		if _, err := first.ReadResource(trusted, "test://items/1"); err != nil {
			t.Errorf("allowed by the new ensemble: %v", err)
		}
		if got := other.Subscribed(); len(got) > 0 {
			t.Errorf("the new ensemble is subscribed to %q", got)
		}
	})
}

// A server that does not answer a request to subscribe does not keep the connection of the
// ensemble that it replaces.
func TestHangingSubscriptionAfterReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := func() (*ensemble.Ensemble, *ensembletest.Source) {
			source := ensembletest.NewSource()
			source.SetLibrary(ensembletest.ServerLibrary(new(local.Updates)))
			return ensemble.New("notes", source, nil), source
		}
		first, _ := made()
		roster := newRoster(t, first)
		if _, err := roster.Subscribe(t.Context(), "test://greeting"); err != nil {
			t.Fatal(err)
		}
		second, source := made()
		release := source.Hang(ensembletest.Subscribe, true)
		defer release()
		if err := second.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := roster.Replace(second); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantState(t, first, ensemble.Closed)
	})
}

// While the ensembles of a roster are replaced at random, no call fails except those of an
// ensemble that is not there.
func TestReplaceUnderLoad(t *testing.T) {
	stays := gated(t, "stays", "ok", opened())
	roster := newRoster(t, stays, gated(t, "other", "ok", opened()))
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for ctx.Err() == nil {
				catalog, err := roster.Catalog(context.WithoutCancel(ctx))
				if err != nil {
					t.Errorf("Catalog: %v", err)
					return
				}
				for _, tool := range catalog.Tools() {
					output, err := tool.Invoke(context.WithoutCancel(ctx), &invoker.Call{})
					gone := err != nil && !strings.HasPrefix(tool.Name(), "stays") && invoker.AsFailure(err).Code == invoker.ToolNotFound
					if !gone && canister.TextOf(output.Content) != "ok" {
						t.Errorf("%s: %v", tool.Name(), err)
						return
					}
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		set := []*ensemble.Ensemble{stays}
		if random.IntN(4) > 0 {
			set = append(set, gated(t, "other", "ok", opened()))
		}
		if random.IntN(2) == 0 {
			set = append(set, gated(t, fmt.Sprint("more", i), "ok", opened()))
			set[len(set)-1], set[0] = set[0], set[len(set)-1]
		}
		if random.IntN(2) == 0 {
			if err := set[0].Connect(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := roster.Replace(set...); err != nil {
			t.Error(err)
		}
	}
	cancel()
	callers.Wait()
	if restarts := stays.Snapshot().Restarts; restarts > 0 {
		t.Errorf("the ensemble that stays was connected again %d times", restarts)
	}
}

// A bound tool calls its own ensemble, and nothing in its place.
func TestBound(t *testing.T) {
	before, after := gated(t, "work", "before", opened()), gated(t, "work", "after", opened())
	roster := newRoster(t, before)
	tools, err := before.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	follows, bound := tools[0], tools[0].Bound()
	if err := roster.Replace(after); err != nil {
		t.Fatal(err)
	}
	if err := before.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if output, err := follows.Invoke(t.Context(), nil); err != nil || canister.TextOf(output.Content) != "after" {
		t.Errorf("%v, %v", output, err)
	}
	if output, err := bound.Invoke(t.Context(), nil); err == nil {
		t.Errorf("a bound tool has called %v", output)
	}
}

// An ensemble that was retired does not come back: its calls would follow each other's
// replacements for ever.
func TestReplaceByARetiredOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := gated(t, "x", "first", opened()), gated(t, "x", "second", opened())
		roster := newRoster(t, first)
		before, err := roster.Catalog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := roster.Replace(second); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := roster.Replace(first); !errors.Is(err, ensemble.ErrClosed) {
				t.Errorf("the error is %v", err)
			}
			synctest.Wait() // until it is closed
		}
		if text, failure := invoke(t.Context(), before.Tools()[0]); text != "second" {
			t.Errorf("got %q, %v", text, failure)
		}
	})
}

// Close of a roster waits for a retired ensemble no longer than for the others, and names it.
func TestCloseOfARetiredEnsemble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := ensembletest.NewSource(ensembletest.Echo())
		release := source.Hang(ensembletest.Close, true)
		old := ensemble.New("old", source, &ensemble.Options{CloseTimeout: time.Hour})
		roster := newRoster(t, old)
		if err := roster.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := roster.Replace(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the connection is being closed
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := roster.Close(ctx)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("Close took %v", took)
		}
		if err == nil || !strings.Contains(err.Error(), `ensemble "old"`) {
			t.Errorf("Close: %v", err)
		}
		release()
		synctest.Wait()
	})
}
