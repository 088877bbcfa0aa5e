// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/reports"
	"github.com/consort-go/consort/internal/servetoken"
	"github.com/spf13/cobra"
)

// section returns the part of docs/command.md below a heading.
func section(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "command.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut("\n"+string(text), "\n"+heading+"\n")
	if !found {
		t.Fatalf("docs/command.md has no heading %q", heading)
	}
	part, _, _ := strings.Cut(rest, "\n#")
	return part
}

// rows returns the first columns of the table of a section, and the second.
func rows(t *testing.T, heading string) (first, second []string) {
	t.Helper()
	for _, row := range regexp.MustCompile("(?m)^\\| `?([^`|]+)`? \\| ?([^|]*)\\|").FindAllStringSubmatch(section(t, heading), -1) {
		if name := strings.TrimSpace(row[1]); name != "member" && name != "flag" && name != "status" && name[0] != '-' ||
			strings.HasPrefix(name, "--") && len(name) > 3 && name[2] != '-' {
			first, second = append(first, name), append(second, strings.TrimSpace(row[2]))
		}
	}
	return first, second
}

// members returns the paths of the members that the JSON form of a type has.
func members(of reflect.Type, prefix string) []string {
	switch of.Kind() {
	case reflect.Pointer:
		return members(of.Elem(), prefix)
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Struct {
			return append([]string{prefix + "[]"}, below(of.Elem(), prefix+"[].")...)
		}
	case reflect.Struct:
		return append([]string{prefix}, below(of, prefix+".")...)
	}
	return []string{prefix}
}

func below(of reflect.Type, prefix string) []string {
	var paths []string
	for field := range of.Fields() {
		if field.Anonymous {
			paths = append(paths, below(field.Type, prefix)...)
		}
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			paths = append(paths, members(field.Type, prefix+name)...)
		}
	}
	return paths
}

func TestTheDocumentsAreDocumented(t *testing.T) {
	t.Parallel()
	for heading, of := range map[string]reflect.Type{
		"### `tools --json`":                                   reflect.TypeFor[reports.ToolList](),
		"### `resources --json`":                               reflect.TypeFor[reports.ResourceList](),
		"### `prompts --json`":                                 reflect.TypeFor[reports.PromptList](),
		"### `check --json`":                                   reflect.TypeFor[reports.Check](),
		"### `token new --json`":                               reflect.TypeFor[servetoken.Token](),
		"### `pins --json` and `pins accept --json`":           reflect.TypeFor[reports.PinList](),
		"### `history list --json` and `history prune --json`": reflect.TypeFor[histories.ConversationList](),
		"### `history search --json`":                          reflect.TypeFor[histories.FoundList](),
		"### `approve --json` without ID":                      reflect.TypeFor[histories.AllWaits](),
		"### `approve --json`":                                 reflect.TypeFor[histories.WaitList](),
		"### `approve --json` with an answer":                  reflect.TypeFor[histories.Answered](),
		"### `history show --json`":                            reflect.TypeFor[histories.ConversationShown](),
	} {
		documented, _ := rows(t, heading)
		actual := below(of, "")
		actual = slices.DeleteFunc(actual, func(path string) bool { return path == "tools[].hints" })
		if !slices.Equal(documented, actual) {
			t.Errorf("%s: documented %q, actual %q", heading, documented, actual)
		}
	}
}

func TestTheStatusesAreDocumented(t *testing.T) {
	t.Parallel()
	documented, _ := rows(t, "## Exit status")
	if !slices.Equal(documented, []string{"0", "1", "2", "3", "4", "5", "141"}) {
		t.Errorf("documented are %q", documented)
	}
}

func TestTheFlagsAreDocumented(t *testing.T) {
	t.Parallel()
	documented, commands := rows(t, "## Flags")
	root := rootCommand(newProgram(os.Stdin, os.Stdout, os.Stderr))
	for _, cmd := range everyCommand(root) {
		called := strings.TrimPrefix(cmd.CommandPath(), "consort ")
		for i, flag := range documented {
			name := strings.TrimPrefix(strings.Fields(flag)[0], "--")
			if has, said := hasFlag(cmd, name), strings.Contains(commands[i], "`"+called+"`"); has != said && !strings.HasPrefix(commands[i], "all") {
				t.Errorf("--%s of %s: the command has it: %v, its documentation says so: %v", name, called, has, said)
			}
		}
		for _, flag := range regexp.MustCompile(`(?m)^ +(?:-\w, )?(--[a-z-]+)`).FindAllStringSubmatch(cmd.LocalNonPersistentFlags().FlagUsages(), -1) {
			if !slices.ContainsFunc(documented, func(row string) bool { return strings.Fields(row)[0] == flag[1] }) {
				t.Errorf("%s of %s has no row", flag[1], called)
			}
		}
		contains(t, "the list of commands", section(t, "# The command"), "consort "+called)
	}
}

// everyCommand returns the commands that people see, those below others too.
func everyCommand(of *cobra.Command) []*cobra.Command {
	var every []*cobra.Command
	for _, cmd := range of.Commands() {
		if !cmd.Hidden && cmd.Name() != "help" && cmd.Name() != "completion" {
			every = append(append(every, cmd), everyCommand(cmd)...)
		}
	}
	return every
}

func hasFlag(cmd *cobra.Command, name string) bool { return cmd.Flags().Lookup(name) != nil }
