// SPDX-License-Identifier: Apache-2.0

package directcall

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/invoker"
)

// Print prints the outcome of a call, as a canister if inJSON is set. A call that failed is an
// error with the text of its failure.
func Print(screen *terminal.Screen, inJSON bool, call *invoker.Call, output invoker.Output, err error) error {
	var usage *exit.Error
	if errors.As(err, &usage) {
		return err
	}
	result := canister.Result{Invocation: call.ID}
	result.Content, result.Metadata = Content(output, err)
	result.ID, result.Time = rand.Text(), time.Now()
	failure := invoker.AsFailure(err)
	if failure != nil {
		result.Code, result.Retryable = string(failure.Code), failure.Retryable
	}
	if inJSON {
		return printJSON(screen, result)
	}
	text := display.Contents(result.Content)
	if failure != nil {
		var cause string
		if died, ok := errors.AsType[*ensemble.ProcessError](failure.Cause); ok {
			cause = terminal.CauseText(died.Error())
		}
		return exit.With(exit.Tool, fmt.Errorf("%s: %s%s", failure.Code, cmp.Or(text, failure.Message), cause))
	}
	screen.PrintLine(text)
	return screen.Err()
}

func printJSON(screen *terminal.Screen, result canister.Result) error {
	if err := screen.PrintCanisters(result); err != nil || !result.Failed() {
		return err
	}
	return &exit.Error{Status: exit.Tool}
}
