// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/command/session"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/histories"
	"github.com/spf13/cobra"
)

func resumeCommand(p *program) *cobra.Command {
	return p.withApprove(p.withHistory(p.withPlain(p.withTrace(p.withTrust(p.withJSON(&cobra.Command{
		Use:   "resume ID",
		Short: "Continue a turn that was not done",
		Long: "Resume continues a conversation whose last turn was cut off. It makes the calls of\n" +
			"tools that were not begun. It repeats a call that may have been made if the tool\n" +
			"declares that a repetition is harmless; otherwise the model is told that the outcome\n" +
			"is unknown, or a person is asked, as history.doubt says. Then it asks the model.",
		Example: "  consort history list --open\n  consort resume 20261121-k3f9ab2c",
		Args:    cobra.ExactArgs(1),
		RunE:    runE(func(ctx context.Context, args []string) error { return runResume(ctx, p, args) }),
	}, "print one line of JSON per event"))))))
}

func runResume(ctx context.Context, p *program, args []string) (err error) {
	if err := history.CheckID(args[0]); err != nil { // an empty ID would start a new conversation
		return exit.Usagef("%w", err)
	}
	cfg, err := p.load()
	if err != nil {
		return err
	}
	p.needs.view = !p.json
	ctx, user, end := p.person(ctx)
	defer end()
	with, err := p.approving(cfg, user, p.screen.Decline)
	if err != nil {
		return err
	}
	assembly, err := p.withStore(ctx, cfg, histories.Existing, with)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(assembly)) }()
	s, err := session.Open(ctx, p.session(), assembly, histories.Choice{ID: args[0], Must: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unclosed(s.Conversation.Close(context.Background()))) }()
	if err := s.CanContinue(); err != nil {
		return err
	}
	if done, is := s.Conversation.Next().(converse.Done); is && !done.Reason.Limited() {
		p.screen.Hint("Nothing is left to do; the conversation waits for a message of its user.")
	}
	defer s.AdviseResume()
	return s.Turn(ctx, "")
}
