// SPDX-License-Identifier: Apache-2.0

// Package session opens a conversation for a command, plays its turns on the screen, and
// tells the user how to continue it.
package session

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
	"github.com/consort-go/consort/internal/approvals"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/invoker"
)

// Program is the command that has a session.
type Program struct {
	Screen   *terminal.Screen
	Location *histories.Location
	JSON     bool                // events are printed as lines of JSON
	Approver *approvals.Approver // nil asks no questions
	Renderer func() terminal.Renderer
	// ShowTrace prints the spans of a turn, if they are wanted.
	ShowTrace func()
}

// titleTimeout bounds how long storing a title takes.
const titleTimeout = 20 * time.Second

// Session is a conversation, and the store that keeps it.
type Session struct {
	Conversation *converse.Conversation
	Model        converse.Model
	ModelName    string        // for the screen of chat
	Store        history.Store // nil keeps nothing
	Was          history.Info  // before this command; zero if the conversation is new
	Foreign      bool          // it belongs to a client of serve that this command does not act for

	program Program
	limits  converse.Limits

	overtaken bool // another process continued the conversation during the last turn
	gone      bool // another process deleted the conversation
}

// Open opens the selected conversation and loads its stored canisters. The caller must
// close the conversation.
func Open(ctx context.Context, p Program, assembly *config.Assembly, want histories.Choice) (*Session, error) {
	store, err := assembly.History(ctx)
	if err != nil {
		return nil, p.Location.OpenError(err)
	}
	return Options{Store: store, Model: assembly.Model, Want: want}.Open(ctx, p, assembly)
}

// Options say which conversation a session has.
type Options struct {
	Store   history.Store // nil keeps nothing
	Model   converse.Model
	Want    histories.Choice    // without a store, only its ID counts
	History []canister.Canister // what it begins with, without a store
}

// Open opens the conversation and loads it, which also checks the options.
func (o Options) Open(ctx context.Context, p Program, assembly *config.Assembly) (*Session, error) {
	s := &Session{program: p, limits: assembly.Options.Limits, Store: o.Store, Model: o.Model}
	options := *assembly.Options
	if s.Store == nil {
		options.ID, options.History = cmp.Or(o.Want.ID, histories.NewID()), o.History
	} else {
		var err error
		if s.Was, err = p.Location.Find(ctx, s.Store, o.Want); err != nil {
			return nil, err
		}
		options.Log, options.ID = s.Store, s.Was.ID
		if clientcalls.IsApproval(s.Was) {
			return nil, exit.Usagef("%s is the approval of a client's call and no conversation; see it with: %s", display.Word(s.Was.ID), p.Location.CommandLine("approve "+display.Word(s.Was.ID)))
		}
		if s.Foreign, err = ofAnother(ctx, p, assembly, s.Was); err != nil {
			return nil, err
		}
	}
	s.Conversation = converse.New(o.Model, assembly.Roster, &options)
	if err := s.Conversation.Load(ctx); err != nil {
		return nil, errors.Join(err, s.Conversation.Close(ctx))
	}
	if p.Approver != nil {
		var later error
		if s.Store != nil {
			later = config.ErrLater
		}
		p.Approver.Begin(options.ID, later)
	}
	return s, nil
}

// ofAnother reports whether a conversation belongs to a client of serve whose trusted
// values this command does not have. Approvals for that client would not be valid here.
func ofAnother(ctx context.Context, p Program, assembly *config.Assembly, info history.Info) (bool, error) {
	if !histories.Served(info) {
		return false, nil
	}
	scope, err := p.Location.Scope()
	if err != nil {
		return false, err
	}
	owner, err := assembly.OwnerOf(invoker.WithTrusted(ctx, assembly.Trusted...))
	if unknown := (*invoker.Failure)(nil); errors.As(err, &unknown) { // this command has none of the values that identify a client
		return true, nil
	}
	return owner != histories.ClientsOnly{Scope: scope}.Known(info.Owner), err
}

// Turn runs a turn that begins with the user's message said, or with the history if said is
// empty. Its error also reports a turn that a limit cut short.
func (s *Session) Turn(ctx context.Context, said string) error {
	if said == "" {
		return s.Play(ctx, s.Conversation.Continue(ctx))
	}
	return s.Play(ctx, s.Conversation.Send(ctx, canister.Text(said)))
}

// Play renders the events of a turn, and returns its error.
func (s *Session) Play(ctx context.Context, events iter.Seq2[converse.Event, error]) error {
	s.overtaken = false
	done, err := Play(events, s.renderer())
	s.program.ShowTrace()
	s.entitle(ctx)
	if err != nil {
		return s.Explain(err)
	}
	return Shortfall(done, s.limits)
}

// renderer returns the renderer of the program. JSON lines contain the ID of the
// conversation if it is stored.
func (s *Session) renderer() terminal.Renderer {
	if s.program.JSON && s.Store != nil {
		return &terminal.JSONLines{Screen: s.program.Screen, Conversation: s.Conversation.ID()}
	}
	return s.program.Renderer()
}

// Explain adds advice to the error of a conversation that another process continued or
// deleted.
func (s *Session) Explain(err error) error {
	var conflict *history.ConflictError
	if !errors.As(err, &conflict) {
		return err
	}
	s.overtaken = true
	if s.gone = conflict.Length == 0; s.gone {
		return fmt.Errorf("another program deleted this conversation, so this turn stopped: %w", err)
	}
	id := display.Word(s.Conversation.ID())
	return fmt.Errorf("another program continued this conversation, so this turn stopped. "+
		"What the other program added is kept: see it with %s, and continue with %s: %w", s.program.Location.CommandLine("history show "+id), s.program.Location.CommandLine("chat --conversation "+id), err)
}

// entitle stores a title if the conversation has none. A failure is only noted.
func (s *Session) entitle(ctx context.Context) {
	if s.Store == nil || s.Was.Title != "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), titleTimeout)
	defer cancel()
	now, err := s.Store.Info(ctx, s.Conversation.ID())
	if err == nil && now.Title == "" {
		if now = (histories.Titled{Store: s.Store}).Entitled(ctx, now); now.Title != "" {
			err = s.Store.Describe(ctx, s.Conversation.ID(), history.Change{Title: &now.Title})
		}
	}
	if err != nil && !errors.Is(err, history.ErrNotFound) { // not found: nothing was said
		s.program.Screen.Note("the conversation has no title: %s", display.Text(err.Error()))
	}
	s.Was.Title = now.Title
}

// CanContinue returns an error if the conversation is Foreign: its calls would be made with the
// trusted values of this command, and the model would answer this user.
func (s *Session) CanContinue() error {
	if !s.Foreign {
		return nil
	}
	return exit.Usagef("the conversation %s belongs to a client of consort serve, which continues it while it runs: "+
		"to continue it here, give the trusted values of that client, as in --trust user=ada", display.Word(s.Conversation.ID()))
}

// AdviseResume prints how to continue an unfinished turn.
func (s *Session) AdviseResume() {
	if s.Store == nil || s.overtaken || !Waits(s.Conversation) {
		return
	}
	id := display.Word(s.Conversation.ID())
	wait, waits := s.Conversation.Next().(converse.Await)
	if s.Foreign {
		advice := "The turn is not finished. The conversation belongs to a client of consort serve, which continues it"
		if waits {
			advice += "; answer its question with: " + s.program.Location.CommandLine("approve "+id)
		}
		s.program.Screen.Note("%s", advice)
		return
	}
	if waits {
		s.program.Screen.Note("The turn waits for an answer until %s. See the question and answer it with: %s", wait.Deadline.Local().Format(time.DateTime), s.program.Location.CommandLine("approve "+id))
		return
	}
	s.program.Screen.Hint("The turn is not finished. Continue it with: " + s.program.Location.CommandLine("resume "+id))
}

// WarnLeft prints which pending work a new message abandons.
func (s *Session) WarnLeft() {
	switch s.Conversation.Next().(type) {
	case converse.Await:
		s.program.Screen.Note("The conversation was waiting for an answer and continues without it: the call that waited is not made.")
	case converse.Invoke:
		s.program.Screen.Note("Calls of tools in this conversation have no result; the model is told that they were interrupted.")
	}
}

// SayWhich prints the ID of a new conversation and how to continue it.
func (s *Session) SayWhich() {
	if !s.program.JSON && s.Was.Length == 0 {
		s.hintAt("run")
	}
}

// AdviseContinue prints how to come back to the conversation.
func (s *Session) AdviseContinue() { s.hintAt("chat") }

// hintAt prints the ID of a stored conversation, and the command that continues it.
func (s *Session) hintAt(command string) {
	if s.Store != nil && s.Conversation.Length() > 0 && !s.gone {
		id := display.Word(s.Conversation.ID())
		s.program.Screen.Hint("This was conversation " + id + ". Continue it with: " + s.program.Location.CommandLine(command+" --conversation "+id))
	}
}

// Waits reports whether the model has something to answer.
func Waits(conversation *converse.Conversation) bool {
	_, done := conversation.Next().(converse.Done)
	return !done
}
