// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse/agenttool"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/browser"
	"github.com/consort-go/consort/internal/chatui"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/reports"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/invoker"
)

// startUser makes c.user the person at the terminal: with the screen of package chatui if it can
// run here, and otherwise line by line. The caller must call leave at the end.
func (c *chat) startUser(ctx context.Context, cfg *config.Config) (leave func() error) {
	p := c.program
	if !chatui.Supported(p.screen, p.stdin) {
		c.user = terminal.NewUser(p.screen, p.stdin, c.interrupts.Received, c.interrupt)
		return func() error { return nil }
	}
	options := chatui.Options{
		Screen: p.screen, Stdin: p.stdin, Interrupts: c.interrupts.Received, Redact: c.assembly.Redact, RedactPart: c.assembly.RedactPart,
		Interrupt: c.interrupts.Add, Cleared: func() { c.interrupted.Store(0) }, Lend: c.interrupts.Lend,
	}
	options.Complete, options.Open = c.complete, browser.Open
	c.session.ModelName = cfg.Model.Name.Reveal()
	status := &chatStatus{chat: c}
	c.shown.Store(c.session)
	options.Status = status.now
	if c.session.Store != nil { // otherwise nothing is to be kept
		if path, err := histories.StateFile("chat_history"); err == nil { // without a place for it, it is not kept
			options.History = path
		}
	}
	ctx, cancel := context.WithCancel(forProgram(ctx, c.assembly))
	ui := chatui.Start(options)
	c.user = ui
	p.view = &chatView{ui, func() { status.spent(ctx) }}
	var connecting sync.WaitGroup
	connecting.Go(func() {
		status.spent(ctx)
		catalog, err := c.assembly.Roster.Catalog(ctx)
		if err != nil {
			return // the first turn reports it
		}
		p.screen.Hint(offered(len(catalog.Tools()), len(c.assembly.Roster.Ensembles())-len(catalog.Away())))
	})
	return func() error {
		cancel()
		connecting.Wait()
		p.view = nil
		return ui.Close()
	}
}

// offered says how many tools there are, and of how many servers.
func offered(tools, servers int) string {
	text := fmt.Sprintf("%d tools of %d servers.", tools, servers)
	switch {
	case tools == 0 && servers == 0:
		return "No tools."
	case servers == 1:
		text = fmt.Sprintf("%d tools of 1 server.", tools)
	}
	if tools == 1 {
		text = strings.Replace(text, "tools", "tool", 1)
	}
	return text
}

// chatView renders turns on the screen of a chat.
type chatView struct {
	*chatui.UI
	after func() // called after each turn
}

// Done implements [terminal.Renderer].
func (v *chatView) Done() {
	v.UI.Done()
	v.after()
}

// chatStatus is what a chat shows all the time.
type chatStatus struct {
	chat *chat
	left atomic.Pointer[string] // of the budget
}

// now returns the current status.
func (s *chatStatus) now() chatui.Status {
	status := chatui.Status{Model: s.chat.shown.Load().ModelName}
	if policy := s.chat.assembly.Options.Budget; policy != nil {
		status.Currency = policy.Currency
	}
	if left := s.left.Load(); left != nil {
		status.Budget = *left
	}
	for _, e := range s.chat.assembly.Roster.Ensembles() {
		switch now := e.Snapshot(); now.State {
		case ensemble.Queued, ensemble.Connecting:
			status.Starting = append(status.Starting, now.Name)
		case ensemble.Lost, ensemble.Parked, ensemble.NeedsLogin:
			status.Away = append(status.Away, now.Name)
		case ensemble.Ready, ensemble.Idle, ensemble.Closed:
		}
	}
	return status
}

// spent looks up what is left of the budget.
func (s *chatStatus) spent(ctx context.Context) {
	policy := s.chat.assembly.Options.Budget
	if policy == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	identity, err := agenttool.OwnerOf(invoker.WithTrusted(ctx, s.chat.assembly.Trusted...), s.chat.assembly.Options.Identity)
	if err != nil {
		return // the next turn reports it
	}
	standings, err := policy.Standings(ctx, budget.Who{Conversation: s.chat.shown.Load().Conversation.ID(), Identity: identity}, time.Now())
	if err != nil {
		return
	}
	left := reports.BudgetLeft(standings, policy.Currency)
	s.left.Store(&left)
}
