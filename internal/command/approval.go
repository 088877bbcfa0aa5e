// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/approvals"
	"github.com/consort-go/consort/internal/command/approving"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/terminal"
)

// approving returns the interaction of a command that asks a person before calls that may
// change something. Ask may be nil; it is used if there is a person at the terminal.
func (p *program) approving(cfg *config.Config, ask approvals.Asker, elicit elicitFunc) (interaction, error) {
	allowed, err := approving.Parse(p.approve)
	if err != nil {
		return interaction{}, err
	}
	options := approvals.Options{Allowed: allowed.Allows, Unanswered: approving.Unanswered}
	if terminal.IsAttended(p.stdin, p.screen.Stderr) {
		options.Asker = ask
	}
	p.approver = p.newApprover(cfg, options)
	return interaction{approve: p.approver.Approve, askWrites: true, limit: allowed.Limit, elicit: elicit}, nil
}

// onPage returns the interaction of a command whose user answers on a page of the console:
// calls that may change something wait there for an approval.
func (p *program) onPage(cfg *config.Config) interaction {
	approver := p.newApprover(cfg, approvals.Options{
		Unanswered: func(converse.Approval, error) error { return config.ErrLater },
	})
	return interaction{approve: approver.Approve, askWrites: true}
}

// newApprover returns an approver with options that also uses the user's stored approvals.
func (p *program) newApprover(cfg *config.Config, options approvals.Options) *approvals.Approver {
	options.Server = approving.Servers(cfg)
	options.Warn = func(problem string) { p.screen.Note("%s", display.Text(problem)) }
	if path, err := approvalsFile(); err == nil { // without a place for them, no answer is kept for good
		options.Store = approvals.NewStore(path)
	}
	return approvals.NewApprover(options)
}

// approvalsFile returns the file of the stored approvals.
func approvalsFile() (string, error) { return histories.StateFile("approvals.json") }

// person returns the user at the terminal, for a command that runs one turn, and the
// context of that turn. Ctrl-C at a question cancels it. The caller must call end.
func (p *program) person(ctx context.Context) (turn context.Context, user *terminal.User, end func()) {
	turn, cancel := context.WithCancelCause(ctx)
	return turn, terminal.NewUser(p.screen, p.stdin, nil, func() { cancel(terminal.ErrInterrupted) }), func() { cancel(nil) }
}
