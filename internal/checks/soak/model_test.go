// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble"
)

// wishes says which tool a model asks for next, and with what arguments.
type wishes func(*rand.Rand) (name, arguments string)

// restless is a model that asks for tools at random, three times a turn, and
// then says that it is done. It belongs to one conversation.
type restless struct {
	random *rand.Rand
	think  time.Duration // at most, before it says anything
	wishes wishes
	over   *atomic.Bool // ask for nothing more
}

// Exchange thinks, and then asks or answers.
func (m *restless) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		if problems := sequence.Check(request.History); len(problems) > 0 {
			yield(nil, fmt.Errorf("the model was given a history that is not sound: %v", problems))
			return
		}
		pause := time.NewTimer(time.Duration(m.random.Int64N(int64(m.think))))
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-ctx.Done():
			yield(nil, context.Cause(ctx))
			return
		}
		if yield(converse.Delta{Text: "Let me"}, nil) && yield(converse.Delta{Text: " see."}, nil) {
			yield(m.reply(request), nil)
		}
	}
}

func (m *restless) reply(request *converse.Request) converse.Reply {
	message := canister.Assistant{Head: canister.Head{ID: request.NewID()}, Content: canister.Texts("Let me see.")}
	if m.over.Load() || request.NoInvocations || exchangesOf(request.History) >= 3 {
		message.Finish = canister.FinishStop
		return converse.Reply{Message: message}
	}
	message.Finish = canister.FinishInvocations
	reply := converse.Reply{Message: message}
	for i := range 1 + m.random.IntN(3) {
		name, arguments := m.wishes(m.random)
		reply.Invocations = append(reply.Invocations, canister.Invocation{
			Head: canister.Head{ID: request.NewID()}, Message: message.ID,
			CallID: fmt.Sprint("call", i), Name: name, Arguments: arguments,
		})
	}
	return reply
}

// anything wishes for any tool of any server, also of one that is away, and now
// and then for what makes no sense. The keys of its effects begin with name.
func anything(name string, servers []string) wishes {
	keys := 0
	return func(random *rand.Rand) (string, string) {
		keys++
		key := fmt.Sprintf("%s-%d", name, keys)
		tool, arguments := "effect", fmt.Sprintf(`{"key":%q}`, key)
		switch n := random.IntN(100); {
		case n < 45:
		case n < 65:
			tool = "idempotent_effect"
		case n < 80:
			tool, arguments = "echo", fmt.Sprintf(`{"text":%q}`, key)
		case n < 88:
			tool, arguments = "progress", `{"steps":5}`
		case n < 92:
			tool, arguments = "big", `{"bytes":20000}`
		case n < 95:
			tool, arguments = "fail", fmt.Sprintf(`{"text":%q}`, key)
		case n < 97:
			tool, arguments = "wait", `{}`
		case n < 98:
			tool = "no_such_tool"
		case n < 99:
			arguments = `{"key":`
		default:
			arguments = fmt.Sprintf(`{"clef":%q}`, key)
		}
		return ensemble.NameFor(servers[random.IntN(len(servers))], tool), arguments
	}
}

// exchangesOf counts the exchanges of the newest turn.
func exchangesOf(history []canister.Canister) (n int) {
	for _, c := range history {
		switch c.(type) {
		case canister.User:
			n = 0
		case canister.Assistant:
			n++
		}
	}
	return n
}

// split is the server and the tool that a call of the model is meant for.
func split(name string) (server, tool string) {
	server, tool, _ = strings.Cut(name, "__")
	return server, tool
}
