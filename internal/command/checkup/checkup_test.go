// SPDX-License-Identifier: Apache-2.0

package checkup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/terminal"
)

// program assembles as the command does, without its flags.
type program struct {
	open int
	err  error // of the first assembly
}

func (p *program) Assemble(cfg *config.Config, _ bool) (*config.Assembly, error) {
	if err := p.err; err != nil {
		p.err = nil
		return nil, err
	}
	p.open++
	return config.Assemble(cfg, nil)
}

func (p *program) AssembleForTools(cfg *config.Config) (*config.Assembly, error) {
	return p.Assemble(cfg, false)
}

func (p *program) Close(assembly *config.Assembly) error {
	p.open--
	return assembly.Close(context.Background())
}

// newCheckup returns a check of a configuration, and a function that returns what was printed.
func newCheckup(t *testing.T, text string, p *program) (*Checkup, func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "consort.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		out.Close()
		if p.open != 0 {
			t.Errorf("%d assemblies are left open", p.open)
		}
	})
	return New(path, cfg, terminal.NewScreen(out, out), p), func() string {
		text, err := os.ReadFile(out.Name())
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
}

const away = "[mcp.away]\ncommand = [\"/nonexistent/server\"]\n"

func TestExamine(t *testing.T) {
	c, _ := newCheckup(t, "[model]\nname = \"m\"\nbase_url = \"http://127.0.0.1:1\"\napi_key = \"none\"\n\n"+
		"[history]\nstore = \"files\"\npath = \"talks\"\n\n"+away, &program{})
	r, err := c.Examine(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if r.OK || r.Model.Name != "m" || r.Model.Asked || filepath.Base(r.History.Path) != "talks" ||
		len(r.Servers) != 1 || r.Servers[0].Name != "away" || r.Servers[0].Transport != "stdio" {
		t.Errorf("%+v", r)
	}
}

func TestExamineReportsProblemsOfFiles(t *testing.T) {
	c, _ := newCheckup(t, away, &program{err: errors.New("the audit trail cannot be opened")})
	r, err := c.Examine(t.Context(), true)
	if err != nil || r.OK || len(r.Problems) != 1 || r.Problems[0].Message != "the audit trail cannot be opened" || len(r.Servers) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Without a terminal, Watch shows a line for each change of state, also if a server was lost
// and came back between two looks; as JSON, each state.
func TestShowHealth(t *testing.T) {
	states := []ensemble.EnsembleHealth{{State: ensemble.Ready}, {State: ensemble.Ready}, {State: ensemble.Lost}, {State: ensemble.Connecting},
		{State: ensemble.Ready, Restarts: 1},
		{State: ensemble.Ready, Restarts: 2}}
	for inJSON, want := range map[bool][]string{
		false: {"00:00:00 atlas ready", "00:00:00 atlas lost", "atlas connecting", "atlas ready", "atlas lost", "atlas ready"},
		true:  {`"state":"ready"`, `"state":"ready"`, `"state":"lost"`, `"state":"connecting"`, `"state":"ready"`, `"state":"ready"`},
	} {
		c, printed := newCheckup(t, away, &program{})
		show := showHealth(c.screen, inJSON)
		for _, state := range states {
			state.Name = "atlas"
			show(ensemble.Health{Ensembles: []ensemble.EnsembleHealth{state}})
		}
		lines := strings.Split(strings.TrimSpace(printed()), "\n")
		if len(lines) != len(want) {
			t.Errorf("printed %q, want %q", lines, want)
			continue
		}
		for i, line := range lines {
			if !strings.Contains(line, want[i]) {
				t.Errorf("line %d is %q, want %q", i, line, want[i])
			}
		}
	}
}

// Watch ends with its context, and closes what it has assembled.
func TestWatchEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c, _ := newCheckup(t, away, &program{})
	if err := c.Watch(ctx, false); err != nil {
		t.Error(err)
	}
}
