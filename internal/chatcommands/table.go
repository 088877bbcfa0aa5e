// SPDX-License-Identifier: Apache-2.0

package chatcommands

import (
	"context"
	"fmt"
	"strings"

	"github.com/consort-go/consort/internal/suggest"
)

// Command is a command of chat.
type Command struct {
	Name      string // with the slash
	Arguments string // such as [ID]; empty if it takes none
	Help      string // one line
	Completes Source // of the first argument
	lines     bool   // the argument may have several lines
	run       func(c *Chat, ctx context.Context, argument string) error
}

// Source is where the completions of an argument come from; see [Chat.Candidates].
type Source int

// The sources.
const (
	Nothing       Source = iota
	Conversations        // the IDs of stored conversations
	Entries              // the numbers of the entries of the conversation
	Files                // the files of the working directory; the caller lists them
	Models               // the names of the configured models
)

// All returns the commands in the order in which /help lists them.
func All() []Command {
	return []Command{
		{Name: "/new", Help: "begin a new conversation", run: (*Chat).begin},
		{Name: "/resume", Arguments: "[ID]", Help: "continue an unfinished turn or another conversation", Completes: Conversations, run: (*Chat).resume},
		{Name: "/history", Help: "list the entries of the conversation, with numbers", run: (*Chat).listEntries},
		{Name: "/show", Arguments: "[N]", Help: "show entry N, or the last call, in full", Completes: Entries, run: (*Chat).show},
		{Name: "/export", Arguments: "[FILE]", Help: "write the conversation to FILE: .md, .html or .jsonl", Completes: Files, run: (*Chat).export},
		{Name: "/save", Arguments: "[TITLE]", Help: "keep the conversation, with a title", run: (*Chat).save},
		{Name: "/copy", Help: "copy the last answer to the clipboard", run: (*Chat).copy},
		{Name: "/retry", Help: "send your last message again, in a copy", run: (*Chat).retry},
		{Name: "/edit", Arguments: "[TEXT]", Help: "change your last message, in a copy", lines: true, run: (*Chat).edit},
		{Name: "/fork", Arguments: "[N]", Help: "continue in a copy of the first N entries, or of all", Completes: Entries, run: (*Chat).fork},
		{Name: "/model", Arguments: "[NAME]", Help: "change the model, or list the models", Completes: Models, run: (*Chat).model},
		{Name: "/tools", Help: "list the tools", run: (*Chat).tools},
		{Name: "/servers", Help: "show the state of the servers", run: (*Chat).servers},
		{Name: "/compact", Help: "summarise the older part of the conversation", run: (*Chat).compact},
		{Name: "/cost", Help: "show tokens, cost and what is left of the budget", run: (*Chat).cost},
		{Name: "/help", Help: "list the commands", run: (*Chat).help},
		{Name: "/quit", Help: "leave; so does Ctrl-D", run: func(*Chat, context.Context, string) error { return errLeave }},
		{Name: "/exit", Help: "leave, like /quit", run: func(*Chat, context.Context, string) error { return errLeave }},
	}
}

// Parse returns the command of a line of input, and its argument; or the message that the
// line is, if it is none. Two slashes at the beginning of a message stand for one.
func Parse(line string) (command *Command, argument, message string, err error) {
	whole := strings.TrimSuffix(line, "\r") // of a text with CRLF
	line = strings.TrimSpace(line)
	switch {
	case strings.HasPrefix(line, "//"):
		return nil, "", strings.Replace(whole, "/", "", 1), nil
	case line == "":
		return nil, "", "", nil
	case !strings.HasPrefix(line, "/"):
		return nil, "", whole, nil
	}
	name := strings.Fields(line)[0]
	argument = strings.TrimSpace(line[len(name):])
	all := All()
	for i := range all {
		if all[i].Name == name {
			return &all[i], argument, "", all[i].check(argument)
		}
	}
	return nil, "", "", unknown(name, all)
}

// check returns an error if the command does not take the argument.
func (c *Command) check(argument string) error {
	switch {
	case argument == "":
	case c.Arguments == "":
		return fmt.Errorf("%s takes no argument; to send the line as a message, type another slash before it", c.Name)
	case strings.Contains(argument, "\n") && !c.lines:
		return fmt.Errorf("the argument of %s is one line; to send the text as a message, type another slash before it", c.Name)
	}
	return nil
}

// unknown returns the error for a first word that is not a command.
func unknown(name string, all []Command) error {
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.Name
	}
	hint := ""
	if like := suggest.Name(name, names); like != "" {
		hint = " Did you mean " + like + "?"
	}
	return fmt.Errorf("there is no command %s.%s /help lists the commands; to send the line as a message, type another slash before it: /%s …", name, hint, name)
}

// Text returns the list for /help.
func Text() string {
	all, width := All(), 0
	head := func(c Command) string { return strings.TrimSpace(c.Name + " " + c.Arguments) }
	for _, c := range all {
		width = max(width, len(head(c)))
	}
	var b strings.Builder
	for _, c := range all {
		fmt.Fprintf(&b, "%-*s  %s\n", width, head(c), c.Help)
	}
	fmt.Fprintf(&b, "%-*s  %s\n", width, "//text", "send /text as a message")
	fmt.Fprintf(&b, "%-*s  %s\n", width, "Ctrl-C", "cancel the current turn; twice: leave")
	return b.String()
}
