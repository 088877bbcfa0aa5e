// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
)

// Answer is the answer to a wait, as given by a flag.
type Answer struct {
	AnswerFlag
	Text string // the value of the flag
}

// AnswerFlag is a flag that answers waits of one kind.
type AnswerFlag struct {
	Name    string
	Waits   canister.WaitFor
	Verdict canister.Verdict
	Usage   string // names the value in backticks, if the flag takes one
}

// AnswerFlags are the flags that answer waits. The first one is the default.
var AnswerFlags = []AnswerFlag{
	{"allow", canister.WaitApproval, canister.VerdictAllow, "an approval: make the call; the default if WAIT is given"},
	{"deny", canister.WaitApproval, canister.VerdictDeny, "an approval: refuse the call for this `REASON`, which the model reads"},
	{"arguments", canister.WaitApproval, canister.VerdictChange, "an approval: make the call with the object `JSON` as its arguments"},
	{"again", canister.WaitOutcome, canister.VerdictAllow, "a call that may have been made: make it, possibly for the second time"},
	{"happened", canister.WaitOutcome, canister.VerdictDone, "a call that may have been made: it was made, with the result `TEXT`"},
	{"unknown", canister.WaitOutcome, canister.VerdictUnknown, "a call that may have been made: the outcome stays unknown"},
	{"answer", canister.WaitElicitation, canister.VerdictAccept, "a question: the object `JSON` is the answer"},
	{"decline", canister.WaitElicitation, canister.VerdictDecline, "a question: decline to answer"},
	{"dismiss", canister.WaitElicitation, canister.VerdictCancel, "a question: dismiss it without an answer"},
	{"skip", canister.WaitTimer, canister.VerdictCancel, "a pause: end it now"},
}

// Answering is one answer, or none, to a wait of a conversation.
type Answering struct {
	ID    string  // of the conversation
	Wait  string  // the beginning of the ID of the wait; empty means the only one
	With  *Answer // nil only lists the waits
	By    string  // who answers
	Quiet bool    // the conversation is continued at once: no next step is named, and JSON has no document
}

// Answer lists the open waits of a conversation, or answers one.
func (m *Manager) Answer(ctx context.Context, a Answering) error {
	id := a.ID
	info, err := m.at.Known(ctx, m.store, id)
	if err != nil {
		return err
	}
	canisters, err := history.From(ctx, m.store, id, 0)
	if err != nil {
		return err
	}
	now := time.Now()
	waits := waits.Open(id, canisters, now)
	if a.With == nil {
		return m.showWaits(info, waits, canisters)
	}
	wait, err := m.pick(id, waits, canisters, a.Wait, now)
	if err != nil {
		return err
	}
	if err := m.maySettle(a, info); err != nil {
		return err
	}
	return m.record(ctx, a, info, canisters, wait)
}

// maySettle returns why the approval of a client's call may not be answered like this: it
// is allowed by its WAIT alone, which only the list shows, so that the person has seen it.
func (m *Manager) maySettle(a Answering, info history.Info) error {
	switch {
	case !clientcalls.IsApproval(info):
		return nil
	case a.Quiet:
		return exit.Usagef("--resume: %s is the approval of a call, which its client makes", display.Word(info.ID))
	case a.Wait == "" && a.With.Verdict != canister.VerdictDeny:
		return exit.Usagef("name the WAIT that you allow; to see it with its call: %s", m.at.CommandLine("approve "+display.Word(info.ID)))
	}
	return nil
}

// pick returns the wait that the command line selects.
func (m *Manager) pick(id string, waits []canister.Wait, canisters []canister.Canister, which string, now time.Time) (canister.Wait, error) {
	var found []canister.Wait
	for _, wait := range waits {
		if which == "" || strings.HasPrefix(wait.ID, which) {
			found = append(found, wait)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return canister.Wait{}, exit.Usagef("%d waits match; name one of them with its WAIT, as listed by: %s", len(found), m.at.CommandLine("approve "+display.Word(id)))
	case which != "":
		return canister.Wait{}, exit.Usagef("%s; list the open waits with: %s", whyNot(which, canisters, now), m.at.CommandLine("approve "+display.Word(id)))
	}
	for _, c := range slices.Backward(canisters) {
		if wait, is := c.(canister.Wait); is {
			return canister.Wait{}, exit.Usagef("the conversation %s waits for nothing: %s", display.Word(id), whyNot(wait.ID, canisters, now))
		}
	}
	return canister.Wait{}, exit.Usagef("the conversation %s waits for nothing", display.Word(id))
}

// whyNot explains why a wait is no longer open.
func whyNot(which string, canisters []canister.Canister, now time.Time) string {
	reason := "the conversation has no wait with this ID: " + display.Word(which)
	wait := ""
	for _, c := range canisters {
		switch c := c.(type) {
		case canister.Wait:
			if !strings.HasPrefix(c.ID, which) {
				continue
			}
			wait, reason = c.ID, "the conversation continued without an answer to "+display.Word(c.ID)
			if !now.Before(c.Deadline) {
				reason = fmt.Sprintf("the time to answer %s ended at %s", display.Word(c.ID), c.Deadline.Local().Format(time.DateTime))
			}
		case canister.Answer:
			if c.Wait == wait {
				reason = fmt.Sprintf("%s already answered %s: %s", display.Line(c.By), display.Word(c.Wait), display.Line(string(c.Verdict)))
			}
		}
	}
	return reason
}

// check returns why an answer does not answer a wait of a conversation with these canisters.
func check(ctx context.Context, id string, canisters []canister.Canister, given canister.Answer, now time.Time) error {
	ctx, copied := context.WithoutCancel(ctx), history.NewMemory()
	if err := copied.Append(ctx, id, 0, canisters...); err != nil {
		return err
	}
	return waits.Answer(ctx, copied, id, given, now)
}

// record records the answer to wait in the store. The conversation has the canisters.
func (m *Manager) record(ctx context.Context, a Answering, info history.Info, canisters []canister.Canister, wait canister.Wait) error {
	id := info.ID
	if a.With.Waits != wait.For {
		return exit.Usagef("--%s does not answer a wait for %s, such as %s; use %s", a.With.Name, wait.For, display.Word(wait.ID), flagsFor(wait.For))
	}
	given := canister.Answer{Wait: wait.ID, Verdict: a.With.Verdict, By: a.By}
	switch a.With.Name {
	case "deny":
		given.Reason = a.With.Text
	case "arguments", "answer":
		given.Arguments = json.RawMessage(a.With.Text)
	case "happened":
		given.Content = canister.Texts(a.With.Text)
	}
	now := time.Now()
	err := check(ctx, id, canisters, given, now)
	isWrong := err != nil
	if !isWrong {
		err = waits.Answer(ctx, m.store, id, given, now)
	}
	switch {
	case errors.Is(err, waits.ErrNotOpen):
		return exit.Usagef("%s was answered, or its time ended, just now: %w", display.Word(wait.ID), err)
	case isWrong:
		return exit.Usagef("%w", err)
	case err != nil:
		return err
	case a.Quiet && m.to.JSON: // the events that follow have it
		return nil
	case m.to.JSON:
		return m.to.Screen.PrintDocument(Answered{Conversation: id, Wait: wait.ID, Verdict: string(given.Verdict), By: a.By})
	}
	text := "Answered as " + display.Line(a.By) + "."
	if !a.Quiet {
		text += " " + m.nextStep(info)
	}
	m.to.Screen.Hint(text)
	return nil
}

// nextStep tells the user how an unfinished conversation continues.
func (m *Manager) nextStep(info history.Info) string {
	if clientcalls.IsApproval(info) {
		return "The client has to make the same call again."
	}
	if Served(info) {
		return "The conversation belongs to a client of consort serve, which continues it while it runs."
	}
	return "Continue it with: " + m.at.CommandLine("resume "+display.Word(info.ID))
}

// flagsFor lists the flags that answer a kind of wait.
func flagsFor(what canister.WaitFor) string {
	var names []string
	for _, f := range AnswerFlags {
		if f.Waits == what {
			names = append(names, "--"+f.Name)
		}
	}
	return strings.Join(names, ", ")
}
