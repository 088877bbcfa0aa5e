// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"slices"
	"syscall"

	"github.com/consort-go/consort/config"
	configserve "github.com/consort-go/consort/config/serve"
	"github.com/consort-go/consort/config/values"
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
			"works once. It ends after a signal. consort serve --http has the same console for its\n" +
			"clients, at /console.",
		Example: "  consort console\n  consort console --no-browser",
		Args:    cobra.NoArgs,
		RunE:    runEUntil(func(ctx context.Context, _ []string) error { return c.run(ctx, p) }, os.Interrupt, syscall.SIGTERM),
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
	token := rand.Text() + rand.Text()
	if cfg.Serve, err = c.settings(cfg, token); err != nil {
		return err
	}
	if err := p.location.Default(ctx, cfg, histories.IfPossible); err != nil {
		return err
	}
	p.needs.certificates, p.needs.telemetry = true, true
	assembly, err := assembleServed(ctx, p, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(assembly)) }()
	assembly.Serve.Version = version()
	return gateway.Run(ctx, gateway.Options{
		Config: cfg, Assembly: assembly, Location: &p.location, Screen: p.screen, Stdin: p.stdin, Flags: map[string]bool{"http": true},
		Console: &gateway.OwnConsole{Token: token, Open: func(address string) { c.open(ctx, p, address) }},
	})
}

// settings returns the settings of a server that only this console uses. The clients of the
// configuration stay, because their conversations may continue.
func (c *consoleRun) settings(cfg *config.Config, token string) (*configserve.Options, error) {
	settings := &configserve.Options{}
	if cfg.Serve != nil {
		*settings = *cfg.Serve
	}
	settings.HTTP, settings.GRPC, settings.GRPCTLS, settings.Health = values.Plain(c.http), values.Value{}, configserve.TLS{}, values.Value{}
	settings.OIDC, settings.ResourceMetadata, settings.Stateless, settings.Open = nil, nil, false, false
	settings.Hosts, settings.Origins, settings.Rate, settings.Burst = nil, nil, 0, 0
	settings.Converse = cfg.Model != nil
	settings.NoAccessLog = true
	if err := (&configserve.Options{}).MayListen(c.http); err != nil {
		return nil, exit.Usagef("--http %s: the console is for this machine only; use a loopback address, such as 127.0.0.1:0", c.http)
	}
	if old := settings.Token; old.Reveal() != "" {
		settings.Clients = []configserve.Client{{Token: old}}
	}
	settings.Token = values.Value{}
	byToken := slices.DeleteFunc(slices.Clone(settings.Clients), func(c configserve.Client) bool { return c.Certificate != "" })
	settings.Clients = append(byToken, configserve.Client{Token: values.Plain(token), Name: "console"})
	return settings, nil
}

// open opens the link in a browser, and prints it.
func (c *consoleRun) open(ctx context.Context, p *program, link string) {
	if !c.noBrowser && browser.HasScreen() && browser.Open(ctx, link) == nil {
		p.screen.Note("The console opens in your browser. If it does not, use this link, which works once: %s", link)
		return
	}
	p.screen.Note("Open the console with this link, which works once: %s", link)
}
