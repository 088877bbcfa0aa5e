// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/shown"
	"github.com/consort-go/consort/internal/terminal"
)

// nowhere is the value of --history that keeps nothing.
const nowhere = "none"

// keeping says what to do if no store is named.
type keeping int

const (
	keepIfPossible keeping = iota // continues without a store, and says so
	keepSurely                    // fails without a store
	keepsAlready                  // fails if the store does not exist, and does not create it
)

// keepByDefault makes the configuration keep conversations in the user's own store if
// neither it nor a flag sets a store.
func (p *program) keepByDefault(ctx context.Context, cfg *config.Config, how keeping) error {
	if cfg.History != nil {
		if !cfg.Keeps() && how != keepIfPossible {
			return p.noStore()
		}
		return nil
	}
	path, err := ownStore()
	if err == nil && how == keepsAlready && isAbsent(path) {
		return exit.Usagef("there is no conversation yet in %s; consort chat begins one", terminal.ShortPath(path))
	}
	own := *cfg
	own.History = &config.History{Path: config.Plain(path)}
	if err == nil {
		err = prepare(ctx, &own)
	}
	switch {
	case err == nil:
		cfg.History, p.own = own.History, true
	case how == keepIfPossible:
		p.unkept = err
	default:
		return exit.Usagef("conversations cannot be kept: %s; name another place with --history FILE", withoutKey(err))
	}
	return nil
}

// prepare creates the store of a configuration, and checks that it can be written.
func prepare(ctx context.Context, cfg *config.Config) error {
	folder := filepath.Dir(cfg.History.Path.Reveal())
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if err := probe(folder); err != nil {
		return err
	}
	store, err := cfg.OpenHistory(ctx)
	if err != nil {
		return err
	}
	return store.Close()
}

// probe checks that a folder can be written.
func probe(folder string) error {
	file, err := os.CreateTemp(folder, ".probe-*")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// couldPrepare checks whether prepare would succeed. It creates no new store.
func couldPrepare(ctx context.Context, cfg *config.Config, path string) error {
	if !isAbsent(path) {
		own := *cfg
		own.History = &config.History{Path: config.Plain(path)}
		return prepare(ctx, &own)
	}
	folder := filepath.Dir(path)
	for isAbsent(folder) && folder != filepath.Dir(folder) {
		folder = filepath.Dir(folder)
	}
	return probe(folder)
}

// withoutKey returns the text of a store error without the configuration key, for a
// location that the configuration does not set.
func withoutKey(err error) string { return strings.TrimPrefix(err.Error(), "history.path: ") }

// unopened adds to a store error where the location of the store was set.
func (p *program) unopened(err error) error {
	switch {
	case p.own:
		return exit.Usagef("%s", withoutKey(err))
	case p.history != "":
		return exit.Usagef("--history: %s", withoutKey(err))
	}
	if p.loaded != nil {
		return exit.Usagef("%w", p.loaded.Locate(err))
	}
	return exit.Usagef("%s: %w", p.configFile, err)
}

// ownStore returns the file that keeps conversations if no other is named. All
// configurations of a user share it.
func ownStore() (string, error) {
	folder, err := stateFolder()
	if err == nil && !filepath.IsAbs(folder) {
		err = errors.New("the home directory is not an absolute path: " + folder)
	}
	return filepath.Join(folder, "consort", "history.db"), err
}

// stateFolder returns the folder for persistent data of programs that is neither
// configuration nor documents: XDG_STATE_HOME of the XDG Base Directory Specification
// 0.8, which says to ignore a path that is not absolute, or else the default of the
// platform.
func stateFolder() (string, error) {
	if folder := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(folder) {
		return folder, nil
	}
	switch runtime.GOOS {
	case "windows":
		return os.UserCacheDir() // %LocalAppData%, which stays on this machine
	case "darwin":
		return os.UserConfigDir() // ~/Library/Application Support
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state"), err
}

// tellPlace prints where conversations are kept.
func (p *program) tellPlace(cfg *config.Config) {
	switch faint := p.screen.Notes.Faint; {
	case p.unkept != nil:
		p.screen.Note("Conversations cannot be kept, and end with this program: %s. To keep them elsewhere say --history FILE, and otherwise --history none.", shown.Line(withoutKey(p.unkept)))
	case !cfg.Keeps():
		p.screen.Note("%s", faint("Conversations are not kept; they end with this program."))
	case p.own:
		p.screen.Note("%s", faint("Conversations are kept in "+p.place(cfg)+"; with --history none they are not."))
	default:
		p.screen.Note("%s", faint("Conversations are kept in "+p.place(cfg)+"."))
	}
}

// place returns where conversations are kept, without a secret.
func (p *program) place(cfg *config.Config) string {
	switch {
	case !cfg.History.Store.HasPath():
		return "PostgreSQL"
	case p.own:
		return terminal.ShortPath(cfg.History.Path.Reveal())
	}
	return shown.Line(cfg.History.Path.String())
}

// scope returns a prefix that separates the conversations served with this configuration
// from those of other configurations in the user's own store. It is empty for a named
// store, which belongs to the configurations that name it.
func (p *program) scope() (string, error) {
	if !p.own {
		return "", nil
	}
	path, err := filepath.Abs(p.configFile)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:6]) + "-", err
}
