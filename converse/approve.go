// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"encoding/json"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

// ApproveFunc decides about one invocation before it runs. It may take as long
// as ctx lasts, for example to ask a person; the invocations of one message
// are put to it side by side. An error counts as a denial, with a reason that
// says that no decision was reached.
type ApproveFunc func(ctx context.Context, ask Approval) (Decision, error)

// Approval is what is to be decided.
type Approval struct {
	Invocation canister.Invocation
	// Ensemble and Tool say whose tool it is, under its own name.
	Ensemble, Tool string
	Definition     *invoker.Definition
	// Arguments are those of the invocation, known to be valid JSON.
	Arguments json.RawMessage
}

// Decision is the answer to an [Approval]: [Allow], [Deny] or [Change].
type Decision struct {
	denied    bool
	reason    string
	changed   bool
	arguments json.RawMessage
}

// Allow lets the invocation run as it is.
func Allow() Decision { return Decision{} }

// Deny keeps the invocation from running; the model is told the reason.
func Deny(reason string) Decision { return Decision{denied: true, reason: reason} }

// Change lets the invocation run with other arguments, a JSON object; the
// model is told of it with the result.
func Change(arguments json.RawMessage) Decision { return Decision{changed: true, arguments: arguments} }
