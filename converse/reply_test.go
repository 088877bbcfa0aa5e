// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/invoker"
)

// model is a model made of a function.
type model func(*converse.Request, func(converse.ModelEvent, error) bool)

func (m model) Exchange(_ context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) { m(request, yield) }
}

// A model that breaks the rules is an error, and spoils no history.
func TestBrokenReplies(t *testing.T) {
	for name, spoil := range map[string]func(*converse.Reply){
		"":                                      func(*converse.Reply) {},
		`message is not from Request.NewID: ""`: func(r *converse.Reply) { r.Message.ID = "" },
		`message is not from Request.NewID: "user"`: func(r *converse.Reply) { r.Message.ID = "user" },
		`invocation 0 is not from Request.NewID`:    func(r *converse.Reply) { r.Invocations[0].ID = "" },
		`invocation 1 is not from Request.NewID`:    func(r *converse.Reply) { r.Invocations[1].ID = r.Invocations[0].ID },
		`taken: "user"`:                             func(r *converse.Reply) { r.Invocations[1].ID = "user" },
		`ID of invocation 0`:                        func(r *converse.Reply) { r.Invocations[0].ID = r.Message.ID },
		`Message of invocation 1`:                   func(r *converse.Reply) { r.Invocations[1].Message = "user" },
		`CallID of invocation 0 is empty or taken`:  func(r *converse.Reply) { r.Invocations[0].CallID = "" },
		`CallID of invocation 1 is empty or taken`:  func(r *converse.Reply) { r.Invocations[1].CallID = r.Invocations[0].CallID },
	} {
		t.Run(name, func(t *testing.T) {
			talk := converse.New(model(func(request *converse.Request, yield func(converse.ModelEvent, error) bool) {
				head := canister.Head{ID: request.NewID()}
				asks := func(callID string) canister.Invocation {
					return canister.Invocation{Head: canister.Head{ID: request.NewID()}, Message: head.ID, CallID: callID, Name: "a"}
				}
				reply := converse.Reply{Message: canister.Assistant{Head: head}, Invocations: []canister.Invocation{asks("x"), asks("y")}}
				spoil(&reply)
				if yield(nil, nil) && yield(reply, nil) {
					t.Error("the model is asked for more than a reply")
				}
			}), nil, &converse.Options{
				History: []canister.Canister{canister.User{Head: canister.Head{ID: "user"}}},
				Limits:  converse.Limits{Exchanges: 1},
			})
			err := drain(talk.Continue(t.Context()))
			sound(t, talk.History())
			var failure *converse.ModelError
			if name != "" && (!errors.As(err, &failure) || !strings.Contains(err.Error(), name) || len(talk.History()) != 1) {
				t.Errorf("err = %v, and there are %d canisters", err, len(talk.History()))
			}
			if name == "" && err != nil {
				t.Error(err)
			}
		})
	}
}

// What a model appends to the history that it is shown stays its own.
func TestHistoryIsNotTheModels(t *testing.T) {
	talk := converse.New(model(func(request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		mine := append(request.History, canister.User{Head: canister.Head{ID: "mine"}})
		message := canister.Assistant{Head: canister.Head{ID: request.NewID()}}
		yield(converse.Reply{Message: message}, nil)
		if mine[len(mine)-1].Header().ID != "mine" {
			t.Error("the conversation and the model write to one array")
		}
	}), nil, nil)
	for range 10 {
		play(t, talk, "Go.")
	}
}

// The members of metadata that the conversation writes are not those of a model.
func TestMetadataOfTheModel(t *testing.T) {
	talk := converse.New(model(func(request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		metadata := canister.Fields{
			"io.github.consort-go/limit": []byte(`"time_limit"`), "io.github.consort-go/tools-added": []byte(`["a"]`), "io.github.consort-go/trace": []byte(`"1"`),
			"example.com/own": []byte(`1`),
		}
		yield(converse.Reply{Message: canister.Assistant{Head: canister.Head{ID: request.NewID(), Extra: canister.Extra{Metadata: metadata}}}}, nil)
		if len(metadata) != 4 {
			t.Error("the conversation writes to the metadata of the model")
		}
	}), nil, nil)
	play(t, talk, "Go.")
	list := talk.History()
	if metadata := list[len(list)-1].Header().Metadata; len(metadata) != 1 || metadata["example.com/own"] == nil {
		t.Errorf("the metadata is %s", metadata)
	}
}

// A model whose value cannot be the key of a map can screen tools too.
func TestScreenerThatCannotBeCompared(t *testing.T) {
	talk := converse.New(fussy{words: []string{"odd"}}, newRoster(t, echo("a"), echo("odd")), nil)
	if aside := play(t, talk, "Go.")[0].(converse.TurnStarted).Aside; len(aside) != 1 {
		t.Errorf("aside = %v", aside)
	}
}

// fussy screens tools by the words of their names.
type fussy struct{ words []string }

func (f fussy) Screen(definition *invoker.Definition) error {
	for _, word := range f.words {
		if strings.Contains(definition.Name, word) {
			return errors.New("its name is " + word)
		}
	}
	return nil
}

func (fussy) Exchange(_ context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		yield(converse.Reply{Message: canister.Assistant{Head: canister.Head{ID: request.NewID()}}}, nil)
	}
}
