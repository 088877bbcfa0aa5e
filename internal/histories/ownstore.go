// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/internal/configfile"
)

// ownStore returns the file that keeps conversations if no other is named. All
// configurations of a user share it.
func ownStore() (string, error) { return StateFile("history.db") }

// StateFile returns the path of a file that the command keeps for the user, such as its
// conversations. The file and its folder need not exist.
func StateFile(name string) (string, error) {
	folder, err := stateFolder()
	return filepath.Join(folder, "consort", name), err
}

// RunFolder returns the folder for the sockets of running processes of a user.
func RunFolder() (string, error) {
	folder, err := stateFolder()
	return filepath.Join(folder, "consort", "run"), err
}

// stateFolder returns the folder for persistent data of programs that is neither
// configuration nor documents: XDG_STATE_HOME of the XDG Base Directory Specification
// 0.8, which says to ignore a path that is not absolute, or else the default of the
// platform.
func stateFolder() (folder string, err error) {
	if folder := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(folder) {
		return folder, nil
	}
	switch runtime.GOOS {
	case "windows":
		folder, err = os.UserCacheDir() // %LocalAppData%, which stays on this machine
	case "darwin":
		folder, err = os.UserConfigDir() // ~/Library/Application Support
	default:
		folder, err = os.UserHomeDir()
		folder = filepath.Join(folder, ".local", "state")
	}
	if err == nil && !filepath.IsAbs(folder) {
		err = errors.New("the home directory is not an absolute path: " + folder)
	}
	return folder, err
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

// CheckOwn returns the path of the user's own store, and an error if the store cannot be
// used. It creates no new store.
func CheckOwn(ctx context.Context, cfg *config.Config) (path string, err error) {
	path, err = ownStore()
	if err == nil {
		err = couldPrepare(ctx, cfg, path)
	}
	return path, err
}

// couldPrepare checks whether prepare would succeed.
func couldPrepare(ctx context.Context, cfg *config.Config, path string) error {
	if !configfile.IsAbsent(path) {
		own := *cfg
		own.History = &config.History{Path: values.Plain(path)}
		return prepare(ctx, &own)
	}
	folder := filepath.Dir(path)
	for configfile.IsAbsent(folder) && folder != filepath.Dir(folder) {
		folder = filepath.Dir(folder)
	}
	return probe(folder)
}
