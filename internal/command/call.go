// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/command/directcall"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/rendering"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/spf13/cobra"
)

// maxArguments bounds arguments read from standard input, in bytes.
const maxArguments = 16 << 20

func callCommand(p *program) *cobra.Command {
	return p.withTrace(p.withTrust(p.withJSON(&cobra.Command{
		Use:   "call ENSEMBLE TOOL [JSON]",
		Short: "Call one tool and print its result, without a model",
		Long: "Call calls TOOL of ENSEMBLE, under its own name, with the JSON object of arguments,\n" +
			"or with the one on standard input if JSON is -. Without JSON they are {}.\n" +
			"The approval rules of the configuration are for models and do not apply.",
		Example: "  consort call files read_file '{\"path\": \"go.mod\"}'",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 || len(args) > 3 {
				return exit.Usagef("call needs ENSEMBLE TOOL and optionally JSON, and got %d arguments; consort tools lists the tools", len(args))
			}
			return nil
		},
		RunE: runE(func(ctx context.Context, args []string) error { return runCall(ctx, p, args) }),
	}, "print the result as a canister, one line of JSON")))
}

func runCall(ctx context.Context, p *program, args []string) (err error) {
	p.needs.quiet = config.LevelError // the failure is reported anyway
	cfg, err := p.load()
	if err != nil {
		return err
	}
	arguments, err := callArguments(p, args)
	if err != nil {
		return err
	}
	cfg.Model = nil // unused, so it need not be valid
	assembly, err := p.assemble(cfg, interaction{elicit: p.screen.Decline})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(assembly)) }()
	e, err := ensembleNamed(p, args[0], assembly.Roster)
	if err != nil {
		return err
	}
	call := &invoker.Call{ID: rand.Text(), Arguments: arguments}
	line := p.screen.Begin(display.Line(args[1]))
	call.Progress = func(progress invoker.Progress) { line.Say(rendering.Progress(progress)) }
	output, err := directcall.Invoke(forProgram(ctx, assembly), e, args[1], call, assembly.Audit)
	line.End()
	p.showTrace()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return printCall(p, call, output, err)
}

// callArguments returns the arguments from the command line or from standard input.
func callArguments(p *program, args []string) (json.RawMessage, error) {
	text, where := "{}", "JSON"
	if len(args) == 3 {
		text = args[2]
	}
	if text == "-" {
		var err error
		if text, err = readAll(p.stdin, maxArguments); err != nil {
			return nil, err
		}
		where = "standard input"
	}
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

func ensembleNamed(p *program, name string, roster *ensemble.Roster) (*ensemble.Ensemble, error) {
	if e, ok := roster.Ensemble(name); ok {
		return e, nil
	}
	var names []string
	for _, e := range roster.Ensembles() {
		names = append(names, e.Name())
	}
	if len(names) == 0 {
		return nil, exit.Usagef("there is no ensemble %q: %s has no servers; add one as a table such as [mcp.%s]", name, p.location.Name(), name)
	}
	return nil, exit.Usagef("there is no ensemble %q; %s has %s", name, p.location.Name(), strings.Join(names, ", "))
}

// forProgram returns a context for calls that the program itself makes.
func forProgram(ctx context.Context, assembly *config.Assembly) context.Context {
	return telemetry.With(invoker.WithTrusted(ctx, assembly.Trusted...), assembly.Telemetry)
}

// printCall prints the outcome of the call.
func printCall(p *program, call *invoker.Call, output invoker.Output, err error) error {
	var usage *exit.Error
	if errors.As(err, &usage) {
		return err
	}
	result := canister.Result{Invocation: call.ID}
	result.Content, result.Metadata = directcall.Content(output, err)
	result.ID, result.Time = rand.Text(), time.Now()
	failure := invoker.AsFailure(err)
	if failure != nil {
		result.Code, result.Retryable = string(failure.Code), failure.Retryable
	}
	if p.json {
		return printCallJSON(p, result)
	}
	text := display.Contents(result.Content)
	if failure != nil {
		var cause string
		if died, ok := errors.AsType[*ensemble.ProcessError](failure.Cause); ok {
			cause = terminal.CauseText(died.Error())
		}
		return exit.With(exit.Tool, fmt.Errorf("%s: %s%s", failure.Code, cmp.Or(text, failure.Message), cause))
	}
	p.screen.PrintLine(text)
	return p.screen.Err()
}

func printCallJSON(p *program, result canister.Result) error {
	if err := p.screen.PrintCanisters(result); err != nil || !result.Failed() {
		return err
	}
	return &exit.Error{Status: exit.Tool}
}
