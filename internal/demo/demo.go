// SPDX-License-Identifier: Apache-2.0

// Package demo has what consort demo shows: a database of tasks, two MCP servers that serve
// it, a scripted model and the configuration that refers to them.
package demo

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/internal/tomltext"
)

// pace is how long a tool of the demonstration takes: long enough to watch. Without
// pauses, quickPace is just long enough for parallel calls to overlap.
const (
	pace      = 240 * time.Millisecond
	quickPace = 50 * time.Millisecond
)

// Options choose the model of the demonstration and how fast it runs.
type Options struct {
	Model   string // the name of a real model; empty for the script
	BaseURL string // of a real model; empty means OpenAI or Anthropic
	APIKey  string // of a real model, as in a configuration
	API     string // chat, responses or messages; empty means the model's own, and chat for the script
	Quick   bool   // without pauses for people who watch
}

// Check reports flags with values that are not expected, and flags that contradict each
// other.
func (o *Options) Check() error {
	switch {
	case !slices.Contains([]string{"", "chat", "responses", "messages"}, o.API):
		return exit.Usagef("--api: expected chat, responses or messages")
	case o.Model == "" && o.BaseURL != "":
		return exit.Usagef("--base-url needs --model NAME")
	case o.Model == "" && o.APIKey != "":
		return exit.Usagef("--api-key needs --model NAME")
	case o.APIKey != "" && !strings.HasPrefix(o.APIKey, "env:"):
		return exit.Usagef("--api-key: expected env:NAME of an environment variable; other users of this machine can read command lines")
	}
	return nil
}

// Demo holds the resources of a demonstration: a model server, a configuration, a
// folder with the database, and the MCP server over HTTP. The ensemble that the
// configuration describes starts the MCP server over stdio.
type Demo struct {
	// Config is the configuration, in TOML. Its variables are found with Lookup.
	Config string

	options Options
	folder  string
	model   *openaiserver.Server // nil for a real model
	ben     *childServer
	vars    map[string]string
}

// fileVar is the variable with the path of the database.
const fileVar = "CONSORT_DEMO_TASKS"

// Start starts the resources of a demonstration. The caller must close it.
func Start(ctx context.Context, options Options) (*Demo, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("the demonstration starts this program again as its servers: %w", err)
	}
	takes := pace
	if options.Quick {
		takes = quickPace
	}
	d := &Demo{options: options, vars: map[string]string{"CONSORT": self, TokenVar: rand.Text()}}
	if err := d.start(ctx, takes); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.Config = d.modelTable() + fmt.Sprintf(`
[mcp.ada]
transport = "stdio"
command = ["${CONSORT}", "demo-server", "tasks", "--file", "${%s}", "--user", "%d", "--pace", "%s"]

[mcp.ben]
transport = "http"
url = "%s"
headers = {Authorization = "Bearer ${%s}"}
`, fileVar, ada, takes, d.ben.url, TokenVar)
	return d, nil
}

// start starts everything that the configuration refers to.
func (d *Demo) start(ctx context.Context, takes time.Duration) (err error) {
	if d.folder, err = os.MkdirTemp("", "consort-demo"); err != nil {
		return err
	}
	file := filepath.Join(d.folder, "tasks.db")
	d.vars[fileVar] = file
	if err := writeTasks(ctx, file); err != nil {
		return err
	}
	if d.options.Model == "" {
		if d.model, err = openaiserver.Start(script(!d.options.Quick), nil); err != nil {
			return err
		}
	}
	d.ben, err = startChild(ctx, exec.Command(d.vars["CONSORT"], "demo-server", "tasks", "--http",
		"--file", file, "--user", fmt.Sprint(ben), "--pace", takes.String()), TokenVar+"="+d.vars[TokenVar])
	if err != nil {
		return fmt.Errorf("the MCP server ben did not start: %w", err)
	}
	return nil
}

// modelTable returns the [model] table of the configuration.
func (d *Demo) modelTable() string {
	name, base := d.options.Model, d.options.BaseURL
	if d.model != nil {
		name, base = "script", d.model.URL()
		if d.options.API == "messages" { // whose clients add /v1 themselves
			base = strings.TrimSuffix(base, "/v1")
		}
	}
	text := "[model]\nname = " + tomltext.Quote(name) + "\n"
	switch d.options.API {
	case "chat", "responses":
		text += "api = " + tomltext.Quote(d.options.API) + "\n"
	case "messages":
		text += "provider = \"anthropic\"\n"
	}
	if base != "" {
		text += "base_url = " + tomltext.Quote(base) + "\n"
	}
	if d.options.APIKey != "" {
		text += "api_key = " + tomltext.Quote(d.options.APIKey) + "\n"
	}
	return text
}

// Lookup finds the variables of the configuration.
func (d *Demo) Lookup(name string) (string, bool) {
	if value, ok := d.vars[name]; ok {
		return value, true
	}
	return os.LookupEnv(name)
}

// Close ends everything that Start started and waits for it.
func (d *Demo) Close() error {
	var errs []error
	if d.model != nil {
		errs = append(errs, d.model.Close())
	}
	if d.ben != nil {
		errs = append(errs, d.ben.stop())
	}
	if d.folder != "" {
		errs = append(errs, os.RemoveAll(d.folder))
	}
	return errors.Join(errs...)
}

// Introduction tells a person what the demonstration is about to do.
func (d *Demo) Introduction(paint terminal.Palette) string {
	var b strings.Builder
	fmt.Fprintln(&b, paint.Bold("A conversation with tools, only on this machine.")+" It uses:")
	if d.model != nil {
		fmt.Fprintf(&b, "  model    %s behind a server on this machine, %s\n", paint.Bold("a script, not a real model,"), d.model.URL())
	} else {
		fmt.Fprintf(&b, "  model    %s at %s\n", display.Text(d.options.Model), display.Text(cmp.Or(d.options.BaseURL, "its provider")))
	}
	fmt.Fprintf(&b, "  tasks    a SQLite database with the tasks of two people\n")
	fmt.Fprintf(&b, "  ada      her MCP server over stdio, a subprocess\n")
	fmt.Fprintf(&b, "  ben      his MCP server over streamable HTTP, %s\n\n", d.ben.url)
	fmt.Fprintln(&b, "The configuration, as in a consort.toml of your own:")
	for line := range strings.Lines(d.Config) {
		b.WriteString(paint.Faint("  │ "+strings.TrimRight(line, "\n")) + "\n")
	}
	return b.String()
}
