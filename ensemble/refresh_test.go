// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// slow is a source that takes its time to open and to list.
type slow struct {
	*ensembletest.Source
	time time.Duration
}

func (s slow) Open(ctx context.Context) (ensemble.Connection, error) {
	select {
	case <-time.After(s.time):
		return s.Source.Open(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Fifty servers are found in the time of the slowest; one that cannot be reached
// is away, and the others are there.
func TestDiscoveryTakesTheTimeOfTheSlowest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const servers = 50
		var ensembles []*ensemble.Ensemble
		for i := range servers {
			source := ensembletest.NewSource(ensembletest.Returns("tool", "answer"))
			if i == 7 {
				source.Fail(ensembletest.Open, 1, errors.New("nobody there"))
			}
			ensembles = append(ensembles, ensemble.New(fmt.Sprintf("server%02d", i), slow{source, time.Duration(i+1) * 20 * time.Millisecond}, nil))
		}
		roster := newRoster(t, ensembles...)
		began := time.Now()
		catalog, err := roster.Catalog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != servers*20*time.Millisecond {
			t.Errorf("it took %v, and the slowest 1 s", took)
		}
		if away := catalog.Away(); len(catalog.Tools()) != servers-1 || len(away) != 1 || away[0].Ensemble != "server07" {
			t.Errorf("%d tools; away: %v", len(catalog.Tools()), away)
		}
		if of := catalog.Of("server08"); len(of) != 1 || of[0].Name() != "server08__tool" || len(catalog.Of("server07")) != 0 {
			t.Errorf("of one ensemble: %v", of)
		}
		// The result is cached: no server is asked again.
		began = time.Now()
		if again, err := roster.Catalog(t.Context()); err != nil || len(again.Tools()) != servers-1 || time.Since(began) != 0 {
			t.Errorf("the second time it took %v: %v", time.Since(began), err)
		}
	})
}

// ownNames are the tools' own names.
func ownNames(tools []*ensemble.Tool) string {
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Definition().Name)
	}
	return strings.Join(names, " ")
}

// quiet is a source whose connections never tell of changes.
type quiet struct{ *ensembletest.Source }

type quietConnection struct{ ensemble.Connection }

func (quietConnection) Changed() <-chan struct{} { return nil }

func (q quiet) Open(ctx context.Context) (ensemble.Connection, error) {
	connection, err := q.Source.Open(ctx)
	if err != nil {
		return nil, err
	}
	return quietConnection{connection}, nil
}

// A list has a time to live in which its server is not asked; a list that cannot be
// refreshed stays.
func TestListsGrowOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := ensembletest.NewSource(ensembletest.Returns("a", ""))
		roster := newRoster(t, ensemble.New("e", quiet{source}, &ensemble.Options{Refresh: time.Minute}))
		expect := func(names string, lists int) {
			t.Helper()
			catalog, err := roster.Catalog(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := ownNames(catalog.Tools()); got != names || source.Count(ensembletest.List) != lists {
				t.Errorf("%v: the tools are %q after %d lists, want %q after %d", time.Now(), got, source.Count(ensembletest.List), names, lists)
			}
		}
		expect("a", 1)
		source.SetTools(ensembletest.Returns("b", ""))
		time.Sleep(time.Minute - 1)
		expect("a", 1)
		time.Sleep(time.Nanosecond)
		expect("b", 2)
		expect("b", 2)
		source.Fail(ensembletest.List, 1, errors.New("out of order"))
		source.SetTools(ensembletest.Returns("c", ""))
		time.Sleep(time.Minute)
		expect("b", 3)
		expect("b", 3)
		time.Sleep(time.Second) // as long as the failure is remembered
		expect("c", 4)
		time.Sleep(time.Hour) // by itself it asks for nothing
		if lists := source.Count(ensembletest.List); lists != 4 {
			t.Errorf("it was listed %d times", lists)
		}
	})
}

// Lists of resources grow old too.
func TestListsOfLibraryGrowOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked int
		source := ensembletest.NewSource()
		source.SetLibrary(local.Library{})
		e := ensemble.New("e", source, &ensemble.Options{Refresh: time.Minute})
		defer e.Close(t.Context())
		for range 3 {
			for range 2 {
				if _, _, err := e.Resources(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			asked = source.Count(ensembletest.ListResources)
			time.Sleep(time.Minute)
		}
		if asked != 3 {
			t.Errorf("it was asked %d times in three minutes", asked)
		}
	})
}

// Refresh requests a list immediately, reports failures, and keeps the old list;
// disconnected servers are tried, and parked ones stay so.
func TestRefreshByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := ensembletest.NewSource(ensembletest.Returns("a", "")), ensembletest.NewSource(ensembletest.Returns("b", ""))
		roster := newRoster(t, ensemble.New("one", quiet{one}, nil),
			ensemble.New("two", two, &ensemble.Options{Restart: ensemble.Restart{Policy: ensemble.RestartNever}}))
		two.Fail(ensembletest.Open, 1, errors.New("nobody there"))
		expect := func(names string, away int) {
			t.Helper()
			catalog, err := roster.Catalog(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := ownNames(catalog.Tools()); got != names || len(catalog.Away()) != away {
				t.Errorf("the tools are %q, away %v; want %q, %d", got, catalog.Away(), names, away)
			}
		}
		expect("a", 1)
		one.SetTools(ensembletest.Returns("c", ""))
		expect("a", 1) // a parked ensemble stays parked, and a quiet one quiet
		if err := roster.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "parked") || strings.Contains(err.Error(), `"one"`) {
			t.Errorf("with a parked ensemble: %v", err)
		}
		expect("c", 1)
		parked, _ := roster.Ensemble("two")
		if err := parked.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect("c b", 0)
		if lists := two.Count(ensembletest.List); lists != 1 {
			t.Errorf("a fresh connection was listed %d times", lists)
		}
		one.Fail(ensembletest.List, 1, errors.New("out of order"))
		if err := roster.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "out of order") || !strings.Contains(err.Error(), `"one"`) {
			t.Errorf("a refresh that fails returns %v", err)
		}
		expect("c b", 0)
		if err := roster.Refresh(t.Context()); err != nil { // although it failed a moment ago
			t.Errorf("the next one: %v", err)
		}
	})
}

// A concurrent Refresh gets a list that was requested after it was called.
func TestRefreshSideBySide(t *testing.T) {
	source := ensembletest.NewSource(ensembletest.Returns("a", ""))
	e := ensemble.New("e", source, nil)
	defer e.Close(context.Background())
	if err := e.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			name := fmt.Sprint("tool", i)
			if i%2 == 0 {
				source.SetTools(ensembletest.Returns(name, ""))
			}
			if err := e.Refresh(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	source.SetTools(ensembletest.Returns("last", ""))
	if err := e.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if tools, err := e.Tools(t.Context()); err != nil || ownNames(tools) != "last" {
		t.Errorf("%s %v", ownNames(tools), err)
	}
}

// Tools are found by category, whichever ensemble they are of.
func TestInCategory(t *testing.T) {
	of := func(name, category string) invoker.Invoker {
		tool := ensembletest.Returns(name, "")
		tool.Def.Metadata = canister.Fields{invoker.CategoryKey: json.RawMessage(category)}
		return tool
	}
	roster := newRoster(t, ensemble.Local("x", of("a", `"search"`), of("b", `"query"`), of("c", `7`)),
		ensemble.Local("y", of("a", `"search"`), ensembletest.Returns("d", "")))
	catalog, err := roster.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for category, want := range map[string][]string{"search": {"x__a", "y__a"}, "query": {"x__b"}, "none": nil, "": {"x__c", "y__d"}} {
		var got []string
		for _, tool := range catalog.InCategory(category) {
			got = append(got, tool.Name())
		}
		if !slices.Equal(got, want) {
			t.Errorf("in %q there are %q, want %q", category, got, want)
		}
	}
}
