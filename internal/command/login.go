// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/internal/browser"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/keyring"
	"github.com/consort-go/consort/internal/loginkey"
	"github.com/consort-go/consort/internal/reports"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/mcpadapter/login"
	"github.com/spf13/cobra"
)

// loginKeyVariable names the environment variable with the key of the stored logins.
const loginKeyVariable = "CONSORT_LOGIN_KEY"

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
	return &cobra.Command{
		Use:     "logout SERVER",
		Short:   "Remove a login, and ask the authorization server to revoke its tokens",
		Long:    "Logout removes the login at SERVER, which is a name of the configuration or an address\nthat consort logins prints.",
		Example: "  consort logout linear",
		Args:    cobra.ExactArgs(1),
		RunE:    runE(func(ctx context.Context, args []string) error { return runLogout(ctx, p, args[0]) }),
	}
}

func loginsCommand(p *program) *cobra.Command {
	return p.withJSON(&cobra.Command{
		Use:   "logins",
		Short: "List the servers that need a login, and the stored logins",
		Args:  cobra.NoArgs,
		RunE:  runE(func(ctx context.Context, _ []string) error { return runLogins(ctx, p) }),
	}, "print one JSON document")
}

// openLogins returns the user's stored logins.
func (p *program) openLogins(cfg *config.Config) (login.Store, error) {
	folder, err := histories.StateFile("logins")
	if err != nil {
		return nil, exit.Usagef("there is no place for stored logins: %w; set HOME or XDG_STATE_HOME", err)
	}
	key, err := p.loginKey(cfg, folder)
	if err != nil {
		return nil, err
	}
	return login.NewFiles(folder, key), nil
}

// loginKey returns the key of the logins in a folder: from the variable, or from the place
// that [logins] names.
func (p *program) loginKey(cfg *config.Config, folder string) (func() ([]byte, error), error) {
	if text := os.Getenv(loginKeyVariable); text != "" {
		key, err := login.KeyFromText(text)
		if err != nil {
			return nil, exit.Usagef("%s: %w", loginKeyVariable, err)
		}
		return func() ([]byte, error) { return key, nil }, nil
	}
	file := filepath.Join(folder, "key")
	key := &loginkey.Key{
		File: file, Keyring: keyring.New(file), Place: loginkey.Place(cfg.Logins.Key),
		Note: func(text string) { p.screen.Note("%s", display.Line(text)) },
	}
	return key.Bytes, nil
}

// canStoreLogins reports why a login could not be stored, before the person logs in.
func (p *program) canStoreLogins(cfg *config.Config) error {
	folder, err := histories.StateFile("logins")
	if err != nil {
		return nil // openLogins says so
	}
	key, err := p.loginKey(cfg, folder)
	if err != nil {
		return err
	}
	_, err = key()
	return err
}

// loginHint tells a person how to log in at a server.
func loginHint(server string) string { return "type: consort login " + server }

// loginAt returns the login at a server of the configuration, and closes it after use.
func loginAt(p *program, cfg *config.Config, name string, use func(*login.Client) error) (err error) {
	server := cfg.MCP[name]
	if server == nil {
		return exit.Usagef("there is no server %q with a login; %s", name, loginNamesText(p, cfg))
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
	if options.Store, err = p.openLogins(cfg); err != nil {
		return err
	}
	options.Hint, options.Logger = loginHint(name), assembly.Logger
	client, err := login.New(options)
	if err != nil {
		return exit.Usagef("%s: mcp.%s.oauth: %w", p.location.Name(), name, err)
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	return use(client)
}

// loginNamesText lists the servers that have a login.
func loginNamesText(p *program, cfg *config.Config) string {
	names := namesWithLogin(cfg)
	if len(names) == 0 {
		return fmt.Sprintf("%s has none: a server gets one with a table such as [mcp.linear.oauth]", p.location.Name())
	}
	return fmt.Sprintf("%s has %s", p.location.Name(), strings.Join(names, ", "))
}

func namesWithLogin(cfg *config.Config) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(cfg.MCP)) {
		if s := cfg.MCP[name]; s != nil && s.OAuth != nil {
			names = append(names, name)
		}
	}
	return names
}

// storesLogins reports whether a person logs in at a server.
func storesLogins(cfg *config.Config) bool {
	return slices.ContainsFunc(namesWithLogin(cfg), func(name string) bool { return cfg.MCP[name].OAuth.StoresLogins() })
}

// loginNames completes the names of servers that have a login.
func (p *program) loginNames(context.Context) ([]string, error) {
	cfg, err := p.load()
	if err != nil {
		return nil, err
	}
	return namesWithLogin(cfg), nil
}

func runLogin(ctx context.Context, p *program, name string, noBrowser bool) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	return loginAt(p, cfg, name, func(client *login.Client) error {
		if err := p.canStoreLogins(cfg); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeoutCause(ctx, loginLimit, fmt.Errorf("nothing happened within %s", loginLimit))
		defer cancel()
		l, err := client.Login(ctx, p.loginPrompt(name, noBrowser))
		if err != nil {
			return fmt.Errorf("logging in at %q: %w", name, err)
		}
		lasts := "it is renewed by itself"
		if l.RefreshToken == "" && !l.Expiry.IsZero() {
			lasts = "it ends on " + l.Expiry.Local().Format(time.DateTime) + ", because the authorization server lets nobody renew it"
		} else if l.RefreshToken == "" {
			lasts = "it lasts until the server ends it"
		}
		p.screen.Print(fmt.Sprintf("logged in at %s (%s): %s\n", display.Line(name), display.Line(l.Issuer), lasts))
		return p.screen.Err()
	})
}

// loginPrompt says how a login reaches the person.
func (p *program) loginPrompt(name string, noBrowser bool) *login.Prompt {
	prompt := &login.Prompt{Visit: func(ctx context.Context, address string) error {
		opened := !noBrowser && hasScreen() && browser.Open(ctx, address) == nil
		if opened {
			p.screen.Note("A browser opens to log in at %s. If it does not, open this address:\n\n%s\n", display.Line(name), display.Line(address))
		} else {
			p.screen.Note("To log in at %s, open this address in a browser:\n\n%s\n", display.Line(name), display.Line(address))
		}
		return ctx.Err()
	}}
	if !noBrowser {
		return prompt
	}
	prompt.Enter = func(_ context.Context, code login.Code) error {
		p.screen.Note("To log in at %s, open %s on any device and enter the code %s", display.Line(name), code.Address, code.Code)
		if code.Complete != "" {
			p.screen.Note("or open %s", code.Complete)
		}
		return nil
	}
	prompt.Paste = func(ctx context.Context) (string, error) {
		p.screen.Note("On another machine, the browser ends at a page that it cannot open. Paste its address here:")
		address, err := terminal.NewUser(p.screen, p.stdin, nil, nil).Message(ctx, "> ")
		if errors.Is(err, io.EOF) { // wait: the browser may be on this machine
			<-ctx.Done()
			err = ctx.Err()
		}
		return address, err
	}
	return prompt
}

// hasScreen reports whether a browser that is opened could be seen.
func hasScreen() bool {
	switch runtime.GOOS {
	case "windows", "darwin":
		return os.Getenv("SSH_CONNECTION") == ""
	}
	return os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != ""
}

func runLogout(ctx context.Context, p *program, name string) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	logout := func(client *login.Client) error {
		found, err := client.Logout(ctx)
		if found {
			p.screen.Print("logged out of " + display.Line(name) + "\n")
		}
		switch {
		case found && err != nil:
			p.screen.Note("consort: %v", err)
			return p.screen.Err()
		case err != nil:
			return fmt.Errorf("logging out of %q: %w", name, err)
		case !found:
			return exit.Usagef("there is no login at %q; consort logins lists them", name)
		}
		return p.screen.Err()
	}
	if cfg.MCP[name] != nil || !strings.Contains(name, "://") {
		return loginAt(p, cfg, name, logout)
	}
	store, err := p.openLogins(cfg)
	if err != nil {
		return err
	}
	client, err := login.New(&login.Options{URL: name, Store: store})
	if err != nil {
		return exit.Usagef("%w", err)
	}
	defer client.Close()
	return logout(client)
}

func runLogins(ctx context.Context, p *program) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	store, err := p.openLogins(cfg)
	if err != nil {
		return err
	}
	list := reports.NewLoginList()
	stored, unreadable := store.List(ctx)
	for _, name := range namesWithLogin(cfg) {
		options := cfg.MCP[name].LoginOptions()
		options.Store = store
		client, err := login.New(options)
		if err != nil {
			return exit.Usagef("%s: mcp.%s.oauth: %w", p.location.Name(), name, err)
		}
		l, _ := client.Stored(ctx) // unreadable says why
		_ = client.Close()
		list.Add(name, options, l)
		if l != nil {
			stored = slices.DeleteFunc(stored, func(other *login.Login) bool { return other.Key == l.Key })
		}
	}
	for _, l := range stored { // of another configuration
		list.Add("", &login.Options{URL: l.Resource}, l)
	}
	if p.json {
		return errors.Join(p.screen.PrintDocument(list), unreadable)
	}
	p.screen.Print(list.Text(p.screen.Results))
	return errors.Join(unreadable, p.screen.Err())
}
