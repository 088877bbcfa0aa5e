// SPDX-License-Identifier: Apache-2.0

// Package bench measures what the runtime costs over a loop that is written by
// hand on openai-go and go-sdk alone. Both do the same work over the same
// servers, which are processes of their own, so that only the client's cost is
// counted. Run
//
//	.ci/bench
//
// for the ratios, or go test -bench for the figures behind them.
package bench
