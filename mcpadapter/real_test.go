// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/internal/testing/realservers"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
)

// The tests in the files real_*_test.go use third-party servers through an ensemble and a
// roster, as programs do. Package realservers finds them.

// realPatience bounds each wait for a real server. Several of them start at
// once on a machine that may be busy.
const realPatience = 90 * time.Second

func atLast(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), realPatience)
	t.Cleanup(cancel)
	return ctx
}

func realEnsemble(name string, source ensemble.Source) *ensemble.Ensemble {
	return ensemble.New(name, source, &ensemble.Options{ConnectTimeout: realPatience, CallTimeout: realPatience})
}

// realRoster is a roster whose calls a test makes and notes.
type realRoster struct {
	*ensemble.Roster
	called map[string]bool // tools by their own name
}

// newRealRoster makes a roster that is closed with the test, without error.
func newRealRoster(t *testing.T, ensembles ...*ensemble.Ensemble) *realRoster {
	t.Helper()
	roster, err := ensemble.NewRoster(ensembles...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := roster.Close(atLast(t)); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return &realRoster{roster, make(map[string]bool)}
}

// catalog returns the catalog; every ensemble must be in it.
func (r *realRoster) catalog(t *testing.T) *ensemble.Catalog {
	t.Helper()
	catalog, err := r.Catalog(atLast(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, away := range catalog.Away() {
		t.Fatalf("%s is away: %v", away.Ensemble, away.Err)
	}
	return catalog
}

// offers waits until exactly these tools are on offer, under their own names:
// server-everything adds some just after it was connected to.
func (r *realRoster) offers(t *testing.T, want ...string) *ensemble.Catalog {
	t.Helper()
	want = slices.Sorted(slices.Values(want)) // the callers share it
	var got []string
	var catalog *ensemble.Catalog
	if !comesTrue(func() bool {
		catalog, got = r.catalog(t), nil
		for _, tool := range catalog.Tools() {
			got = append(got, tool.Definition().Name)
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	}) {
		t.Fatalf("the tools on offer are\n%q, want\n%q", got, want)
	}
	return catalog
}

// comesTrue reports whether a condition comes true in time.
func comesTrue(condition func() bool) bool {
	for deadline := time.Now().Add(realPatience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if condition() {
			return true
		}
	}
	return false
}

// invoke calls a tool by the name that a model has for it.
func (r *realRoster) invoke(t *testing.T, name string, call *invoker.Call) ([]canister.Content, error) {
	t.Helper()
	tool, ok := r.catalog(t).Find(name)
	if !ok {
		t.Fatalf("no tool %q", name)
	}
	r.called[tool.Definition().Name] = true
	output, err := tool.Invoke(atLast(t), call)
	return output.Content, err
}

// must calls a tool that has to succeed.
func (r *realRoster) must(t *testing.T, name, arguments string) []canister.Content {
	t.Helper()
	contents, err := r.invoke(t, name, mcptest.RawCall(arguments))
	if err != nil {
		t.Fatalf("%s %s: %v", name, arguments, err)
	}
	return contents
}

// says calls a tool whose text has to hold all the words.
func (r *realRoster) says(t *testing.T, name, arguments string, words ...string) {
	t.Helper()
	text := canister.TextOf(r.must(t, name, arguments))
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%s %s says %q, without %q", name, arguments, text, word)
		}
	}
}

// fails calls a tool that has to fail with a code, and words that a model can
// act on.
func (r *realRoster) fails(t *testing.T, name, arguments string, want invoker.Code, words ...string) {
	t.Helper()
	_, err := r.invoke(t, name, mcptest.RawCall(arguments))
	var failure *invoker.Failure
	if !errors.As(err, &failure) || failure.Code != want {
		t.Errorf("%s %s: %v, want %s", name, arguments, err, want)
		return
	}
	for _, word := range words {
		if text := failure.Message + canister.TextOf(failure.Content); !strings.Contains(text, word) {
			t.Errorf("%s %s fails with %q, without %q", name, arguments, text, word)
		}
	}
}

// allCalled checks that each tool was called.
func (r *realRoster) allCalled(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if !r.called[name] {
			t.Errorf("%s was never called; %q were", name, slices.Sorted(maps.Keys(r.called)))
		}
	}
}

// only returns the contents of one kind.
func only[T canister.Content](contents []canister.Content) []T {
	var list []T
	for _, content := range contents {
		if c, ok := content.(T); ok {
			list = append(list, c)
		}
	}
	return list
}

// stdioSource runs a server with a mark in its environment that identifies its processes.
func stdioSource(argv []string, client mcpadapter.ClientOptions, env map[string]string) ensemble.Source {
	return mcpadapter.Stdio(argv, &mcpadapter.StdioOptions{ClientOptions: client, Environment: env})
}

// quoted is a JSON string.
func quoted(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err) // cannot happen
	}
	return string(out)
}

// everythingOver are the transports of server-everything.
var everythingOver = []struct {
	name   string
	source func(*testing.T, *realservers.Servers, mcpadapter.ClientOptions) ensemble.Source
}{
	{"stdio", func(_ *testing.T, s *realservers.Servers, client mcpadapter.ClientOptions) ensemble.Source {
		return stdioSource(s.Everything(), client, nil)
	}},
	{"http", func(t *testing.T, s *realservers.Servers, client mcpadapter.ClientOptions) ensemble.Source {
		return mcpadapter.HTTP(s.EverythingHTTP(t), &mcpadapter.HTTPOptions{ClientOptions: client})
	}},
	{"sse", func(t *testing.T, s *realservers.Servers, client mcpadapter.ClientOptions) ensemble.Source {
		return mcpadapter.SSE(s.EverythingSSE(t), &mcpadapter.HTTPOptions{ClientOptions: client})
	}},
}
