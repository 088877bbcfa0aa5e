// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"time"

	"github.com/consort-go/consort/internal/approvals"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/glob"
	"github.com/consort-go/consort/internal/reports"
	"github.com/spf13/cobra"
)

func approvalsCommand(p *program) *cobra.Command {
	cmd := p.withJSON(&cobra.Command{
		Use:   "approvals",
		Short: "List the tools that you have always allowed",
		Long: "Approvals lists the tools that run without asking because you answered a question with\n" +
			"\"always\". Such an answer holds for one tool as it was defined then, of one server.",
		Args: cobra.NoArgs,
		RunE: runE(func(context.Context, []string) error { return runApprovals(p) }),
	}, oneDocument)
	all := false
	revoke := p.withJSON(&cobra.Command{
		Use:     "revoke [TOOL]",
		Short:   "Ask again before a tool runs",
		Long:    "Revoke removes what was stored for TOOL, a name or a glob such as files__*. Programs\nthat run now ask again too.",
		Example: "  consort approvals revoke files__write_file\n  consort approvals revoke --all",
		Args:    cobra.MaximumNArgs(1),
		RunE:    runE(func(_ context.Context, args []string) error { return runRevoke(p, all, args) }),
	}, oneDocument)
	revoke.Flags().BoolVar(&all, "all", false, "revoke everything, also from a file that cannot be read")
	cmd.AddCommand(revoke)
	return cmd
}

// openApprovals returns the user's stored approvals.
func openApprovals() (*approvals.Store, error) {
	path, err := approvalsFile()
	if err != nil {
		return nil, exit.Usagef("there is no place for stored approvals: %w; set HOME or XDG_STATE_HOME", err)
	}
	return approvals.NewStore(path), nil
}

func runApprovals(p *program) error {
	store, err := openApprovals()
	if err != nil {
		return err
	}
	stored, err := store.List()
	if err != nil {
		return exit.Usagef("%w", err)
	}
	list := reports.NewApprovalList(stored)
	return printResult(p, list, list.Text(p.screen.Results))
}

func runRevoke(p *program, all bool, args []string) error {
	if all == (len(args) == 1) {
		return exit.Usagef("name a tool, as in consort approvals revoke files__write_file, or give --all")
	}
	store, err := openApprovals()
	if err != nil {
		return err
	}
	removed := false
	revoked, err := store.Revoke(func(one *approvals.Stored) bool { return all || glob.Match(args[0], one.Name()) })
	switch {
	case err != nil && all:
		removed, err = true, store.Remove()
	case err != nil:
		return exit.Usagef("%w", err)
	case len(revoked) == 0 && !all:
		return exit.Usagef("%s is not among the stored approvals; consort approvals lists them", display.Line(args[0]))
	}
	if err != nil {
		return err
	}
	const removedText = "the file of the stored approvals could not be read or written; it is removed"
	if p.json {
		if removed {
			p.screen.Note(removedText)
		}
		return p.screen.PrintDocument(reports.NewApprovalList(revoked))
	}
	for _, one := range revoked {
		p.screen.Print(fmt.Sprintf("%s: revoked; it is asked for again (it was allowed on %s)\n", p.screen.Results.Name(display.Line(one.Name())), one.Allowed.Local().Format(time.DateOnly)))
	}
	switch {
	case removed:
		p.screen.Print(removedText + "\n")
	case len(revoked) == 0:
		p.screen.Print("nothing was allowed\n")
	}
	return p.screen.Err()
}
