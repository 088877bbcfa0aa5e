// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/internal/configfile"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/internal/writefile"
	"golang.org/x/term"
)

// Options are the flags of consort init.
type Options struct {
	Output         string   // the file; empty asks, or means consort.toml
	Force          bool     // replaces an existing file
	Yes            bool     // asks nothing
	Import         []string // names of servers, all, or none; nil asks, or means all
	Model, BaseURL string   // answers that were given already; may be empty
}

// Run asks the questions and writes the file.
func Run(ctx context.Context, o Options, stdin *os.File, screen *terminal.Screen) error {
	if o.BaseURL != "" && o.Model == "" {
		return exit.Usagef("--base-url needs --model NAME")
	}
	onTerminal := term.IsTerminal(int(stdin.Fd())) && term.IsTerminal(int(screen.Stderr.Fd()))
	if !o.Yes && !onTerminal {
		return exit.Usagef("init asks questions and needs a terminal; to take the defaults, add --yes")
	}
	var to asker
	if !o.Yes {
		to = askerFor(ctx, stdin, screen)
		var err error
		if o.Output, err = askOutput(ctx, to, o); err != nil {
			return err
		}
	}
	if o.Output == "" {
		o.Output = configfile.Name
	}
	if err := mayWrite(o); err != nil {
		return err
	}
	found := findServers(userPlaces())
	answers := defaults(o.Model, o.BaseURL, found)
	if !o.Yes {
		var err error
		if answers, err = ask(ctx, to, answers, o.Model != "", found.only(o.Import)); err != nil {
			return err
		}
	}
	if err := choose(answers, o.Import, found); err != nil {
		return err
	}
	if err := write(o.Output, answers); err != nil {
		return err
	}
	report(screen, o.Output, answers, found)
	return screen.Err()
}

// only returns nothing to ask for if the servers were chosen by the flag.
func (f *survey) only(chosen []string) *survey {
	if chosen != nil {
		return &survey{}
	}
	return f
}

// choose applies the flag --import.
func choose(answers *answers, names []string, found *survey) error {
	if names == nil {
		return nil
	}
	answers.Servers = nil
	for _, name := range names {
		switch name {
		case "none":
			continue
		case "all":
			answers.Servers = found.Servers
			return nil
		}
		servers, unknown := found.Named([]string{name})
		if len(unknown) > 0 {
			var known []string
			for _, s := range found.Servers {
				known = append(known, s.Name)
			}
			return exit.Usagef("--import %s: no other program has this server; expected all, none, or some of: %s", name, strings.Join(known, ", "))
		}
		if !slices.Contains(answers.Servers, servers[0]) {
			answers.Servers = append(answers.Servers, servers[0])
		}
	}
	return nil
}

func askerFor(ctx context.Context, stdin *os.File, screen *terminal.Screen) asker {
	if screen.Plain {
		return lines{bufio.NewReader(terminal.Until(ctx, stdin)), screen.Stderr}
	}
	return forms{stdin, screen.Stderr}
}

// askOutput asks for the place of the file, unless a flag names it.
func askOutput(ctx context.Context, to asker, o Options) (string, error) {
	user := configfile.UserFile()
	if o.Output != "" || user == "" {
		return o.Output, nil
	}
	return to.choose(ctx, "Where shall the configuration apply?", []option{
		{"in every folder: " + terminal.ShortPath(user), user},
		{"in this folder: " + configfile.Name, configfile.Name},
	}, user)
}

// mayWrite returns an error if the file exists and must not be replaced.
func mayWrite(o Options) error {
	if o.Force {
		return nil
	}
	switch _, err := os.Lstat(o.Output); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return exit.Usagef("%w", err)
	}
	return exit.Usagef("%s exists already; to replace it, add --force, or name another file with --output FILE", o.Output)
}

// write writes the file, readable by its owner alone, after it was read as a configuration.
func write(path string, answers *answers) error {
	text := answers.Text()
	anything := func(name string) (string, bool) {
		if value, ok := os.LookupEnv(name); ok {
			return value, true
		}
		return "unset", true
	}
	if _, err := config.Parse(fullPath(path), []byte(text), &config.Options{Lookup: anything}); err != nil {
		return fmt.Errorf("the answers make no valid configuration:\n%w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return exit.Usagef("%w", err)
	}
	_, err := writefile.Replace(path, nil, func(file *os.File) error {
		_, err := file.WriteString(text)
		return err
	})
	if err != nil {
		return exit.Usagef("%w", err)
	}
	return nil
}

// imported says how many servers the file has.
func imported(answers *answers, found *survey) string {
	switch n := len(answers.Servers); {
	case n == 1:
		return "1 server:"
	case n > 1:
		return fmt.Sprintf("%d servers:", n)
	case len(found.Servers) == 0:
		return "no servers: none were found in other programs. Add tables [mcp.NAME] to it; the file has an example."
	}
	return "no servers."
}

// report prints a summary and the next steps.
func report(screen *terminal.Screen, path string, answers *answers, found *survey) {
	screen.Note("%s %s, with the model %s and %s", screen.Notes.Good("Wrote"), terminal.ShortPath(path), display.Line(answers.Model), imported(answers, found))
	for _, s := range answers.Servers {
		off := ""
		if len(s.Missing) > 0 {
			off = "; off until these variables are set: " + strings.Join(s.Missing, ", ")
		}
		screen.Note("  %s of %s%s", display.Line(s.Name), display.Line(strings.Join(s.From, ", ")), display.Line(off))
	}
	for _, s := range answers.Exposed() {
		screen.Note("%s %s: the file contains a secret, in %s; a variable is safer (see docs/configuration.md)",
			screen.Notes.Bad("Warning:"), display.Line(s.Name), display.Line(strings.Join(s.Secrets, ", ")))
	}
	for _, s := range found.skipped {
		name := s.Name
		if name == "" {
			name = "the file"
		}
		screen.Note("  %s of %s cannot be used: %s", display.Line(name), display.Line(s.From), display.Line(s.Reason))
	}
	with := ""
	if (&configfile.Flags{}).Find() != path {
		with = " --config " + display.Word(path)
	}
	for _, name := range answers.Unset(os.LookupEnv) {
		screen.Note("Next: set the variable %s to the key of the model.", name)
	}
	screen.Note("Then: consort check%s, and consort chat%s", with, with)
}
