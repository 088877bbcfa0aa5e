// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"errors"
	"maps"
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/converse/internal/clienttools"
	"github.com/consort-go/consort/converse/internal/toolchoice"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// A client can bring tools with a message, for the turn of that message, and executes them
// itself: the call waits, as for the answer of a person, and the answer has the result.

// clientOffer are the tools of the client that are on offer, by name; nil for none.
type clientOffer map[string]*invoker.Definition

// Two tools of one name cannot both be offered.
var (
	errClientHasName = errors.New("the client has a tool of this name")
	errServerHasName = errors.New("the server has a tool of this name")
)

// clientTools returns the tools of the client for the turn that begins at an index.
func (t *turn) clientTools(begin int) []*invoker.Definition {
	if begin < 0 {
		return nil
	}
	return clienttools.Of(t.conv.history[begin])
}

// offerWith returns the offer of a catalog with the tools of the client at its end. The limits of
// tools count them first.
func offerWith(catalog *ensemble.Catalog, client []*invoker.Definition, model Model, limit int) *offer {
	choice := toolchoice.For(model, limit)
	if len(client) > 0 && choice.Limit >= 0 {
		limit = max(0, choice.Limit-len(client))
	}
	o := offerOf(catalog, model, limit)
	if len(client) == 0 {
		return o
	}
	with := o.copy(catalog)
	with.refused, with.aside, with.client = maps.Clone(o.refused), slices.Clone(o.aside), clientOffer{}
	for _, definition := range client {
		err := choice.Screen(definition)
		switch {
		case o.tools[definition.Name] != nil:
			err = errServerHasName
		case err == nil:
			err = choice.Place(len(with.set.Definitions))
		}
		if err != nil {
			with.aside = append(with.aside, ensemble.Aside{Ensemble: clienttools.Ensemble, Tool: definition.Name, Reason: err.Error()})
			continue
		}
		with.set.Definitions = append(with.set.Definitions, definition)
		with.client[definition.Name] = definition
	}
	return with
}

// clientTool returns the definition of the client's tool that the model called, or nil.
func (o *offer) clientTool(invocation canister.Invocation) *invoker.Definition {
	if o == nil || invocation.Parent != "" {
		return nil
	}
	return o.client[invocation.Name]
}

// withoutClient returns the definitions that other tools may call.
func (o *offer) withoutClient() []*invoker.Definition {
	if len(o.client) == 0 {
		return o.set.Definitions
	}
	isClient := func(d *invoker.Definition) bool { return o.client[d.Name] != nil }
	return slices.DeleteFunc(slices.Clone(o.set.Definitions), isClient)
}

// forward decides about a call of a tool of the client. The rules for approvals do not apply,
// since the client executes it. A result holds for every identity, and in a fork.
func (g *gate) forward(c *call) callDecision {
	wait, answer := c.state.Wait, c.state.Answer
	if clienttools.IsCall(wait) && answer.ID != "" {
		content, failure := clienttools.Returned(answer)
		return callDecision{by: answer.By, content: content, failure: failure, done: failure == nil}
	}
	arguments, failure := g.prepare(c)
	switch {
	case failure != nil && clienttools.IsCall(wait):
		return callDecision{failure: clienttools.Unreturned(failure.Message)}
	case failure != nil:
		return callDecision{failure: failure}
	case clienttools.IsCall(wait) && !calls.Inherited(wait, g.opts.ID):
		return callDecision{failure: clienttools.Overdue(wait)}
	}
	if arguments, failure = clienttools.Arguments(c.client, arguments); failure != nil {
		return callDecision{failure: failure}
	}
	asked, failure := g.newWait(c, canister.WaitElicitation, deferral{}, string(arguments))
	if failure == nil {
		asked.Question, asked.Metadata = clienttools.Question(c.client.Name), clienttools.Mark()
	}
	return callDecision{awaits: asked, failure: failure}
}
