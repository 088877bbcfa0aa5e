// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strconv"

	"github.com/spf13/cobra"
)

// flags are flags that several commands share.
type flags struct {
	logLevel, logFormat string
	json                bool
	trace               bool
	trust               []string // NAME=VALUE
	zone                string   // of times for people
	approve             []string // all, reads or tools
}

// withJSON adds the flag --json to a command.
func (p *program) withJSON(cmd *cobra.Command, usage string) *cobra.Command {
	cmd.Flags().BoolVar(&p.json, "json", false, usage)
	return cmd
}

// oneDocument is the usage of the flag --json of a command that prints one document.
const oneDocument = "print one JSON document"

// printResult prints a document if --json is set, and the text otherwise.
func printResult(p *program, document any, text string) error {
	if p.json {
		return p.screen.PrintDocument(document)
	}
	p.screen.Print(text)
	return p.screen.Err()
}

// withTrace adds the flag --trace to a command, and enables telemetry for it even without
// the flag.
func (p *program) withTrace(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&p.trace, "trace", false, "print the spans of each turn, or call, to standard error")
	cmd.PreRun = func(*cobra.Command, []string) { p.needs.telemetry = true }
	return cmd
}

// withHistory adds the flag --history to a command.
func (p *program) withHistory(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&p.location.Flag, "history", "", "store conversations in `FILE`, regardless of the configuration; none stores nothing")
	return cmd
}

// withZone adds the flag --time-zone to a command.
func (p *program) withZone(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&p.zone, "time-zone", "", "print times in the time zone `NAME`, such as Europe/Oslo or UTC (default: that of this machine, or of TZ)")
	return cmd
}

// withPlain adds the flag --plain to a command.
func (p *program) withPlain(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolFunc("plain", "print only lines: no colours, and nothing that changes or moves; for screen readers and simple terminals", func(value string) error {
		plain, err := strconv.ParseBool(value)
		if plain {
			p.screen.MakePlain()
		}
		return err
	})
	return cmd
}

// withTrust adds the flag --trust to a command.
func (p *program) withTrust(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringArrayVar(&p.trust, "trust", nil,
		"give tools the trusted value `NAME=VALUE`; other users can see a command line, so write a secret as NAME=env:VARIABLE")
	return cmd
}

// withApprove adds the flag --approve to a command.
func (p *program) withApprove(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringArrayVar(&p.approve, "approve", nil,
		"run calls without asking: `RULE` is all, reads (and nothing else), or tools by name, such as files__*; may be repeated")
	return cmd
}
