// SPDX-License-Identifier: Apache-2.0

// Package bench measures what the runtime costs over a loop that is written by
// hand on openai-go and go-sdk alone. Both do the same work over the same
// servers, which are processes of their own, so that only the client's cost is
// counted. Of servers it is the server that counts: the runtime's runs beside the
// one that go-sdk alone makes, with the same tool. Run
//
//	.ci/bench
//
// for the ratios, or go test -bench for the figures behind them.
package bench
