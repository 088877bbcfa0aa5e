// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/command/logins"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/mcpadapter/login"
	"github.com/spf13/cobra"
)

// loginLimit bounds the wait for a person.
const loginLimit = 15 * time.Minute

func loginCommand(p *program) *cobra.Command {
	noBrowser := false
	cmd := &cobra.Command{
		Use:   "login SERVER",
		Short: "Log in at a server that has a table oauth",
		Long: "Login opens a browser at the authorization server, waits until you have agreed, and\n" +
			"stores the login. It is renewed by itself, and all processes of yours use it.",
		Example: "  consort login linear\n  consort login linear --no-browser",
		Args:    cobra.ExactArgs(1),
		RunE:    runE(func(ctx context.Context, args []string) error { return runLogin(ctx, p, args[0], noBrowser) }),
	}
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "open no browser: enter a code on another device, or paste the address that the browser ends at")
	return cmd
}

func logoutCommand(p *program) *cobra.Command {
	client := ""
	cmd := &cobra.Command{
		Use:   "logout SERVER",
		Short: "Remove a login, and ask the authorization server to revoke its tokens",
		Long: "Logout removes the login at SERVER, which is a name of the configuration or an address\n" +
			"that consort logins prints.",
		Example: "  consort logout linear\n  consort logout linear --client 3f2c9a51",
		Args:    cobra.ExactArgs(1),
		RunE:    runE(func(ctx context.Context, args []string) error { return runLogout(ctx, p, args[0], client) }),
	}
	cmd.Flags().StringVar(&client, "client", "", "remove the login of this client of the gateway: its ID, or the beginning that consort logins prints")
	return cmd
}

func loginsCommand(p *program) *cobra.Command {
	return p.withJSON(&cobra.Command{
		Use:   "logins",
		Short: "List the servers that need a login, and the stored logins",
		Args:  cobra.NoArgs,
		RunE:  runE(func(ctx context.Context, _ []string) error { return runLogins(ctx, p) }),
	}, oneDocument)
}

// loginsOf returns the logins of a configuration. The function open opens its conversation store;
// nil if they are not used.
func (p *program) loginsOf(cfg *config.Config, open func(context.Context) (history.Store, error)) *logins.Logins {
	return &logins.Logins{Config: cfg, File: p.location.Name(), History: open, Note: func(text string) { p.screen.Note("%s", display.Line(text)) }}
}

// withLogins passes the stored logins of a configuration to use.
func (p *program) withLogins(cfg *config.Config, use func(*logins.Logins, login.Store) error) (err error) {
	var opened history.Store
	all := p.loginsOf(cfg, func(ctx context.Context) (_ history.Store, err error) {
		if opened == nil {
			opened, err = cfg.OpenHistory(ctx)
		}
		return opened, err
	})
	defer func() {
		if opened != nil {
			err = errors.Join(err, opened.Close())
		}
	}()
	store, err := all.Open()
	if err != nil {
		return err
	}
	return use(all, store)
}

// loginAt returns the login at a server of the configuration, and closes it after use. It changes the
// options with set, which may be nil.
func loginAt(p *program, cfg *config.Config, name string, set func(*login.Options) error, use func(*logins.Logins, *login.Client) error) (err error) {
	server := cfg.MCP[name]
	if server == nil {
		return exit.Usagef("there is no server %q with a login; %s", name, p.loginsOf(cfg, nil).Text())
	}
	options := server.LoginOptions()
	if options == nil {
		return exit.Usagef("the server %q has no login; if it wants one, add to %s:\n\n    [mcp.%s.oauth]", name, p.location.Name(), name)
	}
	alone := *cfg
	alone.Model, alone.GRPC, alone.Audit, alone.MCP = nil, nil, nil, map[string]*config.Server{name: server}
	assembly, err := p.assemble(&alone, interaction{}) // so that its secrets are not printed
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(assembly)) }()
	stored := p.loginsOf(cfg, assembly.History)
	if options.Store, err = stored.Open(); err != nil {
		return err
	}
	options.Hint, options.Logger = loginHint(p)(name), assembly.Logger
	if set != nil {
		if err := set(options); err != nil {
			return err
		}
	}
	client, err := login.New(options)
	if err != nil {
		return exit.Usagef("%s: mcp.%s.oauth: %w", p.location.Name(), name, err)
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	return use(stored, client)
}

// loginNames completes the names of servers that have a login.
func (p *program) loginNames(context.Context) ([]string, error) {
	cfg, err := p.load()
	if err != nil {
		return nil, err
	}
	return p.loginsOf(cfg, nil).Names(), nil
}

func runLogin(ctx context.Context, p *program, name string, noBrowser bool) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	return loginAt(p, cfg, name, nil, func(stored *logins.Logins, client *login.Client) error {
		if err := stored.CanStore(ctx); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeoutCause(ctx, loginLimit, fmt.Errorf("nothing happened within %s", loginLimit))
		defer cancel()
		l, err := client.Login(ctx, logins.Prompt(p.screen, p.stdin, name, noBrowser))
		if err != nil {
			return fmt.Errorf("logging in at %q: %w", name, err)
		}
		p.screen.Print(fmt.Sprintf("logged in at %s (%s): %s\n", display.Line(name), display.Line(l.Issuer), logins.Lasts(l)))
		return p.screen.Err()
	})
}

func runLogout(ctx context.Context, p *program, name, client string) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	var options *login.Options
	set := func(o *login.Options) (err error) {
		if options = o; client != "" {
			o.Identity, err = clientAt(ctx, o, client)
		}
		return err
	}
	if cfg.MCP[name] != nil || !strings.Contains(name, "://") {
		return loginAt(p, cfg, name, set, func(_ *logins.Logins, c *login.Client) error { return logout(ctx, p, name, options, c) })
	}
	return p.withLogins(cfg, func(_ *logins.Logins, store login.Store) error {
		if err := set(&login.Options{URL: name, Store: store}); err != nil {
			return err
		}
		c, err := login.New(options)
		if err != nil {
			return exit.Usagef("%w", err)
		}
		defer c.Close()
		return logout(ctx, p, name, options, c)
	})
}

func logout(ctx context.Context, p *program, name string, o *login.Options, c *login.Client) error {
	found, err := c.Logout(ctx)
	if found {
		p.screen.Print("logged out of " + display.Line(name) + "\n")
	}
	switch {
	case found && err != nil:
		p.screen.Note("consort: %v", err)
		return p.screen.Err()
	case err != nil:
		return fmt.Errorf("logging out of %q: %w", name, err)
	case found:
		return p.screen.Err()
	}
	if clients, _ := logins.Clients(ctx, o, ""); len(clients) > 0 {
		return exit.Usagef("%q has only logins of clients of the gateway: remove one with --client ID; consort logins lists them", name)
	}
	return exit.Usagef("there is no login at %q; consort logins lists them", name)
}

// clientAt returns the identity of the client of the gateway with a login at a server whose ID begins
// with prefix.
func clientAt(ctx context.Context, o *login.Options, prefix string) (string, error) {
	found, err := logins.Clients(ctx, o, prefix)
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", exit.Usagef("the IDs of %d clients with a login there begin with %q: write more of it", len(found), prefix)
	case err != nil:
		return "", err
	}
	return "", exit.Usagef("no client %q of the gateway has a login there; consort logins lists them", prefix)
}

func runLogins(ctx context.Context, p *program) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	return p.withLogins(cfg, func(all *logins.Logins, store login.Store) error {
		list, unreadable, err := all.List(ctx, store)
		if err != nil {
			return err
		}
		if p.json {
			return errors.Join(p.screen.PrintDocument(list), unreadable)
		}
		p.screen.Print(list.Text(p.screen.Results, loginHint(p)))
		return errors.Join(unreadable, p.screen.Err())
	})
}
