// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/configfile"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/terminal"
)

// None is the value of --history that keeps nothing.
const None = "none"

// Policy says what to do if no store is named.
type Policy int

const (
	IfPossible Policy = iota // continues without a store, and says so
	Surely                   // fails without a store
	Existing                 // fails if the store does not exist, and does not create it
)

// Location is where one run of the command keeps conversations. Its exported fields are
// the input; the methods remember what they have decided.
type Location struct {
	Config     configfile.Flags
	ConfigFile string         // the configuration file that was found; empty for none
	Flag       string         // the flag --history: a file, or None; empty for the configuration's store
	Loaded     *config.Config // nil until it is read

	own    bool  // the user's own store is used, because no other is named
	unkept error // why the user's own store cannot be used
}

// Name returns the name of the configuration for messages.
func (l *Location) Name() string { return cmp.Or(l.ConfigFile, "the command line") }

// Apply applies the flag --history to the configuration.
func (l *Location) Apply(cfg *config.Config) {
	if l.Flag == "" {
		return
	}
	table := config.History{}
	if cfg.History != nil {
		table = *cfg.History
	}
	switch {
	case l.Flag == None:
		table = config.History{Store: config.StoreNone}
	case table.Store == config.StoreFiles:
		table.Path = values.Plain(l.Flag)
	default:
		table.Store, table.DSN, table.Schema = "", values.Value{}, ""
		table.Path = values.Plain(l.Flag)
	}
	cfg.History = &table
}

// Default makes the configuration keep conversations in the user's own store if neither
// it nor a flag sets a store.
func (l *Location) Default(ctx context.Context, cfg *config.Config, how Policy) error {
	if cfg.History != nil {
		if !cfg.Keeps() && how != IfPossible {
			return l.NoStore()
		}
		return nil
	}
	path, err := ownStore()
	if err == nil && how == Existing && configfile.IsAbsent(path) {
		return exit.Usagef("there is no conversation yet in %s; start one with %s", terminal.ShortPath(path), l.CommandLine("chat"))
	}
	own := *cfg
	own.History = &config.History{Path: values.Plain(path)}
	if err == nil {
		err = prepare(ctx, &own)
	}
	switch {
	case err == nil:
		cfg.History, l.own = own.History, true
	case how == IfPossible:
		l.unkept = err
	default:
		return exit.With(StatusOf(err), fmt.Errorf("conversations cannot be stored: %s; name another place with --history FILE", WithoutKey(err)))
	}
	return nil
}

// OpenOwn opens the user's own store for conversations that were not stored so far. The
// caller must close it.
func (l *Location) OpenOwn(ctx context.Context, cfg *config.Config) (history.Store, error) {
	path, err := ownStore()
	if err != nil {
		return nil, err
	}
	own := *cfg
	own.History = &config.History{Path: values.Plain(path)}
	if err := prepare(ctx, &own); err != nil {
		return nil, err
	}
	l.Flag, l.own = path, true // commands for later find it there
	return own.OpenHistory(ctx)
}

// WithoutKey returns the text of a store error without the configuration key, for a
// location that the configuration does not set.
func WithoutKey(err error) string { return strings.TrimPrefix(err.Error(), "history.path: ") }

// OpenError adds to a store error where the location of the store was set, and the exit status.
func (l *Location) OpenError(err error) error {
	status := StatusOf(err)
	switch {
	case l.own:
		err = errors.New(WithoutKey(err))
	case l.Flag != "":
		err = fmt.Errorf("--history: %s", WithoutKey(err))
	case l.Loaded != nil:
		err = l.Loaded.Locate(err)
	default:
		err = fmt.Errorf("%s: %w", l.Name(), err)
	}
	return exit.With(status, err)
}

// StatusOf returns the exit status for a store that cannot be opened. It is [exit.Failed] if the store may
// open later, without another configuration: its server cannot be reached, is starting or has no connection
// left, or another process holds its file.
func StatusOf(err error) exit.Status {
	_, isNetwork := errors.AsType[*net.OpError](err)
	_, isName := errors.AsType[*net.DNSError](err)
	late, isLate := errors.AsType[net.Error](err) // which errors of the system are, too
	if isNetwork || isName || isLate && late.Timeout() || errors.Is(err, io.ErrUnexpectedEOF) {
		return exit.Failed
	}
	if server, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok && slices.Contains([]string{"08", "53", "57"}, server.SQLState()[:min(2, len(server.SQLState()))]) {
		return exit.Failed
	}
	return exit.Usage
}

// Announce prints where conversations are kept.
func (l *Location) Announce(screen *terminal.Screen, cfg *config.Config) {
	switch {
	case l.unkept != nil:
		screen.Note("Conversations cannot be stored and end with this program: %s. Name another file with --history FILE, or turn storing off with --history none.", display.Line(WithoutKey(l.unkept)))
	case !cfg.Keeps():
		screen.Hint("Conversations are not stored; they end with this program.")
	case l.own:
		screen.Hint("Conversations are stored in " + l.describe(cfg) + "; --history none turns this off.")
	default:
		screen.Hint("Conversations are stored in " + l.describe(cfg) + ".")
	}
}

// describe returns where conversations are kept, without a secret.
func (l *Location) describe(cfg *config.Config) string {
	switch {
	case !cfg.History.Store.HasPath():
		return cfg.History.Store.Title()
	case l.own:
		return terminal.ShortPath(cfg.History.Path.Reveal())
	}
	return display.Line(cfg.History.Path.String())
}

// Scope returns a prefix that separates the conversations served with this configuration
// from those of other configurations in the user's own store. It is empty for a named
// store, which belongs to the configurations that name it. It depends on the folder and the name of the
// configuration, and not on the file that a link with this name leads to, such as in a ConfigMap of Kubernetes.
func (l *Location) Scope() (string, error) {
	if !l.own {
		return "", nil
	}
	return l.ownScope()
}

// ownScope returns the prefix that Scope returns in the user's own store.
func (l *Location) ownScope() (string, error) {
	path, err := filepath.Abs(l.ConfigFile)
	folder, name := path, "" // without a file
	if l.ConfigFile != "" {
		folder, name = filepath.Dir(path), filepath.Base(path)
	}
	if err == nil {
		folder, err = filepath.EvalSymlinks(folder)
	}
	sum := sha256.Sum256([]byte(filepath.Join(folder, name)))
	return hex.EncodeToString(sum[:6]) + "-", err
}

// NoStore returns the error for a command that requires a store, with advice.
func (l *Location) NoStore() error {
	if l.Flag == None {
		return exit.Usagef("--history none stores no conversations; omit the flag, or name a file")
	}
	return exit.Usagef("%s stores no conversations. Name a file for them with --history FILE, or add\n\n    [history]\n    path = \"history.db\"", l.Name())
}

// find sets the location of the store in the configuration. It creates a missing store
// if create is set.
func (l *Location) find(ctx context.Context, cfg *config.Config, create bool) error {
	switch {
	case cfg.History != nil || create:
		return l.Default(ctx, cfg, Surely)
	default:
		path, err := ownStore()
		if err != nil {
			return exit.Usagef("no place for conversations was found: %w; name one with --history FILE", err)
		}
		cfg.History, l.own = &config.History{Path: values.Plain(path)}, true
		return nil
	}
}

// CommandLine returns a command line for later, with the configuration and the store of
// this one, but without settings of --set, which can be secrets. The command login has no store.
func (l *Location) CommandLine(command string) string {
	for _, argument := range l.Config.Arguments() {
		command += " " + argument[0] + " " + display.Word(argument[1])
	}
	if name, _, _ := strings.Cut(command, " "); l.Flag != "" && name != "login" {
		command += " --history " + display.Word(l.Flag)
	}
	return "consort " + command
}
