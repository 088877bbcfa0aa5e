// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/shown"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// answering is one run of consort approve.
type answering struct {
	*program
	as     string
	resume bool
	with   *answer // nil only lists the waits
}

// answer is the answer to a wait, as given by a flag.
type answer struct {
	verdictFlag
	text string
}

// verdictFlag is a flag that answers waits of one kind.
type verdictFlag struct {
	name    string
	waits   canister.WaitFor
	verdict canister.Verdict
	usage   string // names the value in backticks, if the flag takes one
}

var verdictFlags = []verdictFlag{
	{"allow", canister.WaitApproval, canister.VerdictAllow, "an approval: make the call; what WAIT alone means"},
	{"deny", canister.WaitApproval, canister.VerdictDeny, "an approval: do not, for this `REASON`, which the model is told"},
	{"arguments", canister.WaitApproval, canister.VerdictChange, "an approval: make it with the object `JSON` as its arguments"},
	{"again", canister.WaitOutcome, canister.VerdictAllow, "a call that may have been made: make it, maybe for a second time"},
	{"happened", canister.WaitOutcome, canister.VerdictDone, "a call that may have been made: it was, and `TEXT` is what came of it"},
	{"unknown", canister.WaitOutcome, canister.VerdictUnknown, "a call that may have been made: nobody will ever know"},
	{"answer", canister.WaitElicitation, canister.VerdictAccept, "a question: the object `JSON` is the answer"},
	{"decline", canister.WaitElicitation, canister.VerdictDecline, "a question: the person does not want to answer"},
	{"dismiss", canister.WaitElicitation, canister.VerdictCancel, "a question: the person gives no answer"},
	{"skip", canister.WaitTimer, canister.VerdictCancel, "a pause: it need not be waited for"},
}

func (p *program) approveCommand() *cobra.Command {
	a := &answering{program: p}
	cmd := p.withHistory(p.withTrace(p.withTrust(p.withJSON(&cobra.Command{
		Use:   "approve ID [WAIT]",
		Short: "Answer what a conversation waits for",
		Long: "Approve lists what the conversation ID waits for, and answers it: with WAIT, which\n" +
			"may be the beginning of it, the one that has this identity, and without it the only\n" +
			"one there is, as a flag says. The conversation goes on with consort resume ID.",
		Example: "  consort approve 20261121-k3f9ab2c\n  consort approve 20261121-k3f9ab2c 4QKB --resume\n  consort approve 20261121-k3f9ab2c --deny \"not on a Friday\"",
		Args:    cobra.RangeArgs(1, 2),
	}, "print one JSON document; with --resume one line of JSON for each event"))))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return does(func(ctx context.Context, args []string) error { return a.run(ctx, cmd.Flags(), args) })(cmd, args)
	}
	flags := cmd.Flags()
	for _, f := range verdictFlags {
		if strings.Contains(f.usage, "`") {
			flags.String(f.name, "", f.usage)
		} else {
			flags.Bool(f.name, false, f.usage)
		}
	}
	flags.StringVar(&a.as, "as", "", "`WHO` answers (default: the user of this machine)")
	flags.BoolVar(&a.resume, "resume", false, "carry on with the conversation at once")
	return cmd
}

// verdict returns the answer that the flags give, or nil if they give none.
func verdict(flags *pflag.FlagSet) (said *answer, err error) {
	for _, f := range verdictFlags {
		flag := flags.Lookup(f.name)
		if flag == nil || !flag.Changed {
			continue
		}
		if said != nil {
			return nil, exit.Usagef("--%s and --%s: there is one of the two", said.name, f.name)
		}
		text := flag.Value.String()
		if flag.Value.Type() == "bool" {
			if text != "true" {
				return nil, exit.Usagef("--%s=%s: leave the flag out", f.name, text)
			}
			text = ""
		}
		if object := map[string]any{}; (f.name == "arguments" || f.name == "answer") && json.Unmarshal([]byte(text), &object) != nil {
			return nil, exit.Usagef("--%s: expected one JSON object", f.name)
		}
		said = &answer{f, text}
	}
	return said, nil
}

func (a *answering) run(ctx context.Context, flags *pflag.FlagSet, args []string) error {
	var err error
	if a.with, err = verdict(flags); err != nil {
		return err
	}
	if len(args) == 2 && a.with == nil {
		a.with = &answer{verdictFlag: verdictFlags[0]}
	}
	if a.resume && a.with == nil {
		return exit.Usagef("--resume is for an answer; to carry on without one: %s", a.again("resume "+word(args[0])))
	}
	s, err := a.openShelf(ctx, false)
	if err != nil {
		return err
	}
	err = errors.Join(a.onShelf(ctx, s, args), s.store.Close())
	if err != nil || !a.resume {
		return err
	}
	return a.program.resume(ctx, args[:1])
}

// onShelf lists the open waits of the conversation, or answers one.
func (a *answering) onShelf(ctx context.Context, s *shelf, args []string) error {
	id := args[0]
	info, err := known(ctx, s.store, id)
	if err != nil {
		return err
	}
	canisters, err := history.From(ctx, s.store, id, 0)
	if err != nil {
		return err
	}
	now := time.Now()
	waits := converse.WaitingIn(id, canisters, now)
	if a.with == nil {
		return s.showWaits(info, waits, canisters)
	}
	wait, err := pick(id, waits, canisters, args[1:], now)
	if err != nil {
		return err
	}
	return a.answer(ctx, s, info, wait)
}

// pick returns the wait that the command line selects.
func pick(id string, waits []canister.Wait, canisters []canister.Canister, which []string, now time.Time) (canister.Wait, error) {
	var found []canister.Wait
	for _, wait := range waits {
		if len(which) == 0 || strings.HasPrefix(wait.ID, which[0]) {
			found = append(found, wait)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return canister.Wait{}, exit.Usagef("%d things are waited for that this could be; name one of them with its WAIT: consort approve %s", len(found), word(id))
	case len(which) > 0:
		return canister.Wait{}, exit.Usagef("%s; see what is waited for with consort approve %s", whyNot(which[0], canisters, now), word(id))
	}
	for _, c := range slices.Backward(canisters) {
		if wait, is := c.(canister.Wait); is {
			return canister.Wait{}, exit.Usagef("nothing is waited for in the conversation %s: %s", word(id), whyNot(wait.ID, canisters, now))
		}
	}
	return canister.Wait{}, exit.Usagef("nothing is waited for in the conversation %s", word(id))
}

// whyNot explains why a wait is no longer open.
func whyNot(which string, canisters []canister.Canister, now time.Time) string {
	reason := "nothing of that identity was ever waited for: " + word(which)
	wait := ""
	for _, c := range canisters {
		switch c := c.(type) {
		case canister.Wait:
			if !strings.HasPrefix(c.ID, which) {
				continue
			}
			wait, reason = c.ID, "the conversation has gone on without an answer to "+word(c.ID)
			if !now.Before(c.Deadline) {
				reason = fmt.Sprintf("the time to answer %s ended at %s", word(c.ID), c.Deadline.Local().Format(time.DateTime))
			}
		case canister.Answer:
			if c.Wait == wait {
				reason = fmt.Sprintf("%s has answered %s already: %s", shown.Line(c.By), word(c.Wait), shown.Line(string(c.Verdict)))
			}
		}
	}
	return reason
}

// answer records the answer to wait in the store.
func (a *answering) answer(ctx context.Context, s *shelf, info history.Info, wait canister.Wait) error {
	id := info.ID
	if a.with.waits != wait.For {
		return exit.Usagef("--%s does not answer a wait for %s, such as %s; what does is %s", a.with.name, wait.For, word(wait.ID), flagsFor(wait.For))
	}
	by, err := a.who()
	if err != nil {
		return err
	}
	given := canister.Answer{Wait: wait.ID, Verdict: a.with.verdict, By: by}
	switch a.with.name {
	case "deny":
		given.Reason = a.with.text
	case "arguments", "answer":
		given.Arguments = json.RawMessage(a.with.text)
	case "happened":
		given.Content = canister.Texts(a.with.text)
	}
	err = converse.Answer(ctx, s.store, id, given, time.Now())
	switch {
	case errors.Is(err, converse.ErrNotWaiting):
		return exit.Usagef("%s was answered, or its time ended, just now: %w", word(wait.ID), err)
	case err != nil:
		return exit.Usagef("%w", err)
	case a.resume:
		return nil
	case a.json:
		return s.screen.PrintDocument(answeredJSON{Conversation: id, Wait: wait.ID, Verdict: string(given.Verdict), By: by})
	}
	s.screen.Note("%s", s.screen.Notes.Faint("Answered as "+shown.Line(by)+". "+s.nextStep(info)))
	return nil
}

// nextStep tells the user how an unfinished conversation continues.
func (s *shelf) nextStep(info history.Info) string {
	if served(info) {
		return "The conversation belongs to a client of consort serve, which carries it on while it runs."
	}
	return "Carry on with it: " + s.again("resume "+word(info.ID))
}

// flagsFor lists the flags that answer a kind of wait.
func flagsFor(what canister.WaitFor) string {
	var names []string
	for _, f := range verdictFlags {
		if f.waits == what {
			names = append(names, "--"+f.name)
		}
	}
	return strings.Join(names, ", ")
}

// who returns the name of the person answering.
func (a *answering) who() (string, error) {
	if a.as != "" {
		return a.as, nil
	}
	me, err := user.Current()
	if err == nil && me.Username != "" {
		return me.Username, nil
	}
	return "", exit.Usagef("nobody knows who you are; say it with --as WHO: %w", cmp.Or(err, errors.New("the user has no name")))
}
