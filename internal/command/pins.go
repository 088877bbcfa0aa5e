// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"

	"github.com/consort-go/consort/internal/command/pinned"
	"github.com/consort-go/consort/internal/reports"
	"github.com/spf13/cobra"
)

func pinsCommand(p *program) *cobra.Command {
	cmd := p.withJSON(&cobra.Command{
		Use:   "pins",
		Short: "List the pinned tools, and the changes of those that differ",
		Args:  cobra.NoArgs,
		RunE:  runE(func(context.Context, []string) error { return runPins(p) }),
	}, oneDocument)
	cmd.AddCommand(p.withJSON(&cobra.Command{
		Use:   "accept [ENSEMBLE [TOOL [FINGERPRINT]]]",
		Short: "Accept changed tools, and show the changes",
		Long: "Accept pins TOOL as it was last listed; without TOOL, all changed tools of\n" +
			"ENSEMBLE; without arguments, those of all servers. It shows the accepted\n" +
			"changes. To see them first: consort pins. With a FINGERPRINT that it printed,\n" +
			"accept fails if TOOL has changed again since.",
		Example: "  consort pins accept files read_file",
		Args:    cobra.MaximumNArgs(3),
		RunE:    runE(func(_ context.Context, args []string) error { return runAcceptPins(p, args) }),
	}, oneDocument))
	return cmd
}

// runPins lists the pins. It connects to no server.
func runPins(p *program) error {
	list, err := withPins(p, (*pinned.Servers).List)
	if err != nil {
		return err
	}
	return printResult(p, list, list.Text(p.screen.Results, p.location.CommandLine("pins accept ENSEMBLE TOOL FINGERPRINT")))
}

func runAcceptPins(p *program, args []string) error {
	list, err := withPins(p, func(servers *pinned.Servers) (*reports.PinList, error) { return servers.Accept(args) })
	if err != nil {
		return err
	}
	return printResult(p, list, list.AcceptedText(p.screen.Results))
}

// withPins calls do with the pins of the configuration.
func withPins(p *program, do func(*pinned.Servers) (*reports.PinList, error)) (*reports.PinList, error) {
	cfg, err := p.load()
	if err != nil {
		return nil, err
	}
	servers, err := pinned.Open(p.location.Name(), cfg)
	if err != nil {
		return nil, err
	}
	return do(servers)
}
