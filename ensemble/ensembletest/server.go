// SPDX-License-Identifier: Apache-2.0

package ensembletest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

// ServerTools returns the tools that the server of a source must offer to [TestSource],
// as invokers. A server written in Go can serve them as they are; others must do the
// same:
//
//   - echo, with {"text": string}, answers with that text as its one text
//     content. It is read-only.
//   - fail, with {"text": string}, fails as a tool does (in MCP, isError) with
//     that text as its one text content.
//   - wait, with {}, reports the progress 1 and then waits until it is
//     cancelled or its connection ends. It never answers.
//   - progress, with {"steps": integer}, reports the progress 1, 2, ... steps of
//     a total of steps, with the messages "step 1", "step 2", ..., and then
//     answers with the text "done". Without steps it takes 3.
func ServerTools() []invoker.Invoker {
	fail := NewTool("fail", serveFail)
	fail.Def.InputSchema = json.RawMessage(textSchema)
	wait := NewTool("wait", serveWait)
	progress := NewTool("progress", serveProgress)
	progress.Def.InputSchema = json.RawMessage(`{"type":"object","properties":{"steps":{"type":"integer","minimum":1}}}`)
	return []invoker.Invoker{Echo(), fail, wait, progress}
}

const textSchema = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`

// Echo makes the tool echo of [ServerTools].
func Echo() *Tool {
	echo := NewTool("echo", func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		text, err := textArgument(call)
		return textOutput(text), err
	})
	echo.Def.InputSchema = json.RawMessage(textSchema)
	echo.Def.Hints.ReadOnly = true
	return echo
}

func serveFail(_ context.Context, call *invoker.Call) (invoker.Output, error) {
	text, err := textArgument(call)
	if err != nil {
		return invoker.Output{}, err
	}
	return invoker.Output{}, &invoker.Failure{Code: invoker.ExecutionFailed, Content: canister.Texts(text)}
}

func serveWait(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
	call.Report(invoker.Progress{Done: 1, Message: "waiting"})
	<-ctx.Done()
	return invoker.Output{}, ctx.Err()
}

func serveProgress(_ context.Context, call *invoker.Call) (invoker.Output, error) {
	arguments := struct{ Steps int }{3}
	if len(call.Arguments) > 0 {
		if err := json.Unmarshal(call.Arguments, &arguments); err != nil {
			return invoker.Output{}, invoker.Failf(invoker.InvalidArguments, "%w", err)
		}
	}
	for step := 1; step <= arguments.Steps; step++ {
		call.Report(invoker.Progress{Done: float64(step), Total: float64(arguments.Steps), Message: fmt.Sprintf("step %d", step)})
	}
	return textOutput("done"), nil
}

func textArgument(call *invoker.Call) (string, error) {
	var arguments struct{ Text *string }
	err := json.Unmarshal(call.Arguments, &arguments)
	if err == nil && arguments.Text == nil {
		err = errors.New("text is missing")
	}
	if err != nil {
		return "", invoker.Failf(invoker.InvalidArguments, "%w", err)
	}
	return *arguments.Text, nil
}
