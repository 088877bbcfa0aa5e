// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/command/session"
	"github.com/consort-go/consort/internal/demo"
	"github.com/consort-go/consort/internal/demoserver"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/spf13/cobra"
)

// demonstration is one run of consort demo.
type demonstration struct {
	program *program
	options demo.Options

	exchanges, invocations int
	tokens                 int64
}

func demoCommand(p *program) *cobra.Command {
	d := &demonstration{program: p}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show a conversation that uses tools; needs no key and no configuration",
		Long: "Demo stores the tasks of two people in a database and serves them over MCP: for one\n" +
			"in a subprocess, for the other over HTTP on this machine. It runs a\n" +
			"conversation that uses both, with the same code as any other. The model is a\n" +
			"script, behind a server on this machine; --model and --base-url select a real\n" +
			"one. --api selects the API that the model speaks.",
		Example: "  consort demo\n  consort demo --api messages\n  consort demo --model gpt-5-mini\n  consort demo --base-url http://localhost:11434/v1 --model qwen3",
		Args:    cobra.NoArgs,
		RunE:    runE(d.run),
	}
	cmd.Flags().StringVar(&d.options.Model, "model", "", "talk with the model `NAME` instead of the script")
	cmd.Flags().StringVar(&d.options.BaseURL, "base-url", "", "the `URL` of the model's API (default: that of OpenAI, or of Anthropic for claude…)")
	cmd.Flags().StringVar(&d.options.APIKey, "api-key", "", "the variable `env:NAME` with the API key (default there: env:OPENAI_API_KEY or env:ANTHROPIC_API_KEY)")
	cmd.Flags().StringVar(&d.options.API, "api", "", "the `API` of the model: chat, responses or messages (default: chat for the script)")
	return p.withTrace(p.withJSON(cmd, "print one line of JSON per event, without pauses"))
}

func (d *demonstration) run(ctx context.Context, _ []string) (err error) {
	if err := d.options.Check(); err != nil {
		return err
	}
	d.options.Quick = d.program.json
	started, err := demo.Start(ctx, d.options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, started.Close()) }()
	cfg, err := config.Parse("demo.toml", []byte(started.Config), &config.Options{Lookup: started.Lookup})
	if err != nil {
		return exit.Usagef("the configuration is wrong:\n%w", err)
	}
	if !d.program.json {
		d.program.screen.Print(started.Introduction(d.program.screen.Results))
	}
	d.program.location.ConfigFile = "demo.toml"
	assembly, err := d.program.withModel(cfg, interaction{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.program.close(assembly)) }()
	conversation := converse.New(assembly.Model, assembly.Roster, assembly.Options)
	defer func() { err = errors.Join(err, conversation.Close(context.Background())) }()
	return d.perform(ctx, conversation)
}

// perform runs the conversation.
func (d *demonstration) perform(ctx context.Context, conversation *converse.Conversation) error {
	began := time.Now()
	to := d.program.renderer()
	if people, ok := to.(*terminal.View); ok {
		people.Whole = true // tool calls are part of the output here
	}
	for _, prompt := range demo.Prompts {
		if !d.program.json {
			d.program.screen.Print("\n" + d.program.screen.Results.Bold("You: "+prompt) + "\n\n")
		}
		done, err := session.Play(conversation.Send(ctx, canister.Text(prompt)), to)
		d.program.showTrace()
		if err != nil {
			return err
		}
		d.exchanges += done.Exchanges
		d.invocations += done.Invocations
		d.tokens += done.Usage.Total()
		if err := session.Shortfall(done, converse.Limits{}); err != nil {
			return err
		}
	}
	if !d.program.json {
		d.program.screen.Print("\n" + d.program.screen.Results.Faint(fmt.Sprintf(
			"%d exchanges with the model, %d invocations of tools on two servers, %d tokens, %.1f s",
			d.exchanges, d.invocations, d.tokens, time.Since(began).Seconds())) + "\n")
	}
	return d.program.screen.Err()
}

// demoServerCommand serves what the demonstration, and tests, start as processes.
func demoServerCommand(p *program) *cobra.Command {
	var tasks demo.TaskServer
	cmd := &cobra.Command{
		Use:       "demo-server {tasks|atlas|satchel}",
		Short:     "Serve the tasks of one user of the demonstration, or an MCP server for experiments",
		Hidden:    true,
		ValidArgs: append(demoserver.Names(), "tasks"),
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: runEUntil(func(ctx context.Context, args []string) error {
			signal.Ignore(os.Interrupt) // a terminal sends it to every process; the parent decides when this one ends
			if args[0] == "tasks" {
				return tasks.Serve(ctx, p.stdin, p.screen.Stdout)
			}
			return demoserver.ServeStdio(ctx, demoserver.New(args[0], tasks.Pace), p.stdin, p.screen.Stdout)
		}, syscall.SIGTERM),
	}
	cmd.Flags().DurationVar(&tasks.Pace, "pace", 0, "how long a tool takes")
	cmd.Flags().StringVar(&tasks.File, "file", "", "the database of tasks")
	cmd.Flags().Int64Var(&tasks.User, "user", 0, "the owner of the tasks")
	cmd.Flags().BoolVar(&tasks.HTTP, "http", false, "serve tasks over streamable HTTP on a free port, to the client with the token of "+demo.TokenVar)
	return cmd
}
