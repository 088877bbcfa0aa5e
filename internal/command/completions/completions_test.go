// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/internal/chatcommands"
	"github.com/consort-go/consort/internal/chatui"
	"github.com/spf13/cobra"
)

func roster(t *testing.T) *ensemble.Roster {
	t.Helper()
	read := ensembletest.Returns("read", "text")
	read.Def.Description = "Reads a file.\nAnd more."
	roster, err := ensemble.NewRoster(ensemble.Local("files", read, ensembletest.Returns("write", "done")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := roster.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return roster
}

func TestSetting(t *testing.T) {
	cfg, err := config.Parse("consort.toml", []byte("[mcp.files]\ncommand = [\"true\"]\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		cfg   *config.Config
		typed string
		want  []string
		space cobra.ShellCompDirective
	}{
		{nil, "mod", []string{"model."}, cobra.ShellCompDirectiveNoSpace},
		{nil, "model.api=c", []string{"model.api=chat"}, 0},
		{nil, "model.temp", []string{"model.temperature=\ta number"}, cobra.ShellCompDirectiveNoSpace},
		{cfg, "mcp.", []string{"mcp.files."}, cobra.ShellCompDirectiveNoSpace},
		{nil, "mcp.", nil, cobra.ShellCompDirectiveNoSpace},
		{nil, "mcp.new.call_t", []string{"mcp.new.call_timeout=\ta duration"}, cobra.ShellCompDirectiveNoSpace},
	} {
		found, directive := Setting(test.cfg, test.typed)
		if !slices.Equal(found, test.want) || directive != test.space|cobra.ShellCompDirectiveNoFileComp {
			t.Errorf("%q completes to %q (%v), want %q", test.typed, found, directive, test.want)
		}
	}
}

func TestServers(t *testing.T) {
	ctx, roster := t.Context(), roster(t)
	tools, err := Tools(ctx, roster, "files")
	if want := []string{"read\tReads a file.", "write\tThe scripted tool write."}; err != nil || !slices.Equal(tools, want) {
		t.Errorf("the tools are %q (%v), want %q", tools, err, want)
	}
	if tools, err := Tools(ctx, roster, "nothing"); err != nil || len(tools) > 0 {
		t.Errorf("the tools of no ensemble are %q (%v)", tools, err)
	}
	rules := ApprovalRules(&config.Config{MCP: map[string]*config.Server{"web": {}, "files": {}}})
	if len(rules) != 4 || rules[2] != "files__*\tthe tools of files" {
		t.Errorf("the rules are %q", rules)
	}
}

func TestChat(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Mkdir("some[folder]", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("some[file]", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := Chat{Roster: roster(t), Candidates: func(_ context.Context, _ chatcommands.Source, prefix string) []string {
		return []string{prefix + "-1"}
	}}
	takes := map[chatcommands.Source]string{} // a command whose argument is of a source
	for _, command := range chatcommands.All() {
		takes[command.Completes] = command.Name
	}
	for text, want := range map[string]chatui.Completions{
		"/hel":                                 {Replace: 4, Items: []chatui.Completion{{Text: "/help", About: "what the commands are"}}},
		"Use files__w":                         {Replace: 8, Items: []chatui.Completion{{Text: "files__write", About: "The scripted tool write."}}},
		"@nothing":                             {Replace: 8},
		"Hello ":                               {},
		"//hel":                                {Replace: 5},
		takes[chatcommands.Models] + " gpt":    {Replace: 3, Items: []chatui.Completion{{Text: "gpt-1"}}},
		takes[chatcommands.Files] + " some[fo": {Replace: 7, Items: []chatui.Completion{{Text: "some[folder]" + string(filepath.Separator)}}},
		takes[chatcommands.Files] + " some[file]": {Replace: 10, Items: []chatui.Completion{{Text: "some[file]"}}},
	} {
		got := c.Complete(t.Context(), text)
		for i := range got.Items { // help texts have a test of their own
			if strings.HasPrefix(got.Items[i].Text, "/help") {
				got.Items[i].About = "what the commands are"
			}
		}
		if got.Replace != want.Replace || !slices.Equal(got.Items, want.Items) {
			t.Errorf("%q completes to %+v, want %+v", text, got, want)
		}
	}
}
