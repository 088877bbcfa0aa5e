// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/shown"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/invoker"
	"github.com/spf13/cobra"
)

// session is a conversation, and the store that keeps it.
type session struct {
	program *program
	talk    *converse.Conversation
	store   history.Store // nil keeps nothing
	was     history.Info  // before this command; zero if the conversation is new
	limits  converse.Limits
	other   bool // it belongs to a client of serve that this command does not act for

	overtaken bool // another process continued the conversation during the last turn
	gone      bool // another process deleted the conversation
}

// withHistory adds the flag --history to a command.
func (p *program) withHistory(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&p.location.Flag, "history", "", "keep conversations in `FILE`, whatever the configuration says; none keeps nothing")
	return cmd
}

// openSession opens the selected conversation and loads its stored canisters. The caller must
// close the conversation.
func openSession(ctx context.Context, p *program, assembly *config.Assembly, want histories.Choice) (*session, error) {
	s := &session{program: p, limits: assembly.Options.Limits}
	var err error
	if s.store, err = assembly.History(ctx); err != nil {
		return nil, p.location.OpenError(err)
	}
	options := *assembly.Options
	if s.store != nil {
		if s.was, err = histories.Find(ctx, s.store, want); err != nil {
			return nil, err
		}
		options.Log, options.ID = s.store, s.was.ID
		if s.other, err = ofAnother(ctx, p, assembly, s.was); err != nil {
			return nil, err
		}
	}
	s.talk = converse.New(assembly.Model, assembly.Roster, &options)
	if s.was.Length == 0 {
		return s, nil
	}
	if err := s.talk.Load(ctx); err != nil {
		return nil, errors.Join(err, s.talk.Close(ctx))
	}
	return s, nil
}

// ofAnother reports whether a conversation belongs to a client of serve whose trusted
// values this command does not have. Approvals for that client would not be valid here.
func ofAnother(ctx context.Context, p *program, assembly *config.Assembly, info history.Info) (bool, error) {
	if !histories.Served(info) {
		return false, nil
	}
	scope, err := p.location.Scope()
	if err != nil {
		return false, err
	}
	owner, err := assembly.OwnerOf(invoker.WithTrusted(ctx, assembly.Trusted...))
	return owner != histories.ClientsOnly{Scope: scope}.Known(info.Owner), err
}

// turn runs a turn. Its error also reports a turn that a limit cut short.
func (s *session) turn(ctx context.Context, said string) error {
	s.overtaken = false
	done, err := turn(ctx, s.talk, said, s.renderer())
	s.program.showTrace()
	s.entitle(ctx)
	if err != nil {
		return s.explain(err)
	}
	return shortfall(done, s.limits)
}

// renderer returns the renderer of the program. JSON lines contain the ID of the
// conversation if it is stored.
func (s *session) renderer() terminal.Renderer {
	if s.program.json && s.store != nil {
		return terminal.JSONLines{Screen: s.program.screen, Conversation: s.talk.ID()}
	}
	return s.program.renderer()
}

// explain adds advice to the error of a conversation that another process continued or
// deleted.
func (s *session) explain(err error) error {
	var conflict *history.ConflictError
	if !errors.As(err, &conflict) {
		return err
	}
	s.overtaken = true
	if s.gone = conflict.Length == 0; s.gone {
		return fmt.Errorf("somebody has deleted this conversation meanwhile, and this turn stopped there: %w", err)
	}
	id := histories.Word(s.talk.ID())
	return fmt.Errorf("somebody else has gone on with this conversation meanwhile, and this turn stopped there. "+
		"Nothing of theirs is lost: see it with %s, and then carry on from there, as with %s: %w", s.program.location.CommandLine("history show "+id), s.program.location.CommandLine("chat --conversation "+id), err)
}

// entitle stores a title if the conversation has none. A failure is only noted.
func (s *session) entitle(ctx context.Context) {
	if s.store == nil || s.was.Title != "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	now, err := s.store.Info(ctx, s.talk.ID())
	if err == nil && now.Title == "" {
		if now = (histories.Titled{Store: s.store}).Entitled(ctx, now); now.Title != "" {
			err = s.store.Describe(ctx, s.talk.ID(), history.Change{Title: &now.Title})
		}
	}
	if err != nil && !errors.Is(err, history.ErrNotFound) { // not found: nothing was said
		s.program.screen.Note("the conversation has no title: %s", shown.Text(err.Error()))
	}
	s.was.Title = now.Title
}

// adviseResume prints how to continue an unfinished turn.
func (s *session) adviseResume() {
	if s.store == nil || s.overtaken || !waits(s.talk) {
		return
	}
	id := histories.Word(s.talk.ID())
	if s.other {
		s.program.screen.Note("The turn is not done. The conversation belongs to a client of consort serve, which carries it on; what it waits for is answered with: %s", s.program.location.CommandLine("approve "+id))
		return
	}
	if wait, waits := s.talk.Next().(converse.Await); waits {
		s.program.screen.Note("The turn waits for somebody, until %s: see for what, and answer, with: %s", wait.Deadline.Local().Format(time.DateTime), s.program.location.CommandLine("approve "+id))
		return
	}
	s.program.screen.Note("%s", s.program.screen.Notes.Faint("The turn is not done; carry on with it: "+s.program.location.CommandLine("resume "+id)))
}

// warnLeft prints which pending work a new message abandons.
func (s *session) warnLeft() {
	if s.was.Length == 0 {
		return
	}
	switch s.talk.Next().(type) {
	case converse.Await:
		s.program.screen.Note("The conversation waited for somebody, and goes on without the answer: what waited for it is not done.")
	case converse.Invoke:
		s.program.screen.Note("The conversation was left with calls of tools that have no result; the model is told that they were interrupted.")
	}
}

// sayWhich prints the ID of a new conversation and how to continue it.
func (s *session) sayWhich() {
	if s.store != nil && !s.program.json && s.was.Length == 0 && s.talk.Length() > 0 && !s.gone {
		s.program.screen.Note("%s", s.program.screen.Notes.Faint("This was conversation "+histories.Word(s.talk.ID())+". Carry on with it: "+s.program.location.CommandLine("run --conversation "+histories.Word(s.talk.ID()))))
	}
}

// adviseContinue prints how to come back to the conversation.
func (s *session) adviseContinue() {
	if s.store != nil && s.talk.Length() > 0 && !s.gone {
		s.program.screen.Note("%s", s.program.screen.Notes.Faint("This was conversation "+histories.Word(s.talk.ID())+". Carry on with it: "+s.program.location.CommandLine("chat --conversation "+histories.Word(s.talk.ID()))))
	}
}

func resumeCommand(p *program) *cobra.Command {
	return p.withHistory(p.withTrace(p.withTrust(p.withJSON(&cobra.Command{
		Use:   "resume ID",
		Short: "Carry on with a turn that was not done",
		Long: "Resume carries on with a conversation whose last turn was cut off. Calls of tools\n" +
			"that were not begun are made. One that may have been made is made again where its\n" +
			"tool says that this does no harm; otherwise the model is told that nobody knows,\n" +
			"or somebody is asked, as history.doubt says. Then the model is asked.",
		Example: "  consort history list --open\n  consort resume 20261121-k3f9ab2c",
		Args:    cobra.ExactArgs(1),
		RunE:    runE(func(ctx context.Context, args []string) error { return runResume(ctx, p, args) }),
	}, "print one line of JSON for each event"))))
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
	assembly, err := p.withStore(ctx, cfg, histories.Existing, interaction{elicit: p.screen.Decline})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(assembly)) }()
	s, err := openSession(ctx, p, assembly, histories.Choice{ID: args[0], Must: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.talk.Close(context.Background())) }()
	if s.other {
		return exit.Usagef("the conversation %s belongs to a client of consort serve, which carries it on while it runs: "+
			"to carry it on here, give what that client is trusted with, as in --trust user=ada", histories.Word(args[0]))
	}
	if done, is := s.talk.Next().(converse.Done); is && !done.Reason.Limited() {
		p.screen.Note("%s", p.screen.Notes.Faint("Nothing is left to do; the conversation waits for its user."))
	}
	defer s.adviseResume()
	return s.turn(ctx, "")
}
