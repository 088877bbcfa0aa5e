// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
)

// namesOf returns the names of the tools that an ensemble offers now.
func namesOf(t *testing.T, e *ensemble.Ensemble) []string {
	t.Helper()
	tools, err := e.Tools(t.Context())
	if err != nil {
		t.Errorf("Tools: %v", err)
	}
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name())
	}
	return names
}

func wantNames(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("the tools are %q, want %q", got, want)
	}
}

func TestSetAside(t *testing.T) {
	noDefinition := &undefined{}
	source := ensembletest.NewSource(
		ensembletest.Returns("query_b", ""), ensembletest.Returns("query_a", ""), ensembletest.Returns("query_a", "again"),
		ensembletest.Returns("query_secret", ""), ensembletest.Returns("drop", ""), ensembletest.Returns("", ""), noDefinition,
	)
	source.SetAside(ensemble.Aside{Tool: "huge", Reason: "its schema is too large"})
	e := ensemble.New("db", source, &ensemble.Options{Allow: []string{"query_*", ""}, Deny: []string{"*secret"}})
	defer e.Close(t.Context())
	wantNames(t, namesOf(t, e), "db__query_a", "db__query_b")
	want := []ensemble.Aside{
		{Ensemble: "db", Tool: "", Reason: "it has no definition"},
		{Ensemble: "db", Tool: "", Reason: "it has no name"},
		{Ensemble: "db", Tool: "drop", Reason: "it is not in the allow list"},
		{Ensemble: "db", Tool: "huge", Reason: "its schema is too large"},
		{Ensemble: "db", Tool: "query_a", Reason: "the ensemble has another tool of this name"},
		{Ensemble: "db", Tool: "query_secret", Reason: `the deny list has "*secret"`},
	}
	if got := e.Snapshot().Aside; !slices.Equal(got, want) {
		t.Errorf("set aside are\n%v, want\n%v", got, want)
	}
}

// TestScreen: the function sees each accepted tool once, in order, and refused tools do
// not count.
func TestScreen(t *testing.T) {
	source := ensembletest.NewSource(
		ensembletest.Returns("c", ""), ensembletest.Returns("b", ""), ensembletest.Returns("a", ""),
		ensembletest.Returns("a", "again"), ensembletest.Returns("denied", ""), ensembletest.Returns("d\u200b", ""), &undefined{},
	)
	var seen [][]string
	e := ensemble.New("db", source, &ensemble.Options{Deny: []string{"denied"}, MaxTools: 2, Screen: func(definitions []*invoker.Definition) map[string]error {
		var names []string
		for _, d := range definitions {
			names = append(names, d.Name)
		}
		seen = append(seen, names)
		return map[string]error{"a": errors.New("it looks odd"), "b": nil, "unknown": errors.New("nobody asked")}
	}})
	defer e.Close(t.Context())
	wantNames(t, namesOf(t, e), "db__b", "db__c")
	if want := [][]string{{"a", "b", "c", "d"}}; !reflect.DeepEqual(seen, want) {
		t.Errorf("it saw %q, want %q", seen, want)
	}
	for _, want := range []ensemble.Aside{
		{Ensemble: "db", Tool: "a", Reason: "it looks odd"},
		{Ensemble: "db", Tool: "d", Reason: "the ensemble has more than 2 tools, which is the limit"},
	} {
		if got := e.Snapshot().Aside; !slices.Contains(got, want) {
			t.Errorf("set aside are %v, without %v", got, want)
		}
	}
}

// TestScreenPanics: no tools are better than tools that were not looked at.
func TestScreenPanics(t *testing.T) {
	e := ensemble.New("e", ensembletest.NewSource(ensembletest.Echo()), &ensemble.Options{
		Screen: func([]*invoker.Definition) map[string]error { panic("no") },
	})
	defer e.Close(t.Context())
	if tools, err := e.Tools(t.Context()); err == nil {
		t.Errorf("there are tools: %v", tools)
	}
}

type undefined struct{ invoker.Invoker }

func (*undefined) Definition() *invoker.Definition { return nil }

func TestChangedListIsSeen(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		wantNames(t, namesOf(t, e), "e__a", "e__echo")
		for range 1000 {
			source.SetTools(ensembletest.Returns("b", ""))
		}
		synctest.Wait()
		if got := source.Count(ensembletest.List); got != 1 {
			t.Errorf("%d listings before anybody asks", got)
		}
		wantNames(t, namesOf(t, e), "e__b")
		wantNames(t, namesOf(t, e), "e__b")
		if got := source.Count(ensembletest.List); got != 2 {
			t.Errorf("%d listings, want 2", got)
		}
		if got := e.Snapshot().Tools; got != 1 {
			t.Errorf("the snapshot counts %d tools", got)
		}
	})
}

// TestFailedListingKeepsOldList: and is tried again after a while.
func TestFailedListingKeepsOldList(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		namesOf(t, e)
		source.Fail(ensembletest.List, 1, errDied)
		source.SetTools(ensembletest.Returns("b", ""))
		synctest.Wait()
		wantNames(t, namesOf(t, e), "e__a", "e__echo")
		wantNames(t, namesOf(t, e), "e__a", "e__echo")
		wantState(t, e, ensemble.Ready)
		if got := source.Count(ensembletest.List); got != 2 {
			t.Errorf("%d listings, want 2", got)
		}
		time.Sleep(time.Second)
		wantNames(t, namesOf(t, e), "e__b")
	})
}

func TestHangingListingIsBounded(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		namesOf(t, e)
		release := source.Hang(ensembletest.List, true)
		source.SetTools(ensembletest.Returns("b", ""))
		synctest.Wait()
		start := time.Now()
		wantNames(t, namesOf(t, e), "e__a", "e__echo")
		if took := time.Since(start); took > 6*time.Second {
			t.Errorf("it took %v", took)
		}
		release()
	})
}

// TestLossDuringListing: the caller gets the list of a new connection.
func TestLossDuringListing(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		namesOf(t, e)
		release := source.Hang(ensembletest.List, false)
		source.SetTools(ensembletest.Returns("b", ""))
		synctest.Wait()
		time.AfterFunc(time.Second, func() { source.Lose(errDied) })
		time.AfterFunc(2*time.Second, release)
		wantNames(t, namesOf(t, e), "e__b")
	})
}

// A process closes its output a moment before it has exited, and only then says why.
func TestLossBehindAFailedListing(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		source.Fail(ensembletest.List, 1, invoker.Failf(invoker.Unavailable, "The server cannot be reached."))
		time.AfterFunc(50*time.Millisecond, func() { source.Lose(errDied) })
		if _, err := e.Tools(t.Context()); !errors.Is(err, errDied) {
			t.Errorf("the error is %v, which does not name the cause: %v", err, errDied)
		}
	})
}
