// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// prepare checks the description, so that its errors are specific. They leave out the
// arguments, which may hold secrets.
func (c Command) prepare() (*exec.Cmd, error) {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return nil, fmt.Errorf("starting server %q: no command is given", c.Name)
	}
	if err := c.Limits.supported(); err != nil {
		return nil, fmt.Errorf("starting server %q: %w", c.Name, err)
	}
	if c.Dir != "" {
		if info, err := os.Stat(c.Dir); err != nil {
			return nil, fmt.Errorf("starting server %q: its working directory: %w", c.Name, err)
		} else if !info.IsDir() {
			return nil, fmt.Errorf("starting server %q: its working directory %s is not a directory", c.Name, c.Dir)
		}
	}
	path, err := c.lookPath()
	if err != nil {
		return nil, err
	}
	return &exec.Cmd{Path: path, Args: c.Argv, Env: c.Env, Dir: c.Dir, SysProcAttr: processGroup()}, nil
}

// lookPath finds the command in the server's PATH, as a shell would. A name with a
// separator is used unchanged, relative to the working directory.
func (c Command) lookPath() (string, error) {
	name := c.Argv[0]
	if filepath.Base(name) != name {
		return name, nil
	}
	var found error
	for _, dir := range filepath.SplitList(lookupEnv(c.Env, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue // "." in PATH would run files of the working directory
		}
		path, err := exec.LookPath(filepath.Join(dir, name))
		if err == nil {
			return path, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			found = err
		}
	}
	if found != nil {
		return "", fmt.Errorf("starting server %q: %w: make the file executable", c.Name, found)
	}
	return "", fmt.Errorf("starting server %q: command %q is not in its PATH: install it, or give the full path: %w", c.Name, name, exec.ErrNotFound)
}

// explainStart adds a hint to the system's error for a command that did not start.
func (c Command) explainStart(path string, err error) error {
	if failed, is := errors.AsType[*fs.PathError](err); is && failed.Op == "fork/exec" {
		err = failed.Err
	}
	hint := ""
	switch _, statErr := os.Stat(c.absolute(path)); {
	case errors.Is(err, fs.ErrNotExist) && statErr == nil:
		hint = ": the file is there, so the interpreter in its first line, or a library, is missing"
	case errors.Is(err, fs.ErrNotExist):
		hint = ": no such file; install it, or correct the path"
	case errors.Is(err, fs.ErrPermission):
		hint = ": make the file executable (chmod +x), and its directories accessible"
	case strings.Contains(err.Error(), "exec format error"):
		hint = ": the file is not a program for this machine, or is a script without a #! line"
	}
	return fmt.Errorf("starting server %q: command %q%s: %w", c.Name, c.Argv[0], hint, err)
}

// absolute returns a path of the server, relative to this program's directory.
func (c Command) absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.Dir, path)
}
