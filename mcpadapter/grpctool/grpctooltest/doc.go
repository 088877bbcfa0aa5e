// SPDX-License-Identifier: Apache-2.0

// Package grpctooltest provides a gRPC tool server for tests: its tools are scripted,
// it records requests, and it misbehaves on request. It is the counterpart of
// ensembletest for package grpctool. It is a separate package because ensembletest has
// few dependencies and grpctool is the module's only gateway to gRPC.
//
// The server uses grpc-go on a loopback socket and implements the contract of
// docs/grpc.md under both names of the service, or under the names in Options.Services.
// It can test clients in any language:
//
//	fake := grpctooltest.New(t, nil)
//	farmer := fake.Returns("get_farmer", map[string]any{"name": "Wanjiku"})
//	fake.Fails("get_weather", toolspb.ErrorCode_ERROR_CODE_SERVICE_UNAVAILABLE, "The weather service is down.")
//
//	farm := ensemble.New("farm", grpctool.Source(fake.Address(), fake.ClientOptions()), nil)
//	// run a conversation that uses it, and then
//	farmer.Expect(t, `{"farmer_id": "WM-4521"}`)
//	farmer.Calls()[0].CallerAgentID
//
// Tools can be fixed results ([Server.Returns], [Server.Answers]), failures
// ([Server.Fails]), functions ([Server.Does]) and invokers, for example from
// ensembletest ([Server.Offer]).
//
// # Faults
//
// A [Rule] names a [Fault], the [Place] where it occurs, and the occasions at that
// place, as in package faultserver. [Faults] lists all faults with their effect, the
// fields of a rule that they read and the places where they can occur. A rule that can
// never apply is an error:
//
//	err := fake.Script(grpctooltest.Rule{Fault: "die", At: "after-effect", Tool: "pay"})
//	// let a client call the tool; it must report that the outcome is unknown
//	pay.Ran() // must be 1
//	err = fake.Start() // at the same address
//
// The effect of a tool is that its function or fixed result was requested: [Tool.Ran]
// counts effects, and [Tool.Calls] the requests that arrived. The difference reveals
// clients that repeat a call that may have run.
package grpctooltest
