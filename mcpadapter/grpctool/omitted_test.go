// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
)

// A required argument that has a default may be left out over gRPC too, at both
// ends.
func TestOmittedArgumentsReachTheServer(t *testing.T) {
	tool, err := invoker.Raw(invoker.Definition{
		Name:        "shoot",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"scale":{"type":"string","default":"css"}},"required":["scale"]}`),
	}, func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		return invoker.Output{Content: canister.Texts("got " + string(call.Arguments))}, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := grpctool.NewServer(rosterOf(t, ensemble.Local("browser", tool)), nil)
	address := registered(t, server)
	e := ensemble.New("far", grpctool.Source(address, &grpctool.Options{Plaintext: true}), nil)
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	tools, err := e.Tools(t.Context())
	if err != nil || len(tools) != 1 {
		t.Fatalf("%v, %v", tools, err)
	}
	output, err := tools[0].Invoke(t.Context(), &invoker.Call{Arguments: json.RawMessage(`{}`)})
	if text := canister.TextOf(output.Content); err != nil || text != "got {}" {
		t.Errorf("%q, %v", text, err)
	}
}
