// SPDX-License-Identifier: Apache-2.0

package mcpadapter

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
func (c command) prepare() (*exec.Cmd, error) {
	if len(c.argv) == 0 || c.argv[0] == "" {
		return nil, fmt.Errorf("starting server %q: no command is given", c.name)
	}
	if err := c.limits.supported(); err != nil {
		return nil, fmt.Errorf("starting server %q: %w", c.name, err)
	}
	if c.dir != "" {
		if info, err := os.Stat(c.dir); err != nil {
			return nil, fmt.Errorf("starting server %q: its working directory: %w", c.name, err)
		} else if !info.IsDir() {
			return nil, fmt.Errorf("starting server %q: its working directory %s is not a directory", c.name, c.dir)
		}
	}
	path, err := c.lookPath()
	if err != nil {
		return nil, err
	}
	return &exec.Cmd{Path: path, Args: c.argv, Env: c.env, Dir: c.dir, SysProcAttr: processGroup()}, nil
}

// lookPath finds the command in the server's PATH, as a shell would. A name with a
// separator is used unchanged, relative to the working directory.
func (c command) lookPath() (string, error) {
	name := c.argv[0]
	if filepath.Base(name) != name {
		return name, nil
	}
	var found error
	for _, dir := range filepath.SplitList(lookupEnv(c.env, "PATH")) {
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
		return "", fmt.Errorf("starting server %q: %w: make the file executable", c.name, found)
	}
	return "", fmt.Errorf("starting server %q: command %q is not in its PATH: install it, or give the full path: %w", c.name, name, exec.ErrNotFound)
}

// explainStart adds a hint to the system's error for a command that did not start.
func (p *process) explainStart(err error) error {
	hint := ""
	switch _, statErr := os.Stat(p.path()); {
	case errors.Is(err, fs.ErrNotExist) && statErr == nil:
		hint = ": the file is there, so the interpreter in its first line, or a library, is missing"
	case errors.Is(err, fs.ErrNotExist):
		hint = ": no such file; install it, or correct the path"
	case errors.Is(err, fs.ErrPermission):
		hint = ": make the file executable (chmod +x), and its directories accessible"
	case strings.Contains(err.Error(), "exec format error"):
		hint = ": the file is no program for this machine, or a script without a #! line"
	}
	return fmt.Errorf("starting server %q: command %q%s: %w", p.name, p.argv[0], hint, err)
}

// path returns the path of the command, relative to this program's directory.
func (p *process) path() string {
	if filepath.IsAbs(p.cmd.Path) {
		return p.cmd.Path
	}
	return filepath.Join(p.dir, p.cmd.Path)
}
