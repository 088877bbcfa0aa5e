// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/shown"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/spf13/cobra"
)

// demoPace is how long a tool of the demonstration takes: long enough to watch. With
// JSON, demoPaceJSON is just long enough for parallel calls to overlap.
const (
	demoPace     = 240 * time.Millisecond
	demoPaceJSON = 50 * time.Millisecond
)

// demo is a running demonstration.
type demo struct {
	*program
	name   string // of a real model; empty for the script
	url    string
	apiKey string

	exchanges, invocations int
	tokens                 int64
}

func (p *program) demoCommand() *cobra.Command {
	d := &demo{program: p}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch a conversation that uses tools; needs no key and no configuration",
		Long: "Demo keeps the tasks of two people in a database, and serves them over MCP: to\n" +
			"one by a subprocess, to the other over HTTP on this machine. It holds a\n" +
			"conversation that uses both, through the same code as any other. The model is a\n" +
			"script, behind an OpenAI-compatible server on this machine; --model and\n" +
			"--base-url put a real one in its place.",
		Example: "  consort demo\n  consort demo --model gpt-5-mini\n  consort demo --base-url http://localhost:11434/v1 --model qwen3",
		Args:    cobra.NoArgs,
		RunE:    does(d.run),
	}
	cmd.Flags().StringVar(&d.name, "model", "", "talk with the model `NAME` in place of the script")
	cmd.Flags().StringVar(&d.url, "base-url", "", "where the model's OpenAI-compatible API is, as `URL` (default: OpenAI)")
	cmd.Flags().StringVar(&d.apiKey, "api-key", "", "the key of the API, as `env:NAME` of a variable (default at OpenAI: env:OPENAI_API_KEY)")
	return p.withTrace(p.withJSON(cmd, "print one line of JSON for each event, without pauses"))
}

func (d *demo) run(ctx context.Context, _ []string) (err error) {
	if err := d.checkFlags(); err != nil {
		return err
	}
	stage, err := raise(ctx, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.strike()) }()
	cfg, err := config.Parse("demo.toml", []byte(stage.text), &config.Options{Lookup: stage.lookup})
	if err != nil {
		return exit.Usagef("the configuration is wrong:\n%w", err)
	}
	d.introduce(stage)
	d.configFile = "demo.toml"
	assembly, err := d.withModel(cfg, interaction{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close(assembly)) }()
	talk := converse.New(assembly.Model, assembly.Roster, assembly.Options)
	defer func() { err = errors.Join(err, talk.Close(context.Background())) }()
	return d.perform(ctx, talk)
}

func (d *demo) checkFlags() error {
	switch {
	case d.name == "" && d.url != "":
		return exit.Usagef("--base-url wants --model NAME beside it")
	case d.name == "" && d.apiKey != "":
		return exit.Usagef("--api-key wants --model NAME beside it")
	case d.apiKey != "" && !strings.HasPrefix(d.apiKey, "env:"):
		return exit.Usagef("--api-key: expected env:NAME of an environment variable; others on this machine can read a command line")
	}
	return nil
}

// introduce prints what the demonstration is about to do.
func (d *demo) introduce(stage *stage) {
	if d.json {
		return
	}
	paint := d.screen.Results
	var b strings.Builder
	fmt.Fprintln(&b, paint.Bold("A conversation with tools, on this machine only.")+" Started for it:")
	if stage.model != nil {
		fmt.Fprintf(&b, "  model    %s behind an OpenAI-compatible server, %s\n", paint.Bold("a script, not a real model,"), stage.model.URL())
	} else {
		fmt.Fprintf(&b, "  model    %s at %s\n", shown.Text(d.name), shown.Text(cmp.Or(d.url, "OpenAI")))
	}
	fmt.Fprintf(&b, "  tasks    a SQLite database with the tasks of two people\n")
	fmt.Fprintf(&b, "  ada      an MCP server of hers over stdio, a subprocess\n")
	fmt.Fprintf(&b, "  ben      an MCP server of his over streamable HTTP, %s\n\n", stage.ben.url)
	fmt.Fprintln(&b, "The configuration, as in a consort.toml of your own:")
	for line := range strings.Lines(stage.text) {
		b.WriteString(paint.Faint("  │ "+strings.TrimRight(line, "\n")) + "\n")
	}
	d.screen.Print(b.String())
}

// perform runs the conversation.
func (d *demo) perform(ctx context.Context, talk *converse.Conversation) error {
	began := time.Now()
	to := d.shower()
	if people, ok := to.(*terminal.View); ok {
		people.Whole = true // tool calls are part of the output here
	}
	for _, prompt := range demoPrompts {
		if !d.json {
			d.screen.Print("\n" + d.screen.Results.Bold("You: "+prompt) + "\n\n")
		}
		done, err := turn(ctx, talk, prompt, to)
		d.showTrace()
		if err != nil {
			return err
		}
		d.exchanges += done.Exchanges
		d.invocations += done.Invocations
		d.tokens += done.Usage.Total()
		if err := shortfall(done, converse.Limits{}); err != nil {
			return err
		}
	}
	if !d.json {
		d.screen.Print("\n" + d.screen.Results.Faint(fmt.Sprintf(
			"%d exchanges with the model, %d invocations of tools on two servers, %d tokens, %.1f s",
			d.exchanges, d.invocations, d.tokens, time.Since(began).Seconds())) + "\n")
	}
	return d.screen.Err()
}
