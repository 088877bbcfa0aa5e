// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
)

// Messages that are too large fail alone: calls under way and later ones go on.
func TestMCPMessagesThatAreTooLarge(t *testing.T) {
	const limit = 64 << 10
	begun, goOn := make(chan struct{}, 1), make(chan struct{})
	wait := ensembletest.NewTool("wait", func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
		begun <- struct{}{}
		<-goOn
		return invoker.Output{Content: canister.Texts("waited")}, nil
	})
	size := ensembletest.NewTool("size", func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		if strings.Contains(string(call.Arguments), "large") {
			return invoker.Output{Content: canister.Texts(strings.Repeat("y", 2*limit))}, nil
		}
		return invoker.Output{Content: canister.Texts("small")}, nil
	})
	s := mcpServer(t, &grpctool.ServerOptions{MaxMessage: limit}, wait, size)
	far := opened(t, grpctool.MCP(s.address, &grpctool.Options{Plaintext: true, MaxMessage: limit}, nil))
	tools := map[string]invoker.Invoker{"wait": tool(t, far, "wait"), "size": tool(t, far, "size")}
	call := func(name, arguments string) (string, invoker.Code) {
		output, err := tools[name].Invoke(within(t), &invoker.Call{Arguments: []byte(arguments)})
		if failure, ok := errors.AsType[*invoker.Failure](err); ok {
			return failure.Message, failure.Code
		}
		return canister.TextOf(output.Content), ""
	}
	type outcome struct {
		text string
		code invoker.Code
	}
	waited := make(chan outcome, 1)
	go func() {
		text, code := call("wait", `{}`)
		waited <- outcome{text, code}
	}()
	await(t, "the call", begun)
	if text, code := call("size", `{"x":"`+strings.Repeat("x", 2*limit)+`"}`); code != invoker.InvalidArguments || !strings.Contains(text, "at most 65536 are allowed") {
		t.Errorf("large arguments: %s %q", code, text)
	}
	if text, code := call("size", `{"x":"large"}`); code == "" || code == invoker.OutcomeUnknown || !strings.Contains(text, "at most 65536 are allowed") {
		t.Errorf("a large result: %s %q", code, text)
	}
	if text, code := call("size", `{}`); text != "small" {
		t.Errorf("a later call: %s %q", code, text)
	}
	close(goOn)
	if o := await(t, "the result", waited); o.text != "waited" {
		t.Errorf("the call under way: %s %q", o.code, o.text)
	}
}

// A result that only the client takes for too large ends the stream, and the call says why.
func TestMCPResultTooLargeForTheClient(t *testing.T) {
	large := ensembletest.NewTool("large", func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{Content: canister.Texts(strings.Repeat("y", 128<<10))}, nil
	})
	s := mcpServer(t, &grpctool.ServerOptions{}, large)
	far := opened(t, grpctool.MCP(s.address, &grpctool.Options{Plaintext: true, MaxMessage: 64 << 10}, nil))
	_, err := tool(t, far, "large").Invoke(within(t), &invoker.Call{})
	if failure, ok := errors.AsType[*invoker.Failure](err); !ok || failure.Code != invoker.ResultTooLarge {
		t.Errorf("%v", err)
	}
}
