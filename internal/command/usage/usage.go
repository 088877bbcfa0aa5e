// SPDX-License-Identifier: Apache-2.0

// Package usage refuses command lines that mean something unintended, with errors for people.
package usage

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/suggest"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FlagError returns the error of a flag that cannot be parsed, in words for people.
func FlagError(flags *pflag.FlagSet, err error) error {
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok {
		dashes, name := "--", missing.GetSpecifiedName()
		if together := missing.GetSpecifiedShortnames(); together != "" {
			dashes = "-"
			name, _, _ = strings.Cut(together, "=")
		}
		var known []string
		flags.VisitAll(func(flag *pflag.Flag) { known = append(known, flag.Name) })
		if meant := suggest.Name(name, known); meant != "" && len(name) > 1 {
			return fmt.Errorf("unknown flag %s%s; did you mean --%s?", dashes, name, meant)
		}
		return err
	}
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	kind, known := map[string]string{"int": "a whole number", "int64": "a whole number", "bool": "true or false", "duration": `a duration such as "30s"`}[invalid.GetFlag().Value.Type()]
	if !known {
		return err
	}
	return fmt.Errorf("--%s %s: expected %s", invalid.GetFlag().Name, invalid.GetValue(), kind)
}

// RequireFlags returns an error if a flag with a text is empty, for example because a shell
// variable is not set. The command would then do something unintended. The clients without a
// name have an empty one for --explain.
func RequireFlags(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(flag *pflag.Flag) {
		isEmpty := flag.Value.Type() == "string" && flag.Value.String() == "" && flag.Name != "explain"
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			isEmpty = len(list.GetSlice()) == 0 || slices.Contains(list.GetSlice(), "")
		}
		if isEmpty {
			err = exit.Usagef("--%s is empty; give it a value", flag.Name)
		}
	})
	if err != nil {
		return err
	}
	if flag := flags.Lookup("history"); flag != nil && strings.Contains(flag.Value.String(), "://") { // it may contain a password
		return exit.Usagef("--history: expected a file, not a URL; configure a server in [history] with store = \"postgres\" and dsn = \"env:DATABASE_URL\"")
	}
	return nil
}

// RequireArguments returns an error if an argument of a command that has optional ones is empty,
// for the same reason: approve ID "" would answer any wait.
func RequireArguments(cmd *cobra.Command, args []string) error {
	if empty := slices.Index(args, ""); empty >= 0 && strings.Contains(cmd.Use, "[") {
		return exit.Usagef("argument %d is empty; expected: %s", empty+1, strings.TrimSuffix(cmd.UseLine(), " [flags]"))
	}
	return nil
}

// RequireCommands makes the commands below root that only have subcommands print their help, and
// refuse arguments, which are misspelled subcommands. So does the command help.
func RequireCommands(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		switch {
		case cmd.Name() == "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				found, rest, err := root.Find(args)
				if err == nil && found != root && found.HasSubCommands() {
					err = cobra.NoArgs(found, rest)
				}
				return err
			}
		case cmd.HasSubCommands() && !cmd.Runnable():
			cmd.Args = cobra.NoArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
		RequireCommands(cmd)
	}
}
