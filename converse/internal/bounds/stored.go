// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"cmp"
	"fmt"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

// Limits of a canister in its JSON form, in bytes.
const (
	maxStored = canister.MaxLine - 1<<20 // any log stores so much; a store adds a little to a line
	maxEscape = 6                        // the form has at most so many bytes for each byte of a text
)

// Stored returns a result as a log, if there is one, can store it. One that is too long for that
// becomes a failure: the turn could not end otherwise.
func Stored(result canister.Result, logged bool) canister.Result {
	if !logged {
		return result
	}
	size := fieldsSize(result.Metadata)
	for _, c := range result.Content {
		p := canister.PayloadOf(c)
		size += Size(c) + fieldsSize(p.Metadata) + fieldsSize(p.Unknown)
	}
	if size <= maxStored/maxEscape/2 { // the names of members are short
		return result
	}
	line, err := canister.Marshal(result)
	if err != nil || len(line) <= maxStored {
		return result
	}
	result.Code = cmp.Or(result.Code, string(invoker.ResultTooLarge))
	result.Content, result.Metadata = canister.Texts(fmt.Sprintf("The tool has returned, but its result was lost: it has %d bytes in its JSON form, and the log of the conversation stores at most %d.", len(line), maxStored)), nil
	return result
}
