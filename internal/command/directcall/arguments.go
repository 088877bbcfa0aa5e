// SPDX-License-Identifier: Apache-2.0

package directcall

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/consort-go/consort/internal/exit"
)

// Arguments returns the arguments of a call. Where names their source in an error.
func Arguments(text, where string) (json.RawMessage, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &object); err != nil || object == nil {
		return nil, exit.Usagef("%s: expected a JSON object of arguments, such as '{\"city\": \"Oslo\"}'%s", where, wrongWith(err))
	}
	return json.RawMessage(text), nil
}

// wrongWith describes why JSON is not an object of arguments.
func wrongWith(err error) string {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return fmt.Sprintf(": %v (at byte %d)", err, syntax.Offset)
	case err != nil:
		return ": it is a different kind of JSON value"
	}
	return ": it is null"
}
