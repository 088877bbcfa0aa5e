// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/invoker"
)

var author = invoker.NewTrusted[string]("author")

// greeting is a model that says for whom it works. At first another message arrives meanwhile.
type greeting struct{ post func(name string) }

func (g *greeting) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		name, _ := author.From(ctx)
		if name == "bob" {
			g.post("eve")
		}
		yield(converse.Reply{Message: canister.Assistant{
			Head: canister.Head{ID: request.NewID()}, Content: canister.Texts("Hello, " + name), Finish: canister.FinishStop,
		}}, nil)
	}
}

// A turn runs with the trusted values of the author of its last message, also if that arrives while the turn
// is opened, or during an exchange.
func TestValuesOfTheLastMessage(t *testing.T) {
	store := history.NewMemory()
	post := func(name string) {
		message := canister.User{Head: canister.Head{ID: name}, Content: canister.Texts(name)}
		if err := engine.Post(t.Context(), store, nil, "talk", message, time.Now()); err != nil {
			t.Error(err)
		}
	}
	post("ada")
	opts, err := (&WorkerOptions{Values: func(ctx context.Context, info history.Info) ([]invoker.Value, error) {
		list, err := history.From(ctx, store, info.ID, 0)
		name := list[len(list)-1].Header().ID
		if name == "ada" {
			post("bob")
		}
		return []invoker.Value{author.Value(name)}, err
	}}).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	w := &Worker{opts: opts, store: store, open: func(_ context.Context, id string) (*converse.Conversation, error) {
		return converse.New(&greeting{post}, nil, &converse.Options{ID: id, Log: store}), nil
	}}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	l := &lease{timeout: time.Minute, beat: func(context.Context) error { return nil }, end: cancel}
	turn, err := w.carryOn(ctx, l, &engine.Publisher{Log: store, Conversation: "talk"})
	if text := canister.TextOf(turn.Answer.Content); err != nil || text != "Hello, eve" {
		t.Errorf("the answer is %q, %v", text, err)
	}
}
