// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"

	"github.com/consort-go/consort/internal/browser"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/gateway"
	"github.com/consort-go/consort/internal/histories"
	"github.com/spf13/cobra"
)

// consoleRun has the flags of consort console.
type consoleRun struct {
	http      string
	noBrowser bool
}

func consoleCommand(p *program) *cobra.Command {
	var c consoleRun
	cmd := p.withHistory(&cobra.Command{
		Use:   "console",
		Short: "Open the conversations, the servers and what waits for you in a browser",
		Long: "Console serves the console on this machine only, and opens a browser with a link that\n" +
			"works once. As in chat, calls that may change something need your approval: they wait\n" +
			"on the page Waiting. The command ends after a signal. consort serve --http has the\n" +
			"same console for its clients, at /console.",
		Example: "  consort console\n  consort console --no-browser",
		Args:    cobra.NoArgs,
		RunE:    runE(func(ctx context.Context, _ []string) error { return c.run(ctx, p) }),
	})
	flags := cmd.Flags()
	flags.StringVar(&c.http, "http", "127.0.0.1:0", "serve at `ADDRESS` of this machine; port 0 chooses a free one")
	flags.BoolVar(&c.noBrowser, "no-browser", false, "open no browser, and only print the link")
	return cmd
}

func (c *consoleRun) run(ctx context.Context, p *program) (err error) {
	if !gateway.HasConsole {
		return exit.Usagef("this program was built without the console (-tags noconsole)")
	}
	cfg, err := p.load()
	if err != nil {
		return err
	}
	console, settings, err := gateway.NewOwnConsole(cfg, c.http)
	if err != nil {
		return err
	}
	cfg.Serve = settings
	console.Open = func(address string) { c.open(ctx, p, address) }
	if err := p.location.Default(ctx, cfg, histories.IfPossible); err != nil {
		return err
	}
	p.needs.certificates, p.needs.telemetry = true, true
	assembly, err := assembleServed(ctx, p, cfg, p.onPage(cfg))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(assembly)) }()
	assembly.Serve.Version = version()
	return gateway.Run(ctx, gateway.Options{
		Config: cfg, Assembly: assembly, Location: &p.location, Screen: p.screen, Stdin: p.stdin, Flags: map[string]bool{"http": true},
		Console: console,
	})
}

// open opens the link in a browser, and prints it.
func (c *consoleRun) open(ctx context.Context, p *program, link string) {
	if !c.noBrowser && browser.HasScreen() && browser.Open(ctx, link) == nil {
		p.screen.Note("The console opens in your browser. If it does not, use this link, which works once: %s", link)
		return
	}
	p.screen.Note("Open the console with this link, which works once: %s", link)
}
