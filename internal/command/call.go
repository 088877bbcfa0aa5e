// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"

	"github.com/consort-go/consort/config"
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
	arguments, err := callArguments(ctx, p, args[2:])
	if err != nil {
		return err
	}
	cfg.Model = nil // unused, so it need not be valid
	assembly, err := p.assemble(cfg, interaction{elicit: p.screen.Decline})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(assembly)) }()
	e, err := directcall.Ensemble(assembly.Roster, args[0], p.location.Name())
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
	return directcall.Print(p.screen, p.json, call, output, err)
}

// callArguments returns the arguments from the rest of the command line or from standard input.
func callArguments(ctx context.Context, p *program, rest []string) (json.RawMessage, error) {
	if len(rest) == 0 {
		return directcall.Arguments("{}", "JSON")
	}
	if rest[0] != "-" {
		return directcall.Arguments(rest[0], "JSON")
	}
	text, err := readAll(terminal.Until(ctx, p.stdin), maxArguments)
	if err != nil {
		return nil, err
	}
	return directcall.Arguments(text, "standard input")
}

// forProgram returns a context for calls that the program itself makes.
func forProgram(ctx context.Context, assembly *config.Assembly) context.Context {
	return telemetry.With(invoker.WithTrusted(ctx, assembly.Trusted...), assembly.Telemetry)
}
