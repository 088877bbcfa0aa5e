// SPDX-License-Identifier: Apache-2.0

package grpctooltest_test

import (
	"context"
	"fmt"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/consort-go/consort/mcpadapter/grpctool/grpctooltest"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
)

// A tool that is called, one that fails, and the recorded calls. In a test, New replaces
// Start and Close.
func Example() {
	fake, err := grpctooltest.Start(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer fake.Close()
	farmer := fake.Returns("get_farmer", map[string]any{"name": "Wanjiku"})
	fake.Fails("get_weather", toolspb.ErrorCode_ERROR_CODE_SERVICE_UNAVAILABLE, "The weather service is down.")

	options := fake.ClientOptions()
	options.Caller = "advisor"
	farm := ensemble.New("farm", grpctool.Source(fake.Address(), options), nil)
	roster, err := ensemble.NewRoster(farm)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer roster.Close(ctx)
	catalog, err := roster.Catalog(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tool := range catalog.Tools() {
		output, err := tool.Invoke(ctx, &invoker.Call{Arguments: []byte(`{"id": "WM-4521"}`)})
		if failure := invoker.AsFailure(err); failure != nil {
			fmt.Println(tool.Definition().Name, "failed:", failure.Code)
			continue
		}
		fmt.Printf("%s: %s\n", tool.Definition().Name, output.Content[0].(canister.StructuredContent).JSON)
	}
	for _, call := range farmer.Calls() {
		fmt.Println("called by", call.CallerAgentID, "with", call.Arguments)
	}
	// Output:
	// get_farmer: {"name":"Wanjiku"}
	// get_weather failed: UNAVAILABLE
	// called by advisor with {"id": "WM-4521"}
}

// A server that dies after the effect of a call and before its answer. The caller must
// not be told that nothing happened.
func ExampleServer_Script() {
	fake, err := grpctooltest.Start(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer fake.Close()
	pay := fake.Returns("pay", "paid")
	err = fake.Script(grpctooltest.Rule{Fault: "die", At: "after-effect", Tool: "pay"})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	connection, err := grpctool.Source(fake.Address(), fake.ClientOptions()).Open(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer connection.Close(ctx)
	listing, err := connection.List(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = listing.Invokers[0].Invoke(ctx, &invoker.Call{})
	fmt.Println(invoker.AsFailure(err).Code, "and paid", pay.Ran(), "time")
	fmt.Println("back:", fake.Start())
	// Output:
	// OUTCOME_UNKNOWN and paid 1 time
	// back: <nil>
}

// The table of all faults, as a person would read it.
func ExampleFaults() {
	for _, info := range grpctooltest.Faults() {
		if len(info.Places) == 1 {
			fmt.Println(info.Fault, "occurs only at", info.Places[0])
		}
	}
	// Output:
	// junk occurs only at connect
	// many-tools occurs only at list
	// odd-tools occurs only at list
	// expired occurs only at connect
	// other-name occurs only at connect
	// self-signed occurs only at connect
}
