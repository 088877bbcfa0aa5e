// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// stage holds the resources of the demonstration: a model server, a configuration, a
// folder with the database, and the MCP server over HTTP. The ensemble starts the MCP
// server over stdio.
type stage struct {
	folder string
	model  *openaiserver.Server // nil for a real model
	ben    *neighbour
	text   string // the configuration
	vars   map[string]string
}

// demoFile is the variable with the path of the database.
const demoFile = "CONSORT_DEMO_TASKS"

// raise starts the resources of the demonstration.
func raise(ctx context.Context, d *demo) (*stage, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("the demonstration starts this program again as its servers: %w", err)
	}
	pace := demoPace
	if d.json {
		pace = demoPaceJSON
	}
	s := &stage{vars: map[string]string{"CONSORT": self, demoToken: rand.Text()}}
	if err := s.furnish(ctx, d, pace); err != nil {
		return nil, errors.Join(err, s.strike())
	}
	s.text = d.modelTable(s.model) + fmt.Sprintf(`
[mcp.ada]
transport = "stdio"
command = ["${CONSORT}", "demo-server", "tasks", "--file", "${%s}", "--user", "%d", "--pace", "%s"]

[mcp.ben]
transport = "http"
url = "%s"
headers = {Authorization = "Bearer ${%s}"}
`, demoFile, demoAda, pace, s.ben.url, demoToken)
	return s, nil
}

// furnish starts everything that the configuration refers to.
func (s *stage) furnish(ctx context.Context, d *demo, pace time.Duration) (err error) {
	if s.folder, err = os.MkdirTemp("", "consort-demo"); err != nil {
		return err
	}
	file := filepath.Join(s.folder, "tasks.db")
	s.vars[demoFile] = file
	if err := writeTasks(ctx, file); err != nil {
		return err
	}
	if d.name == "" {
		if s.model, err = openaiserver.Start(demoScript(!d.json), nil); err != nil {
			return err
		}
	}
	s.ben, err = startNeighbour(ctx, exec.Command(s.vars["CONSORT"], "demo-server", "tasks", "--http",
		"--file", file, "--user", fmt.Sprint(demoBen), "--pace", pace.String()), demoToken+"="+s.vars[demoToken])
	if err != nil {
		return fmt.Errorf("the MCP server ben did not start: %w", err)
	}
	return nil
}

// modelTable returns the [model] table of the configuration.
func (d *demo) modelTable(script *openaiserver.Server) string {
	if script != nil {
		return fmt.Sprintf("[model]\nname = \"script\"\nbase_url = \"%s\"\n", script.URL())
	}
	text := "[model]\nname = " + quoted(d.name) + "\n"
	if d.url != "" {
		text += "base_url = " + quoted(d.url) + "\n"
	}
	if d.apiKey != "" {
		text += "api_key = " + quoted(d.apiKey) + "\n"
	}
	return text
}

// quoted returns text as a TOML string. JSON escapes are valid in TOML.
func quoted(text string) string {
	form, _ := json.Marshal(text) // marshaling a string never fails
	return string(form)
}

// lookup finds the variables of the configuration.
func (s *stage) lookup(name string) (string, bool) {
	if value, ok := s.vars[name]; ok {
		return value, true
	}
	return os.LookupEnv(name)
}

// strike ends everything that raise started and waits for it.
func (s *stage) strike() error {
	var errs []error
	if s.model != nil {
		errs = append(errs, s.model.Close())
	}
	if s.ben != nil {
		errs = append(errs, s.ben.stop())
	}
	if s.folder != "" {
		errs = append(errs, os.RemoveAll(s.folder))
	}
	return errors.Join(errs...)
}

// neighbour is a server in another process that listens on a port.
type neighbour struct {
	url   string
	cmd   *exec.Cmd
	stdin io.Closer // closing it asks the process to exit
}

// How long a neighbour may take to print its URL, and to exit.
const (
	neighbourStart = 20 * time.Second
	neighbourGrace = 3 * time.Second
)

// startNeighbour starts a process and waits until it has printed its URL.
func startNeighbour(ctx context.Context, cmd *exec.Cmd, environment ...string) (*neighbour, error) {
	cmd.Stderr = os.Stderr // it prints nothing unless it fails
	cmd.Env = append(os.Environ(), environment...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	n := &neighbour{cmd: cmd, stdin: stdin}
	ctx, cancel := context.WithTimeout(ctx, neighbourStart)
	defer cancel()
	kill := context.AfterFunc(ctx, func() { cmd.Process.Kill() }) // ends the read below
	line, err := bufio.NewReader(io.LimitReader(stdout, 1000)).ReadString('\n')
	if !kill() {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, n.stop())
	}
	n.url = strings.TrimSpace(line)
	return n, nil
}

// stop asks the process to exit, kills it if it does not, and waits for it.
func (n *neighbour) stop() error {
	n.stdin.Close()
	impatient := time.AfterFunc(neighbourGrace, func() { n.cmd.Process.Kill() })
	defer impatient.Stop()
	if err := n.cmd.Wait(); err != nil {
		return fmt.Errorf("the server %s: %w", n.url, err)
	}
	return nil
}
