// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/invoker"
)

// session is a conversation, and the store that keeps it.
type session struct {
	program      *program
	conversation *converse.Conversation
	model        converse.Model
	modelName    string        // for the screen of chat
	store        history.Store // nil keeps nothing
	was          history.Info  // before this command; zero if the conversation is new
	limits       converse.Limits
	other        bool // it belongs to a client of serve that this command does not act for

	overtaken bool // another process continued the conversation during the last turn
	gone      bool // another process deleted the conversation
}

// openSession opens the selected conversation and loads its stored canisters. The caller must
// close the conversation.
func openSession(ctx context.Context, p *program, assembly *config.Assembly, want histories.Choice) (*session, error) {
	store, err := assembly.History(ctx)
	if err != nil {
		return nil, p.location.OpenError(err)
	}
	return sessionOptions{store: store, model: assembly.Model, want: want}.open(ctx, p, assembly)
}

// sessionOptions say which conversation a session has.
type sessionOptions struct {
	store   history.Store // nil keeps nothing
	model   converse.Model
	want    histories.Choice    // without a store, only its ID counts
	history []canister.Canister // what it begins with, without a store
}

// open opens the conversation and loads it, which also checks the options.
func (o sessionOptions) open(ctx context.Context, p *program, assembly *config.Assembly) (*session, error) {
	s := &session{program: p, limits: assembly.Options.Limits, store: o.store, model: o.model}
	options := *assembly.Options
	if s.store == nil {
		options.ID, options.History = cmp.Or(o.want.ID, histories.NewID()), o.history
	} else {
		var err error
		if s.was, err = histories.Find(ctx, s.store, o.want); err != nil {
			return nil, err
		}
		options.Log, options.ID = s.store, s.was.ID
		if s.other, err = ofAnother(ctx, p, assembly, s.was); err != nil {
			return nil, err
		}
	}
	if p.approver != nil {
		var later error
		if s.store != nil {
			later = config.ErrLater
		}
		p.approver.Begin(later)
	}
	s.conversation = converse.New(o.model, assembly.Roster, &options)
	if err := s.conversation.Load(ctx); err != nil {
		return nil, errors.Join(err, s.conversation.Close(ctx))
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

// turn runs a turn that begins with the user's message said, or with the history if said is
// empty. Its error also reports a turn that a limit cut short.
func (s *session) turn(ctx context.Context, said string) error {
	if said == "" {
		return s.play(ctx, s.conversation.Continue(ctx))
	}
	return s.play(ctx, s.conversation.Send(ctx, canister.Text(said)))
}

// play renders the events of a turn, and returns its error.
func (s *session) play(ctx context.Context, events iter.Seq2[converse.Event, error]) error {
	s.overtaken = false
	done, err := play(events, s.renderer())
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
		return &terminal.JSONLines{Screen: s.program.screen, Conversation: s.conversation.ID()}
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
		return fmt.Errorf("another program deleted this conversation, so this turn stopped: %w", err)
	}
	id := histories.Word(s.conversation.ID())
	return fmt.Errorf("another program continued this conversation, so this turn stopped. "+
		"What the other program added is kept: see it with %s, and continue with %s: %w", s.program.location.CommandLine("history show "+id), s.program.location.CommandLine("chat --conversation "+id), err)
}

// entitle stores a title if the conversation has none. A failure is only noted.
func (s *session) entitle(ctx context.Context) {
	if s.store == nil || s.was.Title != "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	now, err := s.store.Info(ctx, s.conversation.ID())
	if err == nil && now.Title == "" {
		if now = (histories.Titled{Store: s.store}).Entitled(ctx, now); now.Title != "" {
			err = s.store.Describe(ctx, s.conversation.ID(), history.Change{Title: &now.Title})
		}
	}
	if err != nil && !errors.Is(err, history.ErrNotFound) { // not found: nothing was said
		s.program.screen.Note("the conversation has no title: %s", display.Text(err.Error()))
	}
	s.was.Title = now.Title
}

// adviseResume prints how to continue an unfinished turn.
func (s *session) adviseResume() {
	if s.store == nil || s.overtaken || !waits(s.conversation) {
		return
	}
	id := histories.Word(s.conversation.ID())
	if s.other {
		s.program.screen.Note("The turn is not finished. The conversation belongs to a client of consort serve, which continues it; answer its question with: %s", s.program.location.CommandLine("approve "+id))
		return
	}
	if wait, waits := s.conversation.Next().(converse.Await); waits {
		s.program.screen.Note("The turn waits for an answer until %s. See the question and answer it with: %s", wait.Deadline.Local().Format(time.DateTime), s.program.location.CommandLine("approve "+id))
		return
	}
	s.program.screen.Note("%s", s.program.screen.Notes.Faint("The turn is not finished. Continue it with: "+s.program.location.CommandLine("resume "+id)))
}

// warnLeft prints which pending work a new message abandons.
func (s *session) warnLeft() {
	if s.was.Length == 0 {
		return
	}
	switch s.conversation.Next().(type) {
	case converse.Await:
		s.program.screen.Note("The conversation was waiting for an answer and continues without it: the call that waited is not made.")
	case converse.Invoke:
		s.program.screen.Note("Calls of tools in this conversation have no result; the model is told that they were interrupted.")
	}
}

// sayWhich prints the ID of a new conversation and how to continue it.
func (s *session) sayWhich() {
	if s.store != nil && !s.program.json && s.was.Length == 0 && s.conversation.Length() > 0 && !s.gone {
		s.program.screen.Note("%s", s.program.screen.Notes.Faint("This was conversation "+histories.Word(s.conversation.ID())+". Continue it with: "+s.program.location.CommandLine("run --conversation "+histories.Word(s.conversation.ID()))))
	}
}

// adviseContinue prints how to come back to the conversation.
func (s *session) adviseContinue() {
	if s.store != nil && s.conversation.Length() > 0 && !s.gone {
		s.program.screen.Note("%s", s.program.screen.Notes.Faint("This was conversation "+histories.Word(s.conversation.ID())+". Continue it with: "+s.program.location.CommandLine("chat --conversation "+histories.Word(s.conversation.ID()))))
	}
}
