// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"encoding/json"

	"github.com/consort-go/consort/canister"
)

// Tools lets a tool call the other tools of its conversation. Each call becomes an
// invocation of the conversation, with everything that belongs to one: approval, intent,
// limits, budgets, audit, trusted values, and a result in the history. The model sees
// neither these calls nor their results.
//
// A call is not made while the tool runs. The tool requests calls and returns; the
// conversation makes the calls, which can take days if a person must approve one, and then
// calls the tool again, with the same [Call].ID and arguments, maybe in another process.
// This time [Tools.Result] returns the results. So the tool must do the same each time, and
// have no effects of its own: it must say that it is read-only or idempotent, and the ensemble must trust it.
//
// The methods may be called concurrently until the tool returns.
type Tools interface {
	// Offered returns the tools of the turn, under the names that the model uses. The
	// caller must not change them.
	Offered() []*Definition
	// Result returns the result of a call; made is false if the call was not made yet. The
	// key distinguishes the call from the others that the tool makes, and must be the same
	// each time. It is an error if an earlier run has made another call with this key.
	Result(key, name string, arguments json.RawMessage) (result canister.Result, made bool, err error)
	// Request requests a call of a tool, with a JSON object as arguments. The tool should
	// then return; its output is ignored, and all requested calls are made in
	// parallel. It is an error if the call was made or requested already.
	Request(key, name string, arguments json.RawMessage) error
}
