// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync/atomic"
	"syscall"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/approvals"
	"github.com/consort-go/consort/internal/command/session"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/invoker"
	"github.com/spf13/cobra"
)

// person is the user of chat. [terminal.User] implements it.
type person interface {
	// Interactive reports whether the user sees prompts, and not only results.
	Interactive() bool
	// Message returns the next message. Its error is [terminal.ErrInterrupted] or
	// io.EOF if the user gives none.
	Message(ctx context.Context, prompt string) (string, error)
	approvals.Asker
	Elicit(ctx context.Context, ask *invoker.ElicitRequest) (*invoker.ElicitResult, error)
}

// chat is an interactive conversation.
type chat struct {
	program    *program
	user       person
	interrupts *terminal.Interrupts
	assembly   *config.Assembly
	session    *session.Session
	stores     []history.Store                 // opened by commands
	shown      atomic.Pointer[session.Session] // for the status and completions, which come at any time
	opened     bool                            // flags have added messages to the conversation

	// interrupted counts the Ctrl-C presses since the user's last message, or since one that
	// cleared the input, which is the first; the second one leaves.
	interrupted atomic.Int32
	// cancel cancels the current turn; nil between turns.
	cancel atomic.Pointer[context.CancelCauseFunc]
}

func chatCommand(p *program) *cobra.Command {
	var o opening
	want := histories.Choice{Must: true}
	cmd := o.flags(p.withApprove(p.withHistory(p.withPlain(p.withTrace(p.withTrust(&cobra.Command{
		Use:   "chat",
		Short: "Talk with the model",
		Long: "Chat talks with the model of the configuration. On a terminal it has a screen with an\n" +
			"input of several lines; with --plain, and without a terminal, it reads line by line.\n" +
			"Ctrl-C cancels the current turn, and a second Ctrl-C leaves, as Ctrl-D and /quit do.\n" +
			"/help lists more. A question precedes each call that may change something, unless\n" +
			"--approve or the configuration allows it.",
		Args: cobra.NoArgs,
		// Ctrl-C cancels turns here, so the command handles it itself.
		RunE: runEUntil(func(ctx context.Context, _ []string) error { return runChat(ctx, p, &o, want) }, syscall.SIGTERM, syscall.SIGHUP),
	}))))))
	cmd.Flags().BoolVar(&want.Last, "continue", false, "continue the conversation that was changed last")
	cmd.Flags().StringVar(&want.ID, "conversation", "", "continue the conversation `ID`")
	return cmd
}

func runChat(ctx context.Context, p *program, o *opening, want histories.Choice) (err error) {
	if want.Last && want.ID != "" {
		return exit.Usagef("--continue and --conversation exclude each other: give one of them")
	}
	p.needs.view = true
	cfg, err := p.load()
	if err != nil {
		return err
	}
	c := &chat{program: p}
	how := histories.IfPossible
	if want.Last || want.ID != "" {
		how = histories.Existing
	}
	with, err := p.approving(cfg, c, c.elicit)
	if err != nil {
		return err
	}
	if c.assembly, err = p.withStore(ctx, cfg, how, with); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(c.assembly)) }()
	c.interrupts = terminal.NewInterrupts()
	defer c.interrupts.Stop()
	c.assembly.Options.Ask = c.elicit
	if c.session, err = session.Open(ctx, p.session(), c.assembly, want); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unclosed(c.closeSession())) }()
	defer func() { c.session.AdviseContinue() }() // of the conversation that is open then
	leave := c.startUser(ctx, cfg)
	defer func() { err = errors.Join(err, leave()) }()
	if c.user.Interactive() {
		p.screen.Hint("Talking with " + display.Text(cfg.Model.Name.Reveal()) + ". /help lists the commands.")
	}
	p.location.Announce(p.screen, cfg)
	c.greet(ctx)
	c.opened = (len(o.documents) > 0 || o.prompt != "") && !session.Waits(c.session.Conversation)
	err = c.interruptible(ctx, func(ctx context.Context) error { return addOpening(ctx, p, o, c.assembly, c.session.Conversation) })
	if err != nil {
		return c.session.Explain(err)
	}
	return c.loop(ctx)
}

// AskApproval implements [approvals.Asker]. Like elicit, it is called while a turn runs,
// when there is a user.
func (c *chat) AskApproval(ctx context.Context, ask approvals.Question) (approvals.Answer, error) {
	return c.user.AskApproval(ctx, ask)
}

func (c *chat) elicit(ctx context.Context, ask *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
	return c.user.Elicit(ctx, ask)
}

// greet prints which conversation is being continued.
func (c *chat) greet(ctx context.Context) {
	if c.session.Was.Length == 0 {
		return
	}
	was := histories.Titled{Store: c.session.Store}.Entitled(ctx, c.session.Was)
	c.program.screen.Hint(fmt.Sprintf("Continuing conversation %s, %q. /history shows it.", display.Word(was.ID), display.Line(was.Title)))
	if c.session.Foreign {
		c.session.AdviseResume()
		return
	}
	if invoke, calls := c.session.Conversation.Next().(converse.Invoke); calls {
		c.program.screen.Note("Calls of tools without a result: %d. With your next message the model learns that they were interrupted; to continue them instead, type /resume.",
			len(invoke.Pending))
	}
}

// carriesOn reports whether there is work to do before the user's first message: the
// conversation was opened with messages, or its last turn was cut off. Calls that may
// have been made are not repeated without asking. A turn of a client of serve is not
// continued, only messages of this command are answered.
func (c *chat) carriesOn() bool {
	switch c.session.Conversation.Next().(type) {
	case converse.Done:
		return false
	case converse.Invoke:
		return c.session.Was.Length == 0
	case converse.Await:
		return !c.session.Foreign
	case converse.Exchange, converse.Compact:
	}
	return !c.session.Foreign || c.opened
}

// loop talks until the user leaves, or standard output fails. A failed turn does not end the
// loop, but without a terminal the last failure is returned at the end.
func (c *chat) loop(ctx context.Context) error {
	var failed error
	if c.carriesOn() {
		if _, waits := c.session.Conversation.Next().(converse.Await); c.session.Was.Length > 0 && !waits {
			c.program.screen.Hint("Its last turn ended without an answer: the model is asked again.")
		}
		leave, err := c.reply(ctx, "")
		if !c.user.Interactive() {
			failed = err
		}
		if leave || ctx.Err() != nil {
			return cmp.Or(context.Cause(ctx), failed)
		}
	}
	for {
		if err := c.program.screen.Err(); err != nil { // the next answer would be lost
			return err
		}
		said, err := c.user.Message(ctx, "\n"+c.program.screen.Notes.Bold("> "))
		switch {
		case errors.Is(err, terminal.ErrInterrupted):
			if c.interrupted.Add(1) > 1 {
				return nil
			}
			c.program.screen.Hint("Ctrl-C again leaves.")
			continue
		case errors.Is(err, io.EOF):
			return failed
		case err != nil:
			return err
		}
		c.interrupted.Store(0)
		leave, err := c.handleInput(ctx, said)
		if err != nil && !c.user.Interactive() {
			failed = err
		}
		if leave || ctx.Err() != nil {
			return cmp.Or(context.Cause(ctx), failed)
		}
	}
}

// reply runs a turn that begins with the user's message said, or with the history if said is
// empty. Leave reports whether the user leaves.
func (c *chat) reply(ctx context.Context, said string) (leave bool, err error) {
	if ok, leave, err := c.addDocuments(ctx, said, ""); !ok {
		return leave, err
	}
	return c.play(ctx, func(ctx context.Context) iter.Seq2[converse.Event, error] {
		if said == "" {
			return c.session.Conversation.Continue(ctx)
		}
		c.session.WarnLeft()
		return c.session.Conversation.Send(ctx, canister.Text(said))
	})
}

// play runs a turn, which Ctrl-C cancels, and prints its error.
func (c *chat) play(ctx context.Context, events func(context.Context) iter.Seq2[converse.Event, error]) (leave bool, err error) {
	return c.printed(ctx, c.interruptible(ctx, func(ctx context.Context) error { return c.session.Play(ctx, events(ctx)) }))
}

// printed prints the error of a piece of work that Ctrl-C may have cancelled. Leave reports
// whether the user leaves.
func (c *chat) printed(ctx context.Context, err error) (leave bool, _ error) {
	switch {
	case c.interrupted.Load() > 1:
		return true, nil
	case c.interrupted.Load() == 1:
		c.program.screen.Hint("Cancelled. Ctrl-C again leaves.")
		return false, nil
	case exit.StatusOf(err) == exit.Waits:
		c.session.AdviseResume()
	case err != nil && errors.Is(err, c.program.screen.Err()): // loop returns it
	case err != nil && ctx.Err() == nil:
		c.program.screen.Note("%s%s", c.program.screen.Notes.Bad("consort: "), display.Text(err.Error()))
		err = exit.With(exit.StatusOf(err), nil) // the error is already printed
	}
	return false, err
}

// interruptible runs do; Ctrl-C cancels its context.
func (c *chat) interruptible(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.cancel.Store(&cancel)
	defer c.cancel.Store(nil)
	watched := make(chan struct{})
	over := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-c.interrupts.Received:
				c.interrupt()
			case <-over:
				return
			}
		}
	}()
	defer func() { close(over); <-watched }()
	return do(ctx)
}

// interrupt cancels the current turn.
func (c *chat) interrupt() {
	c.interrupted.Add(1)
	if cancel := c.cancel.Load(); cancel != nil {
		(*cancel)(terminal.ErrInterrupted)
	}
}
