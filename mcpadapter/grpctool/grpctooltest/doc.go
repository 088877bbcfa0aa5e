// SPDX-License-Identifier: Apache-2.0

// Package grpctooltest is a tool server over gRPC for tests: its tools are
// scripted, it remembers what was asked, and it misbehaves on request. It is to
// package grpctool what ensembletest is to package ensemble, and stands here
// because ensembletest is light and grpctool the one doorway to gRPC.
//
// The server is a real one, of grpc-go on a loopback socket, and speaks the
// contract of docs/grpc.md by both names of the service, or by those that
// Options.Services has. Clients in any language can be tested with it:
//
//	fake := grpctooltest.New(t, nil)
//	farmer := fake.Returns("get_farmer", map[string]any{"name": "Wanjiku"})
//	fake.Fails("get_weather", toolspb.ErrorCode_ERROR_CODE_SERVICE_UNAVAILABLE, "The weather service is down.")
//
//	farm := ensemble.New("farm", grpctool.Source(fake.Address(), fake.ClientOptions()), nil)
//	// let a conversation go on with it, and then
//	farmer.Expect(t, `{"farmer_id": "WM-4521"}`)
//	farmer.Calls()[0].CallerAgentID
//
// Tools are fixed results ([Server.Returns], [Server.Answers]), failures
// ([Server.Fails]), functions ([Server.Does]) and invokers such as those of
// ensembletest ([Server.Offer]).
//
// # Faults
//
// A [Rule] names a [Fault], the [Place] at which it strikes, and at which
// occasions, as in package faultserver. [Faults] lists them all with what they
// do, which fields of a rule they read and where they can strike; a rule that
// never could is an error:
//
//	err := fake.Script(grpctooltest.Rule{Fault: grpctooltest.Die, At: grpctooltest.AfterEffect, Tool: "pay"})
//	// let a client call the tool, which must say that the outcome is unknown
//	pay.Ran() // must be 1
//	err = fake.Start() // at the same address
//
// A tool's effect is that its function, or its fixed result, was asked for:
// [Tool.Ran] counts effects, and [Tool.Calls] the requests that arrived. A client
// that calls twice what may have run is caught by the difference.
package grpctooltest
