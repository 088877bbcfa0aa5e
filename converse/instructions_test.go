// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
)

// saying is a server that says something about its use.
func saying(instructions string, tools ...string) *ensembletest.Source {
	source := ensembletest.NewSource()
	source.Peer.Instructions = instructions
	for _, name := range tools {
		source.SetTools(echo(name))
	}
	return source
}

// documents are the titles and texts of the documents of a request.
func documents(request *converse.Request) string {
	var texts []string
	for _, c := range request.History {
		if document, ok := c.(canister.Document); ok {
			texts = append(texts, canister.TextOf(document.Content))
		}
	}
	return strings.Join(texts, "\n---\n")
}

// A model is told once what servers say about the use of their tools: before the
// first message, with the name of the server before it, cleaned and without
// secrets. All that was sent stays the beginning of what follows.
func TestInstructionsReachTheModelOnce(t *testing.T) {
	source := saying("Use wisely.\u202e\nThe key is hunter2.", "act")
	redact := func(text string) string { return strings.ReplaceAll(text, "hunter2", "[secret]") }
	silent := saying("Has no tools.")
	omitted := saying("Not this.", "other")
	roster := rosterOf(t, ensemble.New("files", source, nil), ensemble.New("silent", silent, nil),
		ensemble.New("omitted", omitted, &ensemble.Options{OmitInstructions: true}))
	model := &narrow{window: 1 << 20}
	talk := converse.New(model, roster, &converse.Options{Instructions: "Be brief.", Redact: redact})
	for _, message := range []string{"one", "two", "three"} {
		play(t, talk, message)
	}
	sound(t, talk.History())
	if got := kinds(talk.History()[:4]); got != "supervisor document user assistant" {
		t.Errorf("the history begins with %s", got)
	}
	last := model.requests[2]
	for i, request := range model.requests {
		said := documents(request)
		if strings.Count(said, `The server "files" says about its tools:`+"\n> Use wisely.\n> The key is [secret].") != 1 ||
			strings.Count(said, "The server") != 1 {
			t.Errorf("request %d tells: %s", i, said)
		}
		for at, c := range request.History {
			if c.Header().ID != last.History[at].Header().ID {
				t.Fatalf("request %d is not the beginning of the last one", i)
			}
		}
	}
	if strings.Contains(documents(last), "Not this.") || strings.Contains(documents(last), "Has no tools.") {
		t.Errorf("too much is told: %s", documents(last))
	}
}

func kinds(all []canister.Canister) string {
	var words []string
	for _, c := range all {
		words = append(words, string(c.Kind()))
	}
	return strings.Join(words, " ")
}

// The history knows what was told: a conversation that is taken up from its log,
// or forked, tells nothing again.
func TestInstructionsAreInTheHistory(t *testing.T) {
	store := history.NewMemory()
	for _, id := range []string{"talk", "talk", "fork"} {
		model := &narrow{window: 1 << 20}
		talk := converse.New(model, rosterOf(t, ensemble.New("files", saying("Use wisely.", "act"), nil)), &converse.Options{ID: id, Log: store})
		play(t, talk, "hello")
		if said := documents(model.requests[0]); strings.Count(said, "Use wisely.") != 1 {
			t.Errorf("%s tells: %s", id, said)
		}
		if id == "talk" {
			_ = store.Fork(t.Context(), "talk", talk.Length(), "fork")
		}
	}
}

// A server that connects later, or says something else, is told of when its
// tools are: behind what was said, as far as there is room.
func TestInstructionsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late, flapping := saying("Late advice.", "late"), saying("First.", "act")
		late.Fail(ensembletest.Open, 1, errors.New("not yet"))
		roster := rosterOf(t, ensemble.New("late", late, nil), ensemble.New("flapping", flapping, nil))
		model := &narrow{window: 1 << 20}
		talk := converse.New(model, roster, nil)
		play(t, talk, "one")
		if said := documents(model.requests[0]); strings.Contains(said, "Late") || !strings.Contains(said, "First.") {
			t.Errorf("at first: %s", said)
		}
		for i := range 12 {
			flapping.Peer.Instructions = fmt.Sprint(i, strings.Repeat("é", 2000))
			if e, ok := roster.Ensemble("flapping"); !ok || e.Disconnect(t.Context()) != nil {
				t.Fatal("it does not disconnect")
			}
			if e, ok := roster.Ensemble("late"); !ok || e.Connect(t.Context()) != nil {
				t.Fatal("it does not connect")
			}
			play(t, talk, "more")
		}
		said := documents(model.requests[12])
		if !strings.Contains(said, "Late advice.") || !strings.Contains(said, "This replaces the earlier text of this server:\n\nThe server \"flapping\"") {
			t.Errorf("in the end: %s", said)
		}
		if n := strings.Count(said, "é"); n > ensemble.MaxAllInstructions || n < ensemble.MaxAllInstructions-2500 {
			t.Errorf("%d characters are told", n)
		}
	})
}

// The model of an engine, which finds the message in the log, is told as well,
// and no invocation is parted from its result.
func TestInstructionsOfWhatIsContinued(t *testing.T) {
	model := &narrow{window: 1 << 20}
	talk := converse.New(model, rosterOf(t, ensemble.New("local", saying("Use wisely.", "long"), nil)), nil)
	if err := talk.Add(t.Context(), canister.User{Content: canister.Texts("look")}); err != nil {
		t.Fatal(err)
	}
	if _, err := talk.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	sound(t, talk.History())
	if got := kinds(talk.History()); !strings.HasPrefix(got, "user document assistant invocation") || strings.Count(got, "document") != 1 {
		t.Errorf("the history is %s", got)
	}
}

// A summary takes the place of the document, and the model is told again.
func TestInstructionsAfterASummary(t *testing.T) {
	model := &narrow{window: 6000, tokens: true, summary: "They talked.", finish: canister.FinishStop}
	talk := converse.New(model, rosterOf(t, ensemble.New("files", saying("Use wisely.", "act"), nil)),
		&converse.Options{Compaction: &converse.Compaction{Window: 1500, At: 0.6, Keep: 1}})
	for range 12 {
		play(t, talk, strings.Repeat("word ", 100))
	}
	if len(model.summaries) == 0 {
		t.Fatal("there was no summary")
	}
	for _, request := range model.summaries {
		if text := canister.TextOf(canister.ContentOf(request.History[1])); strings.Contains(text, "Use wisely.") {
			t.Errorf("it is summarised: %s", text)
		}
	}
	for i, request := range model.requests {
		if said := documents(request); strings.Count(said, "Use wisely.") != 1 {
			t.Errorf("request %d tells: %s", i, said)
		}
	}
}

// A long text is shortened in characters, and says so.
func TestInstructionsAreBounded(t *testing.T) {
	model := &narrow{window: 1 << 20}
	talk := converse.New(model, rosterOf(t, ensemble.New("files", saying(strings.Repeat("é", 5000), "act"), nil)), nil)
	play(t, talk, "hello")
	said := documents(model.requests[0])
	if strings.Count(said, "é") != 4000 || !strings.Contains(said, "\n[1000 of 5000 characters omitted]") || !utf8.ValidString(said) {
		t.Errorf("told: %s", said[len(said)-200:])
	}
}
