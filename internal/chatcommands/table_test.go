// SPDX-License-Identifier: Apache-2.0

package chatcommands_test

import (
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/chatcommands"
)

func TestParse(t *testing.T) {
	for line, want := range map[string]struct{ name, argument, message, err string }{
		"hello":                     {message: "hello"},
		"  hello\nthere ":           {message: "  hello\nthere "},
		" \n":                       {},
		"hello\r":                   {message: "hello"},
		"":                          {},
		"//etc/hosts what":          {message: "/etc/hosts what"},
		"//":                        {message: "/"},
		"///":                       {message: "//"},
		"/help":                     {name: "/help"},
		" /resume  some-id ":        {name: "/resume", argument: "some-id"},
		"/edit one\ntwo":            {name: "/edit", argument: "one\ntwo"},
		"/edit\none":                {name: "/edit", argument: "one"},
		"/etc/hosts what":           {err: "there is no command /etc/hosts. /help lists the commands; to send the line as a message, type another slash before it: //etc/hosts …"},
		"/Help":                     {err: "Did you mean /help?"},
		"/":                         {err: "there is no command /."},
		"/quit\nand more":           {err: "/quit takes no argument; to send the line as a message"},
		"/save one\n/quit":          {err: "the argument of /save is one line; to send the text as a message"},
		"/newest things I must buy": {err: "there is no command /newest."},
	} {
		command, argument, message, err := chatcommands.Parse(line)
		name := ""
		if command != nil {
			name = command.Name
		}
		if want.err != "" {
			if err == nil || !strings.Contains(err.Error(), want.err) {
				t.Errorf("%q: error %v, want %q", line, err, want.err)
			}
			continue
		}
		if err != nil || name != want.name || argument != want.argument || message != want.message {
			t.Errorf("%q is %q with %q, or the message %q, %v", line, name, argument, message, err)
		}
	}
}

// Each command has a help of one line, and what takes no argument completes none.
func TestAll(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range chatcommands.All() {
		switch {
		case !strings.HasPrefix(c.Name, "/") || seen[c.Name]:
			t.Errorf("the name %q", c.Name)
		case c.Help == "" || len(c.Help) > 60 || strings.Contains(c.Help, "\n"):
			t.Errorf("%s: the help is %q", c.Name, c.Help)
		case c.Arguments == "" && c.Completes != chatcommands.Nothing:
			t.Errorf("%s takes no argument and completes some", c.Name)
		case !strings.Contains(chatcommands.Text(), strings.TrimSpace(c.Name+" "+c.Arguments)+" "):
			t.Errorf("%s is not in the help", c.Name)
		}
		seen[c.Name] = true
	}
}
