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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/invoker"
)

func TestNewRosterReportsAll(t *testing.T) {
	_, err := ensemble.NewRoster(answering("a"), nil, answering(""), answering("b"), answering("a"))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"ensemble 2 of the roster is nil", "ensemble 3 of the roster has no name", `"a"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
}

func TestCatalog(t *testing.T) {
	roster := newRoster(t, answering("b", "z", "a"), answering("a", "x", "odd.name"))
	catalog, err := roster.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range catalog.Tools() {
		names = append(names, tool.Name())
		found, ok := catalog.Find(tool.Name())
		if !ok || found != tool {
			t.Errorf("Find(%q) = %v, %v", tool.Name(), found, ok)
		}
		if text, _ := invoke(t.Context(), found); text != tool.Definition().Name {
			t.Errorf("%s led to %q", tool.Name(), text)
		}
	}
	wantNames(t, names, "a__odd_name-x6w7n5zfgyaqg", "a__x", "b__a", "b__z")
	if _, ok := catalog.Find("x"); ok {
		t.Error("Find knows a tool without its ensemble")
	}
	if e, ok := roster.Ensemble("b"); !ok || e.Name() != "b" || len(roster.Ensembles()) != 2 {
		t.Error("the roster does not know its ensembles")
	}
}

// TestCatalogIsTheSame as long as nothing changed, over losses too.
func TestCatalogIsTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := ensembletest.NewSource(ensembletest.Returns("a", ""), ensembletest.Returns("b", ""))
		roster := newRoster(t, ensemble.New("e", source, nil), answering("other", "x"))
		catalog := func() *ensemble.Catalog {
			c, err := roster.Catalog(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		first := catalog()
		if catalog() != first {
			t.Error("a second Catalog is another")
		}
		tools := []invoker.Invoker{ensembletest.Returns("a", ""), ensembletest.Returns("b", "")}
		for range 50 {
			rand.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
			source.SetTools(tools...)
			source.Lose(errDied)
			synctest.Wait()
			if catalog() != first {
				t.Fatal("Catalog is another after a loss, although the tools are the same")
			}
		}
		source.SetTools(ensembletest.Returns("a", ""))
		synctest.Wait()
		second := catalog()
		if second == first || len(second.Tools()) != 2 || len(first.Tools()) != 3 {
			t.Errorf("%d tools, and %d in the first", len(second.Tools()), len(first.Tools()))
		}
		if a, _ := first.Find("e__a"); a != second.Tools()[0] {
			t.Error("a tool that did not change is another value")
		}
	})
}

func TestDeriveOnce(t *testing.T) {
	roster := newRoster(t, answering("e", "a"))
	catalog, err := roster.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var made atomic.Int32
	derive := func() any { return made.Add(1) }
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { catalog.Derive("key", derive) })
	}
	all.Wait()
	if first, second := catalog.Derive("key", derive), catalog.Derive("other", derive); first != int32(1) || second != int32(2) {
		t.Errorf("derived %v and %v, want 1 and 2", first, second)
	}
}

func TestCatalogWithoutTheOneAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, slow := ensembletest.NewSource(ensembletest.Echo()), ensembletest.NewSource(ensembletest.Echo())
		bad.Fail(ensembletest.Open, 1, errDied)
		release := slow.Hang(ensembletest.Open, false)
		roster := newRoster(t, ensemble.New("bad", bad, nil), ensemble.New("slow", slow, nil), answering("good", "x"))

		start := time.Now()
		c, err := roster.Catalog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 6*time.Second {
			t.Errorf("it took %v", took)
		}
		away := c.Away()
		if len(c.Tools()) != 1 || len(away) != 2 || away[0].Ensemble != "bad" || !errors.Is(away[0].Err, errDied) || away[1].Ensemble != "slow" {
			t.Errorf("%d tools, away are %v", len(c.Tools()), away)
		}
		// The slow server delays no caller again, whether it is tried or not.
		for range 20 {
			start = time.Now()
			again, err := roster.Catalog(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took > time.Second {
				t.Errorf("a later Catalog took %v", took)
			}
			if away := again.Away(); len(away) == 0 || away[len(away)-1].Ensemble != "slow" {
				t.Errorf("away are %v", away)
			}
			time.Sleep(700 * time.Millisecond)
		}
		release()
		time.Sleep(time.Minute)
		if c, err = roster.Catalog(t.Context()); err != nil || len(c.Away()) != 0 || len(c.Tools()) != 3 {
			t.Errorf("in the end %d tools, %v away, %v", len(c.Tools()), c.Away(), err)
		}
	})
}

func TestCatalogRequired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := ensembletest.NewSource(ensembletest.Echo())
		source.Fail(ensembletest.Open, 1, errDied)
		roster := newRoster(t, ensemble.New("needed", source, &ensemble.Options{Required: true}), answering("good", "x"))
		_, err := roster.Catalog(t.Context())
		if !errors.Is(err, errDied) || !strings.Contains(err.Error(), `"needed"`) {
			t.Errorf("the error is %v", err)
		}
		time.Sleep(time.Second)
		if c, err := roster.Catalog(t.Context()); err != nil || len(c.Tools()) != 2 {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func TestCatalogEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := ensembletest.NewSource()
		release := source.Hang(ensembletest.Open, false)
		roster := newRoster(t, ensemble.New("e", source, nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := roster.Catalog(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		release()
	})
}

func TestRosterConnectsAndClosesSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ensembles []*ensemble.Ensemble
		for i := range 10 {
			source := ensembletest.NewSource(ensembletest.Echo())
			release := source.Hang(ensembletest.Open, false)
			time.AfterFunc(time.Duration(i+1)*100*time.Millisecond, release)
			ensembles = append(ensembles, ensemble.New(fmt.Sprint("e", i), source, nil))
		}
		broken := ensembletest.NewSource()
		broken.Fail(ensembletest.Open, 1, errDied)
		ensembles = append(ensembles, ensemble.New("broken", broken, nil))
		roster := newRoster(t, ensembles...)
		start := time.Now()
		if err := roster.Connect(t.Context()); !errors.Is(err, errDied) || !strings.Contains(err.Error(), `"broken"`) {
			t.Errorf("Connect: %v", err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("ten ensembles took %v, the slowest 1s", took)
		}
		for range 2 {
			if err := roster.Close(t.Context()); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		if _, err := roster.Catalog(t.Context()); !errors.Is(err, ensemble.ErrClosed) {
			t.Errorf("Catalog: %v", err)
		}
	})
}

// TestCatalogHostileNames leads every name back to its tool.
func TestCatalogHostileNames(t *testing.T) {
	var ensembles []*ensemble.Ensemble
	want := 0
	for i, name := range hostile {
		if name == "" || slices.Index(hostile, name) != i {
			continue
		}
		ensembles = append(ensembles, answering(name, hostile...))
	}
	seen := map[string]bool{"": true}
	for _, tool := range hostile {
		if !seen[tool] && !strings.ContainsAny(tool, "\x00\n\u200b\u202e") { // cleaned, so that it is empty or the name of another tool
			seen[tool] = true
			want += len(ensembles)
		}
	}
	roster := newRoster(t, ensembles...)
	catalog, err := roster.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := len(catalog.Tools()); got != want {
		t.Errorf("%d tools, want %d", got, want)
	}
	for _, tool := range catalog.Tools() {
		found, ok := catalog.Find(tool.Name())
		if !ok || found != tool || tool.Name() != ensemble.NameFor(tool.Ensemble().Name(), tool.Definition().Name) {
			t.Fatalf("%q does not lead back", tool.Name())
		}
	}
}

// In the middle of a turn, a change that a connection has spoken of is seen at once,
// nothing is connected for it, and a list that does not come is not waited for again.
func TestLatestCatalog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, lost := ensembletest.NewSource(ensembletest.Returns("a", "")), ensembletest.NewSource(ensembletest.Returns("b", ""))
		source.SetLibrary(local.Library{})
		roster, err := ensemble.NewRoster(ensemble.New("here", source, nil), ensemble.New("lost", lost, nil))
		if err != nil {
			t.Fatal(err)
		}
		defer roster.Close(context.Background())
		look := func(want string) {
			t.Helper()
			catalog, err := roster.Latest(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range catalog.Tools() {
				names = append(names, tool.Name())
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("the tools are %q, want %q", got, want)
			}
		}
		look("here__a lost__b") // the first connects
		lost.Lose(errors.New("gone"))
		source.SetTools(ensembletest.Returns("a", ""), ensembletest.Returns("c", ""))
		look("here__a here__c lost__b")
		if n := lost.Count(ensembletest.Open); n != 1 {
			t.Errorf("the lost one was opened %d times", n)
		}
		release := source.Hang(ensembletest.List, false)
		defer release()
		source.SetTools(ensembletest.Returns("a", ""))
		began := time.Now()
		look("here__a here__c lost__b")
		look("here__a here__c lost__b")
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("a list that did not come was waited for %v", took)
		}
	})
}
