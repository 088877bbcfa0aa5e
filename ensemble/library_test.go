// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
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

// inLibrary runs a test in a bubble over a source that offers the library of
// the suite.
func inLibrary(t *testing.T, options *ensemble.Options, test func(*testing.T, *ensembletest.Source, *ensemble.Ensemble)) {
	t.Helper()
	inBubble(t, options, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		source.SetLibrary(ensembletest.ServerLibrary(new(local.Updates)))
		test(t, source, e)
	})
}

// codeOf is the code of an error, which must be a Failure; empty for none.
func codeOf(t *testing.T, err error) invoker.Code {
	t.Helper()
	var failure *invoker.Failure
	if err != nil && !errors.As(err, &failure) {
		t.Errorf("%v is no Failure", err)
	}
	if err == nil {
		return ""
	}
	return failure.Code
}

func uris(resources []ensemble.Resource) []string {
	var all []string
	for _, r := range resources {
		all = append(all, r.URI)
	}
	return all
}

// TestListsAreKept: they are asked for once, by all together, until the
// connection says that they have changed.
func TestListsAreKept(t *testing.T) {
	inLibrary(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if got, _, err := e.Resources(t.Context()); err != nil || len(got) != 2 {
					t.Errorf("Resources: %v, %v", got, err)
				}
			})
		}
		all.Wait()
		if got := source.Count(ensembletest.ListResources); got != 1 {
			t.Errorf("the list was asked for %d times", got)
		}
		source.SetLibrary(local.Library{Resources: []local.Resource{ensembletest.TextResource("x:new", "new")}})
		got, _, err := e.Resources(t.Context())
		if err != nil || !slices.Equal(uris(got), []string{"x:new"}) {
			t.Errorf("after the change: %v, %v", got, err)
		}
	})
}

// TestListFails: the old list stands, and is asked for again after a while; one
// that hangs has the time to connect.
func TestListFails(t *testing.T) {
	inLibrary(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		source.Fail(ensembletest.ListResources, 1, errDied)
		if _, _, err := e.Resources(t.Context()); !errors.Is(err, errDied) {
			t.Fatalf("Resources: %v", err)
		}
		if _, _, err := e.Resources(t.Context()); !errors.Is(err, errDied) || source.Count(ensembletest.ListResources) != 1 {
			t.Errorf("at once: %v after %d", err, source.Count(ensembletest.ListResources))
		}
		time.Sleep(time.Second)
		if got, _, err := e.Resources(t.Context()); err != nil || len(got) != 2 {
			t.Fatalf("after a while: %v, %v", got, err)
		}
		release := source.Hang(ensembletest.ListResources, true)
		source.Tell(ensemble.News{Kind: ensemble.ResourcesChanged})
		start := time.Now()
		if got, _, err := e.Resources(t.Context()); err != nil || len(got) != 2 || time.Since(start) > 6*time.Second {
			t.Errorf("a list that hangs: %v, %v after %v", got, err, time.Since(start))
		}
		release()
	})
}

// TestListIsNobodys: a list that is cached for all callers is not requested in the name
// of one.
func TestListIsNobodys(t *testing.T) {
	user := invoker.NewTrusted[string]("user")
	seen := make(chan bool, 4)
	source := &spied{Library: ensembletest.ServerLibrary(nil), saw: func(ctx context.Context) {
		_, ok := user.From(ctx)
		seen <- ok
	}}
	roster := newRoster(t, ensemble.New("spied", source, nil))
	ctx := invoker.WithTrusted(t.Context(), user.Value("ada"))
	if _, err := roster.ReadResource(ctx, "test://greeting"); err != nil {
		t.Fatal(err)
	}
	if listed, read := <-seen, <-seen; listed || !read {
		t.Errorf("the list was asked for with the user: %v; the resource: %v", listed, read)
	}
}

// spied is a local library that shows the contexts of lists and reads.
type spied struct {
	local.Library
	saw func(context.Context)
}

func (s *spied) Open(ctx context.Context) (ensemble.Connection, error) {
	c, err := s.Library.Source().Open(ctx)
	return &spiedConnection{c, c.(ensemble.Library), s}, err
}

type spiedConnection struct {
	ensemble.Connection
	ensemble.Library
	spied *spied
}

func (c *spiedConnection) Resources(ctx context.Context) ([]ensemble.Resource, error) {
	c.spied.saw(ctx)
	return c.Library.Resources(ctx)
}

func (c *spiedConnection) Read(ctx context.Context, uri string) ([]canister.ResourceContent, error) {
	c.spied.saw(ctx)
	return c.Library.Read(ctx, uri)
}

// TestOneFails: an ensemble that cannot be reached is away, one without the
// ability has nothing, and the others work.
func TestOneFails(t *testing.T) {
	dead := ensembletest.NewSource()
	dead.Fail(ensembletest.Open, 100, errDied)
	good := ensemble.New("good", ensembletest.ServerLibrary(nil).Source(), nil)
	roster := newRoster(t, ensemble.New("dead", dead, nil), good, ensemble.Local("tools"))
	all, err := roster.Resources(t.Context())
	if err != nil || len(all.Resources) != 2 || len(all.Templates) != 1 || len(all.Away) != 1 || all.Away[0].Ensemble != "dead" {
		t.Errorf("Resources: %+v, %v", all, err)
	}
	prompts, err := roster.Prompts(t.Context())
	if err != nil || len(prompts.Prompts) != 1 || prompts.Prompts[0].FullName() != "good__review" || len(prompts.Away) != 1 {
		t.Errorf("Prompts: %+v, %v", prompts, err)
	}
	if _, err := roster.ReadResource(t.Context(), "test://nowhere"); codeOf(t, err) != invoker.Unavailable {
		t.Errorf("what nobody has while one is away: %v", err)
	}
}

// TestDownIsNotWaitedFor: an ensemble that is known to be down holds up no list,
// and its failure is told.
func TestDownIsNotWaitedFor(t *testing.T) {
	inLibrary(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		roster, err := ensemble.NewRoster(e)
		if err != nil {
			t.Fatal(err)
		}
		source.Fail(ensembletest.Open, 1, errDied)
		if all, err := roster.Resources(t.Context()); err != nil || len(all.Away) != 1 {
			t.Fatalf("Resources: %+v, %v", all, err)
		}
		defer source.Hang(ensembletest.Open, false)()
		time.Sleep(time.Minute)
		start := time.Now()
		all, err := roster.Resources(t.Context())
		if took := time.Since(start); err != nil || took > 2*time.Second || len(all.Away) != 1 || !errors.Is(all.Away[0].Err, errDied) {
			t.Errorf("Resources: %+v, %v after %v", all, err, took)
		}
	})
}

// TestFirstHasIt: of two ensembles with one URI the first has it.
func TestFirstHasIt(t *testing.T) {
	library := func(name, text string) *ensemble.Ensemble {
		return ensemble.New(name, local.Library{Resources: []local.Resource{ensembletest.TextResource("x:same", text)}}.Source(), nil)
	}
	roster := newRoster(t, library("b", "first"), library("a", "second"))
	all, err := roster.Resources(t.Context())
	if err != nil || len(all.Resources) != 1 || len(all.Aside) != 1 || all.Aside[0].Ensemble != "a" || all.Aside[0].Tool != "x:same" {
		t.Errorf("Resources: %+v, %v", all, err)
	}
	parts, err := roster.ReadResource(t.Context(), "x:same")
	if err != nil || parts[0].Text != "first" {
		t.Errorf("ReadResource: %v, %v", parts, err)
	}
	if _, err := roster.ReadResource(t.Context(), "x:other"); codeOf(t, err) != invoker.NotFound {
		t.Errorf("what nobody has: %v", err)
	}
}

// TestGreedyTemplates: a template takes no resource that another ensemble lists,
// nor, without a scheme of its own, any other's.
func TestGreedyTemplates(t *testing.T) {
	templates := func(name string, uris ...string) *ensemble.Ensemble {
		var options local.Library
		for _, uri := range uris {
			options.Templates = append(options.Templates, local.Template{
				Template: ensemble.Template{URI: uri, Name: name},
				Read: func(context.Context, string, map[string]string) ([]canister.ResourceContent, error) {
					return []canister.ResourceContent{{Text: name}}, nil
				},
			})
		}
		return ensemble.New(name, options.Source(), nil)
	}
	listed := ensemble.New("listed", local.Library{Resources: []local.Resource{ensembletest.TextResource("x:listed", "listed")}}.Source(), nil)
	greedy := templates("greedy", "{+any}", "{scheme}:{+rest}", "{+any}:", "x:{id}")
	roster := newRoster(t, greedy, listed, templates("mine", "y:{id}", "x:{+id}"))
	for uri, want := range map[string]string{"x:listed": "listed", "y:7": "mine", "x:7": "greedy", "x:7/8": "mine"} {
		parts, err := roster.ReadResource(t.Context(), uri)
		if err != nil || parts[0].Text != want {
			t.Errorf("%s: read from %v, %v, want %s", uri, parts, err, want)
		}
	}
	for _, uri := range []string{"file:///etc/passwd", "secret:", strings.Repeat("x", 1<<20), "x:\n\x00{id}", ""} {
		if _, err := roster.ReadResource(t.Context(), uri); codeOf(t, err) != invoker.NotFound {
			t.Errorf("%.30q: %v", uri, err)
		}
	}
	// If no other server has any, all of them belong to this one.
	alone := newRoster(t, templates("greedy", "{+any}"))
	if parts, err := alone.ReadResource(t.Context(), "z:1"); err != nil || parts[0].Text != "greedy" {
		t.Errorf("alone: %v, %v", parts, err)
	}
}

// TestManyTemplates: to hold a URI against many takes no longer than whoever
// asks waits.
func TestManyTemplates(t *testing.T) {
	options := ensembletest.ServerLibrary(nil)
	for i := range 10_000 {
		options.Templates = append(options.Templates, local.Template{
			Template: ensemble.Template{URI: strings.Repeat("x:{+a}", 16) + strconv.Itoa(i)},
			Read: func(context.Context, string, map[string]string) ([]canister.ResourceContent, error) {
				return nil, nil
			},
		})
	}
	roster := newRoster(t, ensemble.New("many", options.Source(), nil))
	if _, err := roster.Resources(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := roster.ReadResource(ctx, "x:"+strings.Repeat("x:", 1000))
	if took := time.Since(start); err == nil || took > 5*time.Second {
		t.Errorf("%v after %v", err, took)
	}
}

// TestLimitOfResources: too many are left out, and it is said.
func TestLimitOfResources(t *testing.T) {
	options := local.Library{}
	for _, uri := range []string{"x:1", "x:2", "x:2", "x:3", "x:4"} {
		options.Resources = append(options.Resources, ensembletest.TextResource(uri, ""))
	}
	roster := newRoster(t, ensemble.New("many", options.Source(), &ensemble.Options{MaxResources: 3}))
	all, err := roster.Resources(t.Context())
	if err != nil || len(all.Resources) != 3 || len(all.Aside) != 2 || !strings.Contains(all.Aside[1].Reason, "more than 3 resources") {
		t.Errorf("Resources: %+v, %v", all, err)
	}
}

// TestReadAgain: a read whose connection is lost is made again over a fresh
// one, and one that hangs has the limit of a call.
func TestReadAgain(t *testing.T) {
	inLibrary(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		hang := source.Hang(ensembletest.Read, false)
		done := make(chan error, 1)
		go func() {
			_, err := e.ReadResource(t.Context(), "test://greeting")
			done <- err
		}()
		synctest.Wait()
		source.Lose(errDied)
		synctest.Wait()
		hang()
		if err := <-done; err != nil || source.Count(ensembletest.Open) != 2 {
			t.Errorf("a read that lost its connection: %v after %d connections", err, source.Count(ensembletest.Open))
		}
		hang = source.Hang(ensembletest.Read, true)
		start := time.Now()
		_, err := e.ReadResource(t.Context(), "test://greeting")
		if codeOf(t, err) != invoker.Timeout || time.Since(start) > 31*time.Second {
			t.Errorf("a read that hangs: %v after %v", err, time.Since(start))
		}
		hang()
		if s := e.Snapshot(); s.Calls != 0 || s.InFlight != 0 {
			t.Errorf("reads count as calls: %+v", s)
		}
	})
}

// A list that is lost with its connection is requested again, also if the request fails before the
// ensemble has noticed the loss; after Disconnect it is not.
func TestListAgain(t *testing.T) {
	inLibrary(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		list := func(end func()) error {
			if err := errors.Join(e.Disconnect(t.Context()), e.Connect(t.Context())); err != nil { // no list is valid for a fresh connection
				t.Fatal(err)
			}
			release := source.Hang(ensembletest.ListResources, false)
			done := make(chan error, 1)
			go func() {
				_, _, err := e.Resources(t.Context())
				done <- err
			}()
			synctest.Wait()
			time.AfterFunc(time.Second, release)
			end()
			return <-done
		}
		for range 200 { // either may be first
			if err := list(func() { source.Lose(errDied) }); err != nil {
				t.Fatalf("a list that lost its connection: %v", err)
			}
		}
		before := source.Count(ensembletest.Open) + 1
		if err := list(func() { e.Disconnect(t.Context()) }); err == nil || source.Count(ensembletest.Open) != before {
			t.Errorf("after Disconnect: %v, with %d connections more", err, source.Count(ensembletest.Open)-before)
		}
	})
}

// TestClosedWhileReading: Close ends a read and waits for its function.
func TestClosedWhileReading(t *testing.T) {
	inLibrary(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		source.Hang(ensembletest.Read, false)
		done := make(chan error, 1)
		go func() {
			_, err := e.ReadResource(t.Context(), "test://greeting")
			done <- err
		}()
		synctest.Wait()
		if err := e.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := <-done; codeOf(t, err) != invoker.Canceled {
			t.Errorf("a read when the ensemble was closed: %v", err)
		}
		if _, err := e.ReadResource(t.Context(), "test://greeting"); codeOf(t, err) != invoker.Unavailable {
			t.Errorf("a read after Close: %v", err)
		}
	})
}

// TestLibraryPanics: it costs the one request.
func TestLibraryPanics(t *testing.T) {
	options := ensembletest.ServerLibrary(nil)
	options.Resources = append(options.Resources, local.Resource{
		Resource: ensemble.Resource{URI: "x:bad"},
		Read:     func(context.Context) ([]canister.ResourceContent, error) { panic("bad") },
	})
	roster := newRoster(t, ensemble.New("l", options.Source(), nil))
	if _, err := roster.ReadResource(t.Context(), "x:bad"); codeOf(t, err) != invoker.ExecutionFailed {
		t.Errorf("a read that panics: %v", err)
	}
	if _, err := roster.ReadResource(t.Context(), "test://greeting"); err != nil {
		t.Errorf("the next read: %v", err)
	}
}

// TestLibraryNeeds: without the values that the ensemble needs nothing is read.
func TestLibraryNeeds(t *testing.T) {
	user := invoker.NewTrusted[string]("user")
	roster := newRoster(t, ensemble.New("l", ensembletest.ServerLibrary(nil).Source(ensembletest.Echo()), &ensemble.Options{
		Needs: []string{"user"}, Fill: map[string]string{"text": "user"},
	}))
	if _, err := roster.ReadResource(t.Context(), "test://greeting"); codeOf(t, err) != invoker.Unauthorized {
		t.Errorf("a read without the user: %v", err)
	}
	ctx := invoker.WithTrusted(t.Context(), user.Value("ada"))
	if _, err := roster.ReadResource(ctx, "test://greeting"); err != nil {
		t.Errorf("a read with the user: %v", err)
	}
	tool := toolOf(t, roster.Ensembles()[0], "echo")
	if _, failure := invoke(t.Context(), tool); failure == nil || failure.Code != invoker.Unauthorized {
		t.Errorf("a call without the user: %v", failure)
	}
	if text, failure := invoke(ctx, tool); text != "ada" || failure != nil {
		t.Errorf("a call with the user: %q, %v", text, failure)
	}
	if schema := string(tool.Definition().InputSchema); strings.Contains(schema, "text") {
		t.Errorf("the model sees %s", schema)
	}
}

// A tool is set aside if it cannot be found out quickly where its schema takes a value.
func TestFillOfToolsOfManySchemas(t *testing.T) {
	many := ensembletest.NewTool("many", nil)
	many.Def.InputSchema = json.RawMessage(`{"type":"object","allOf":[{}` + strings.Repeat(`,{}`, 9899) + `]}`)
	for _, options := range []*ensemble.Options{{Fill: map[string]string{"owner": "user"}}, {Needs: []string{"user"}}} {
		e := ensemble.New("l", ensembletest.ServerLibrary(nil).Source(many), options)
		wantNames(t, namesOf(t, e))
		if aside := e.Snapshot().Aside; len(aside) != 1 || !strings.Contains(aside[0].Reason, "combines more than 1000 schemas") {
			t.Errorf("set aside are %q", aside)
		}
	}
}

// TestFillOfToolsThatDoNotSaySo: the model cannot choose a value that a tool accepts
// without declaring it either.
func TestFillOfToolsThatDoNotSaySo(t *testing.T) {
	open := ensembletest.NewTool("open", func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		return invoker.Output{Content: canister.Texts(string(call.Arguments))}, nil
	})
	open.Def.InputSchema = json.RawMessage(`{"type":"object","patternProperties":{"^own":{}}}`)
	roster := newRoster(t, ensemble.New("l", ensembletest.ServerLibrary(nil).Source(open), &ensemble.Options{
		Fill: map[string]string{"owner": "user"},
	}))
	tool := toolOf(t, roster.Ensembles()[0], "open")
	ctx := invoker.WithTrusted(t.Context(), invoker.NewTrusted[string]("user").Value("ada"))
	for _, arguments := range []string{`{"owner":"ben"}`, `{"Owner":"ben"}`} {
		var forged *invoker.Forged
		output, err := tool.Invoke(ctx, &invoker.Call{Arguments: json.RawMessage(arguments)})
		if !errors.As(err, &forged) {
			t.Errorf("%s: %v, %v", arguments, output, err)
		}
	}
	if _, err := tool.Invoke(ctx, &invoker.Call{Arguments: json.RawMessage(`{"a":1}`)}); err != nil {
		t.Error(err)
	}
}

// TestAnsweredIsNotRepeated: a server that claims that a call was not made, and
// goes, does not get it twice.
func TestAnsweredIsNotRepeated(t *testing.T) {
	for _, claimed := range []invoker.Code{invoker.Unavailable, invoker.OutcomeUnknown} {
		inBubble(t, &ensemble.Options{Trust: ensemble.TrustAll}, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
			calls := 0
			liar := ensembletest.NewTool("liar", func(context.Context, *invoker.Call) (invoker.Output, error) {
				calls++
				if claimed == invoker.Unavailable {
					source.Lose(errDied)
				}
				return invoker.Output{}, &invoker.Failure{Code: claimed, Content: canister.Texts("not I")}
			})
			liar.Def.Hints.ReadOnly = claimed == invoker.OutcomeUnknown
			source.SetTools(liar)
			_, failure := invoke(t.Context(), toolOf(t, e, "liar"))
			if failure == nil || calls != 1 {
				t.Errorf("%s: %v after %d calls", claimed, failure, calls)
			}
		})
	}
}

// The allow and deny lists hold for resources, templates and prompts, whether they are
// listed or not.
func TestListsHoldForLibraries(t *testing.T) {
	note := func(uri string) local.Resource {
		return local.Resource{Resource: ensemble.Resource{URI: uri, Name: uri}, Read: func(context.Context) ([]canister.ResourceContent, error) {
			return []canister.ResourceContent{{Text: uri}}, nil
		}}
	}
	library := local.Library{
		Updates:   new(local.Updates),
		Resources: []local.Resource{note("note:///a"), note("note:///secret"), note("file:///a")},
		Templates: []local.Template{{Template: ensemble.Template{URI: "note:///by/{+name}"}, Read: func(_ context.Context, uri string, _ map[string]string) ([]canister.ResourceContent, error) {
			return []canister.ResourceContent{{Text: uri}}, nil
		}}},
		Prompts: []local.Prompt{{Prompt: ensemble.Prompt{Name: "ask"}, Get: func(context.Context, map[string]string) (*ensemble.Messages, error) {
			return &ensemble.Messages{}, nil
		}}, {Prompt: ensemble.Prompt{Name: "tell"}, Get: func(context.Context, map[string]string) (*ensemble.Messages, error) {
			return &ensemble.Messages{}, nil
		}}},
	}
	e := ensemble.New("notes", library.Source(), &ensemble.Options{Allow: []string{"note:*", "ask"}, Deny: []string{"*secret*"}})
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	resources, aside, err := e.Resources(t.Context())
	if err != nil || len(resources) != 1 || resources[0].URI != "note:///a" || len(aside) != 2 {
		t.Errorf("the resources are %v, without %v, %v", resources, aside, err)
	}
	if prompts, aside, err := e.Prompts(t.Context()); err != nil || len(prompts) != 1 || len(aside) != 1 {
		t.Errorf("the prompts are %v, without %v, %v", prompts, aside, err)
	}
	for uri, want := range map[string]bool{
		"note:///a": true, "note:///by/x": true, "note:///secret": false, "note:///%73ecret": false, "note:///by/secret": false,
		"file:///a": false, "note:///by/../../secret": false,
	} {
		if _, err := e.ReadResource(t.Context(), uri); (err == nil) != want {
			t.Errorf("reading %s: %v", uri, err)
		}
		if stop, err := e.Subscribe(t.Context(), uri); (err == nil) != want {
			t.Errorf("subscribing to %s: %v", uri, err)
		} else if stop != nil {
			stop()
		}
	}
	if _, err := e.GetPrompt(t.Context(), "tell", nil); invoker.AsFailure(err).Code != invoker.NotFound {
		t.Errorf("a prompt that is not allowed: %v", err)
	}
	if _, err := e.Complete(t.Context(), &ensemble.CompletionRequest{Prompt: "tell", Argument: "x"}); invoker.AsFailure(err).Code != invoker.NotFound {
		t.Errorf("the completion of a prompt that is not allowed: %v", err)
	}
	if _, err := e.GetPrompt(t.Context(), "ask", nil); err != nil {
		t.Errorf("a prompt that is allowed: %v", err)
	}
}

// anything is a source whose connections have each resource that they are asked for.
type anything struct {
	ensemble.Connection
	ensemble.Library
	asked *[]string
}

func (a anything) Open(ctx context.Context) (ensemble.Connection, error) {
	c, err := (&local.Library{}).Source().Open(ctx)
	if err != nil {
		return nil, err
	}
	return anything{c, c.(ensemble.Library), a.asked}, nil
}

func (a anything) Read(_ context.Context, uri string) ([]canister.ResourceContent, error) {
	*a.asked = append(*a.asked, uri)
	return nil, nil
}

func (a anything) Subscribe(_ context.Context, uri string) error {
	*a.asked = append(*a.asked, uri)
	return nil
}

// The allow and deny lists hold for all spellings of a URI, and what they do not exclude is
// read with the one that was sent.
func TestListsHoldForSpellings(t *testing.T) {
	var asked []string
	e := ensemble.New("e", anything{asked: &asked}, &ensemble.Options{
		Allow: []string{"file:///*", "https:*", "note:*"}, Deny: []string{"file:///secret/*", "https://h/private/*", "note:///a", "https://h:443/b"},
	})
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	for _, uri := range []string{
		"file:///..\t/secret/a", "file:///sec\tret/a", "file:///a/..\n/secret/a", "file:///secret\\a", "file:///%73ecret/a", "file:/secret/a",
		"https:/h/private/x", "https://h:443/private/x", "https://user@h/private/x", "https://h/%70rivate/x?%", "https://h/b", "note:///a#x", "note:/a",
	} {
		if _, err := e.ReadResource(t.Context(), uri); err == nil || invoker.AsFailure(err).Code != invoker.NotFound {
			t.Errorf("reading %q: %v", uri, err)
		}
		if _, err := e.Subscribe(t.Context(), uri); err == nil || invoker.AsFailure(err).Code != invoker.NotFound {
			t.Errorf("subscribing to %q: %v", uri, err)
		}
	}
	if len(asked) > 0 {
		t.Errorf("the server was asked for %q", asked)
	}
	for _, uri := range []string{"file:///a%2Fb%20c", "https://u@H:443/%70/x", "note:///b#x"} {
		if _, err := e.ReadResource(t.Context(), uri); err != nil || asked[len(asked)-1] != uri {
			t.Errorf("reading %s: %v; the server was asked for %q", uri, err, asked)
		}
	}
}
