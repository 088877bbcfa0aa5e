// SPDX-License-Identifier: Apache-2.0

package ensembletest

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

// Tool is a scripted invoker. Its fields must not be changed after first use.
type Tool struct {
	// Def is the definition; [NewTool] fills in a name, a description and an input
	// schema that accepts any object.
	Def invoker.Definition

	run   func(ctx context.Context, call *invoker.Call) (invoker.Output, error)
	calls atomic.Int64
}

var _ invoker.Invoker = (*Tool)(nil)

// NewTool makes a tool that calls run.
func NewTool(name string, run func(ctx context.Context, call *invoker.Call) (invoker.Output, error)) *Tool {
	return &Tool{
		Def: invoker.Definition{
			Name:        name,
			Description: "The scripted tool " + name + ".",
			InputSchema: json.RawMessage(`{"type":"object"}`),
		},
		run: run,
	}
}

// Definition returns the definition.
func (t *Tool) Definition() *invoker.Definition { return &t.Def }

// Invoke counts the call and runs the function.
func (t *Tool) Invoke(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
	t.calls.Add(1)
	return t.run(ctx, call)
}

// Calls returns how often the tool was called.
func (t *Tool) Calls() int { return int(t.calls.Load()) }

// Returns makes a tool that answers with a text.
func Returns(name, text string) *Tool {
	return NewTool(name, func(context.Context, *invoker.Call) (invoker.Output, error) { return textOutput(text), nil })
}

// Fails makes a tool that fails with an error.
func Fails(name string, err error) *Tool {
	return NewTool(name, func(context.Context, *invoker.Call) (invoker.Output, error) { return invoker.Output{}, err })
}

// Panics makes a tool that panics with a value.
func Panics(name string, value any) *Tool {
	return NewTool(name, func(context.Context, *invoker.Call) (invoker.Output, error) { panic(value) })
}

// Gate is a tool whose calls block until the test releases them.
type Gate struct {
	*Tool
	// Begun receives each call when it has begun. It has room for 100 calls; a test
	// that makes more must read from it.
	Begun chan *invoker.Call

	release chan string
}

// NewGate makes a gate. A call of it ends with [Gate.Release] or when its context ends;
// if stubborn is set, only with [Gate.Release].
func NewGate(name string, stubborn bool) *Gate {
	g := &Gate{Begun: make(chan *invoker.Call, 100), release: make(chan string)}
	g.Tool = NewTool(name, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		ended := ctx.Done()
		if stubborn {
			ended = nil
		}
		g.Begun <- call
		select {
		case text := <-g.release:
			return textOutput(text), nil
		case <-ended:
			return invoker.Output{}, ctx.Err()
		}
	})
	return g
}

// Release makes one call answer with a text, and waits for a call if none is blocked.
func (g *Gate) Release(text string) { g.release <- text }

func textOutput(text string) invoker.Output {
	return invoker.Output{Content: canister.Texts(text)}
}
