// SPDX-License-Identifier: Apache-2.0

// Package bench measures the overhead of the runtime over handwritten loops that use
// only openai-go or anthropic-sdk-go, and go-sdk. Both do the same work with the same
// servers, which run in separate processes, so that only the client's cost is counted.
// For servers, the server's cost is counted: the runtime's server is compared with a plain
// go-sdk server that has the same tool. For stores, turns that are stored are compared with
// turns without a log. Run
//
//	.ci/bench
//
// for the ratios, .ci/bench table for a comparison that includes a loop on bare net/http, or
// go test -bench for the underlying figures.
package bench
