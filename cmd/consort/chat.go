// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
	"github.com/spf13/cobra"
)

// chat is a conversation with a person.
type chat struct {
	*program
	console    *console
	interrupts chan os.Signal
	assembly   *config.Assembly
	talk       *converse.Conversation

	// interrupted counts the Ctrl-C since the person last said something; the
	// second one leaves.
	interrupted atomic.Int32
	// cancel cancels the turn under way; nil while there is none.
	cancel atomic.Pointer[context.CancelCauseFunc]
}

func (p *program) chatCommand() *cobra.Command {
	var o opening
	return o.flags(p.withTrace(p.withTrust(&cobra.Command{
		Use:   "chat",
		Short: "Talk with the model",
		Long: "Chat talks with the model of the configuration, line by line. Ctrl-C cancels what\n" +
			"is going on, and a second one leaves; so do Ctrl-D and /quit. /help tells more.",
		Args: cobra.NoArgs,
		// Ctrl-C has a meaning of its own here.
		RunE: doesUntil(func(ctx context.Context, _ []string) error { return p.chat(ctx, &o) }, syscall.SIGTERM, syscall.SIGHUP),
	})))
}

func (p *program) chat(ctx context.Context, o *opening) (err error) {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	c := &chat{program: p, interrupts: make(chan os.Signal, 4)}
	if c.assembly, err = p.withModel(cfg, interaction{approve: c.approve, elicit: c.elicit}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(c.assembly)) }()
	signal.Notify(c.interrupts, os.Interrupt)
	defer signal.Stop(c.interrupts)
	c.console = newConsole(p, c.interrupts)
	c.assembly.Options.Ask = c.elicit
	c.talk = converse.New(c.assembly.Model, c.assembly.Roster, c.assembly.Options)
	defer func() { err = errors.Join(err, c.talk.Close(context.Background())) }()
	if c.console.terminal != nil {
		p.screen.note("%s", p.screen.notes.faint("Talking with "+printable(cfg.Model.Name.Reveal())+". /help tells what else there is."))
	}
	err = c.interruptible(ctx, func(ctx context.Context) error { return p.open(ctx, o, c.assembly, c.talk) })
	if err != nil {
		return err
	}
	return c.loop(ctx)
}

// loop talks until the person leaves. A turn that fails does not end it, but
// is the error in the end when nobody watches.
func (c *chat) loop(ctx context.Context) error {
	var failed error
	if waits(c.talk) { // for what it was begun with
		leave, err := c.reply(ctx, "")
		if c.console.terminal == nil {
			failed = err
		}
		if leave || ctx.Err() != nil {
			return failed
		}
	}
	for {
		said, err := c.console.message(ctx, "\n"+c.screen.notes.bold("> "))
		switch {
		case errors.Is(err, errInterrupted):
			if c.interrupted.Add(1) > 1 {
				return nil
			}
			c.screen.note("%s", c.screen.notes.faint("Ctrl-C again leaves."))
			continue
		case errors.Is(err, io.EOF):
			return failed
		case err != nil:
			return err
		}
		c.interrupted.Store(0)
		leave, err := c.hear(ctx, strings.TrimSpace(said))
		if err != nil && c.console.terminal == nil {
			failed = err
		}
		if leave || ctx.Err() != nil {
			return failed
		}
	}
}

// hear does what the person said, and reports whether they leave.
func (c *chat) hear(ctx context.Context, said string) (leave bool, err error) {
	switch {
	case said == "":
		return false, nil
	case strings.HasPrefix(said, "/"):
		return c.command(ctx, said)
	}
	return c.reply(ctx, said)
}

// reply holds a turn, and says how it failed. Leave reports that the person
// leaves.
func (c *chat) reply(ctx context.Context, said string) (leave bool, err error) {
	err = c.answer(ctx, said)
	switch {
	case c.interrupted.Load() > 1:
		return true, nil
	case c.interrupted.Load() == 1:
		c.screen.note("%s", c.screen.notes.faint("Cancelled. Ctrl-C again leaves."))
		return false, nil
	case err != nil && ctx.Err() == nil:
		c.screen.note("%s%s", c.screen.notes.bad("consort: "), printable(err.Error()))
	}
	return false, err
}

// answer holds one turn, which Ctrl-C cancels.
func (c *chat) answer(ctx context.Context, said string) error {
	return c.interruptible(ctx, func(ctx context.Context) error {
		done, err := turn(ctx, c.talk, said, c.shower())
		c.showTrace()
		if err != nil {
			return err
		}
		return shortfall(done)
	})
}

// interruptible does something that Ctrl-C cancels.
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
			case <-c.interrupts:
				c.interrupt()
			case <-over:
				return
			}
		}
	}()
	defer func() { close(over); <-watched }()
	return do(ctx)
}

// interrupt cancels the turn under way.
func (c *chat) interrupt() {
	c.interrupted.Add(1)
	if cancel := c.cancel.Load(); cancel != nil {
		(*cancel)(errInterrupted)
	}
}

// heard passes the error of a question on; Ctrl-C as the answer cancels the
// turn.
func (c *chat) heard(err error) error {
	if errors.Is(err, errInterrupted) {
		c.interrupt()
	}
	return fmt.Errorf("the person was not heard: %w", err)
}
