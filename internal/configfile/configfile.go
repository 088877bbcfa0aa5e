// SPDX-License-Identifier: Apache-2.0

// Package configfile finds the configuration file of a run of the command, and reads it
// with the settings of the command line.
package configfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/tomltext"
)

// Name is the name of the file in the working directory and in the user's own folder.
const Name = "consort.toml"

// Variable is the environment variable that names the file.
const Variable = "CONSORT_CONFIG"

// ErrNone is in the chain of the error of [Flags.Load] if no file is named or found.
var ErrNone = errors.New("there is no configuration")

// Flags are the flags of the command line for the configuration.
type Flags struct {
	File    string   // --config: the file; empty means to look for one
	Model   string   // --model: model.name; empty for the model of the file
	BaseURL string   // --base-url: model.base_url; empty for the address in the file
	Set     []string // --set: KEY=VALUE
}

// Find returns the path of the file: --config, else the variable [Variable], else [Name] in
// the working directory, else the user's own file. It is empty if neither of the last two
// exists; a file that is named need not exist.
func (f *Flags) Find() string {
	if named := cmp.Or(f.File, os.Getenv(Variable)); named != "" {
		return named
	}
	for _, path := range []string{Name, UserFile()} {
		if path != "" && !IsAbsent(path) {
			return path
		}
	}
	return ""
}

// UserFile returns the path of the user's own configuration file, which applies in every
// folder; empty if the user has no home directory. It is in XDG_CONFIG_HOME of the XDG Base
// Directory Specification 0.8, which says to ignore a path that is not absolute, or else in
// the default folder of the platform.
func UserFile() string {
	folder := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(folder) {
		var err error
		if folder, err = platformFolder(); err != nil || !filepath.IsAbs(folder) {
			return ""
		}
	}
	return filepath.Join(folder, "consort", Name)
}

func platformFolder() (string, error) {
	switch runtime.GOOS {
	case "windows", "darwin":
		return os.UserConfigDir() // %AppData%, and ~/Library/Application Support
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".config"), err
}

// Load finds and reads the configuration. The path is empty without a file; that is
// an error with [ErrNone] unless the flags have settings. Errors have the exit status.
func (f *Flags) Load() (cfg *config.Config, path string, err error) {
	path = f.Find()
	cfg, err = f.LoadFile(path, nil)
	return cfg, path, err
}

// LoadFile is like [Flags.Load], and takes the file that [Flags.Find] has returned. It reads
// files with read; nil reads them as usual.
func (f *Flags) LoadFile(path string, read func(path string) ([]byte, error)) (*config.Config, error) {
	options := f.options()
	options.ReadFile = read
	if path == "" && len(options.Set) == 0 {
		return nil, exit.Usagef("%w%s", ErrNone, f.advice())
	}
	cfg, err := config.Load(path, options)
	switch {
	case err == nil:
		return cfg, nil
	case errors.Is(err, fs.ErrNotExist) && path != "" && IsAbsent(path):
		by := "--config"
		if f.File == "" {
			by = Variable
		}
		return nil, exit.Usagef("there is no configuration %s, which %s names; write one with: consort init --output %s", path, by, display.Word(path))
	}
	return nil, exit.Usagef("the configuration is wrong:\n%w", err)
}

// options returns the settings of the flags. A later one overrides those before.
func (f *Flags) options() *config.Options {
	options := &config.Options{SetBy: map[string]string{}}
	for _, flag := range []struct{ name, key, value string }{{"--model", "model.name", f.Model}, {"--base-url", "model.base_url", f.BaseURL}} {
		if flag.value != "" {
			options.Set = append(options.Set, flag.key+"="+tomltext.Quote(flag.value))
			options.SetBy[flag.key] = flag.name
		}
	}
	options.Set = append(options.Set, f.Set...)
	return options
}

// Arguments returns the flags, each with its value, for another run with the same
// configuration. Settings of --set are left out, and so are addresses that can contain
// credentials.
func (f *Flags) Arguments() [][2]string {
	var arguments [][2]string
	if f.File != "" {
		arguments = append(arguments, [2]string{"--config", f.File})
	}
	if f.Model != "" {
		arguments = append(arguments, [2]string{"--model", f.Model})
	}
	if f.BaseURL != "" && !strings.ContainsAny(f.BaseURL, "@?#") {
		arguments = append(arguments, [2]string{"--base-url", f.BaseURL})
	}
	return arguments
}

// advice says where files were looked for, and how to get one.
func (f *Flags) advice() string {
	var places strings.Builder
	for _, path := range []string{Name, UserFile()} {
		if path == "" {
			continue
		}
		if full, err := filepath.Abs(path); err == nil {
			path = full
		}
		fmt.Fprintf(&places, "    %s\n", path)
	}
	return fmt.Sprintf(`: --config and %s name none, and none of these exists:
%sTo write one:             consort init
To begin without one:     consort chat --model gpt-5-mini
                          (the key comes from OPENAI_API_KEY; for claude… from ANTHROPIC_API_KEY)
To see a conversation:    consort demo`, Variable, places.String())
}

// IsAbsent reports whether path does not exist.
func IsAbsent(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}
