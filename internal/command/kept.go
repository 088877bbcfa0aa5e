// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/shown"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/spf13/cobra"
)

// choice selects the conversation of the store to continue; its zero value is a new one.
type choice struct {
	id   string
	last bool // the one that was changed last
	must bool // it must exist
}

// kept is a conversation and the store that keeps it.
type kept struct {
	*program
	talk   *converse.Conversation
	store  history.Store // nil keeps nothing
	was    history.Info  // before this command; zero if the conversation is new
	limits converse.Limits
	other  bool // it belongs to a client of serve that this command does not act for

	overtaken bool // another process continued the conversation during the last turn
	gone      bool // another process deleted the conversation
}

// withHistory adds the flag --history to a command.
func (p *program) withHistory(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&p.history, "history", "", "keep conversations in `FILE`, whatever the configuration says; none keeps nothing")
	return cmd
}

// keepIn applies the flag --history to the configuration.
func (p *program) keepIn(cfg *config.Config) {
	if p.history == "" {
		return
	}
	table := config.History{}
	if cfg.History != nil {
		table = *cfg.History
	}
	switch {
	case p.history == nowhere:
		table = config.History{Store: config.StoreNone}
	case table.Store == config.StoreFiles:
		table.Path = config.Plain(p.history)
	default:
		table.Store, table.DSN, table.Schema = "", config.Value{}, ""
		table.Path = config.Plain(p.history)
	}
	cfg.History = &table
}

// take opens the selected conversation and loads its stored canisters. The caller must
// close the conversation.
func (p *program) take(ctx context.Context, assembly *config.Assembly, want choice) (*kept, error) {
	k := &kept{program: p, limits: assembly.Options.Limits}
	var err error
	if k.store, err = assembly.History(ctx); err != nil {
		return nil, p.unopened(err)
	}
	options := *assembly.Options
	if k.store != nil {
		if k.was, err = find(ctx, k.store, want); err != nil {
			return nil, err
		}
		options.Log, options.ID = k.store, k.was.ID
		if k.other, err = p.ofAnother(ctx, assembly, k.was); err != nil {
			return nil, err
		}
	}
	k.talk = converse.New(assembly.Model, assembly.Roster, &options)
	if k.was.Length == 0 {
		return k, nil
	}
	if err := k.talk.Load(ctx); err != nil {
		return nil, errors.Join(err, k.talk.Close(ctx))
	}
	return k, nil
}

// noStore returns the error for a command that requires a store, with advice.
func (p *program) noStore() error {
	if p.history == nowhere {
		return exit.Usagef("--history none keeps no conversations; leave it out, or name a file in place of none")
	}
	return exit.Usagef("%s keeps no conversations. Name a file for them with --history FILE, or say\n\n    [history]\n    path = \"history.db\"", p.configFile)
}

// find returns the stored information about the selected conversation, or only the ID of
// a new one.
func find(ctx context.Context, store history.Store, want choice) (history.Info, error) {
	switch {
	case want.last:
		return latest(ctx, store)
	case want.id == "":
		return history.Info{ID: newID()}, nil
	}
	info, err := known(ctx, store, want.id)
	if errors.Is(err, history.ErrNotFound) && !want.must {
		return history.Info{ID: want.id}, nil
	}
	return info, err
}

// known returns the stored information about a conversation that must exist.
func known(ctx context.Context, store history.Store, id string) (history.Info, error) {
	if err := history.CheckID(id); err != nil {
		return history.Info{}, exit.Usagef("%w", err)
	}
	info, err := store.Info(ctx, id)
	if errors.Is(err, history.ErrNotFound) {
		return info, exit.Usagef("there is no conversation %s; consort history list has those that there are: %w", word(id), history.ErrNotFound)
	}
	return info, err
}

// latest returns the conversation that was changed last, among conversations without an
// owner. Conversations of this command have no owner.
func latest(ctx context.Context, store history.Store) (history.Info, error) {
	for info, err := range store.List(ctx, history.Filter{}) {
		if err != nil || info.Owner == "" {
			return info, err
		}
	}
	return history.Info{}, exit.Usagef("there is no conversation to continue yet; consort chat begins one")
}

// newID returns an ID that people can type: the date, and random letters that are
// unlikely to collide.
func newID() string {
	return time.Now().Format("20060102") + "-" + strings.ToLower(rand.Text()[:8])
}

// turn runs a turn. Its error also reports a turn that a limit cut short.
func (k *kept) turn(ctx context.Context, said string) error {
	k.overtaken = false
	done, err := turn(ctx, k.talk, said, k.shower())
	k.showTrace()
	k.entitle(ctx)
	if err != nil {
		return k.explain(err)
	}
	return shortfall(done, k.limits)
}

// shower returns the renderer of the program. JSON lines contain the ID of the
// conversation if it is stored.
func (k *kept) shower() terminal.Renderer {
	if k.json && k.store != nil {
		return terminal.JSONLines{Screen: k.screen, Conversation: k.talk.ID()}
	}
	return k.program.shower()
}

// explain adds advice to the error of a conversation that another process continued or
// deleted.
func (k *kept) explain(err error) error {
	var conflict *history.ConflictError
	if !errors.As(err, &conflict) {
		return err
	}
	k.overtaken = true
	if k.gone = conflict.Length == 0; k.gone {
		return fmt.Errorf("somebody has deleted this conversation meanwhile, and this turn stopped there: %w", err)
	}
	id := word(k.talk.ID())
	return fmt.Errorf("somebody else has gone on with this conversation meanwhile, and this turn stopped there. "+
		"Nothing of theirs is lost: see it with %s, and then carry on from there, as with %s: %w", k.again("history show "+id), k.again("chat --conversation "+id), err)
}

// entitle stores a title if the conversation has none. A failure is only noted.
func (k *kept) entitle(ctx context.Context) {
	if k.store == nil || k.was.Title != "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	now, err := k.store.Info(ctx, k.talk.ID())
	if err == nil && now.Title == "" {
		if now = (titled{k.store}).entitled(ctx, now); now.Title != "" {
			err = k.store.Describe(ctx, k.talk.ID(), history.Change{Title: &now.Title})
		}
	}
	if err != nil && !errors.Is(err, history.ErrNotFound) { // not found: nothing was said
		k.screen.Note("the conversation has no title: %s", shown.Text(err.Error()))
	}
	k.was.Title = now.Title
}

// adviseResume prints how to continue an unfinished turn.
func (k *kept) adviseResume() {
	if k.store == nil || k.overtaken || !waits(k.talk) {
		return
	}
	id := word(k.talk.ID())
	if k.other {
		k.screen.Note("The turn is not done. The conversation belongs to a client of consort serve, which carries it on; what it waits for is answered with: %s", k.again("approve "+id))
		return
	}
	if wait, waits := k.talk.Next().(converse.Await); waits {
		k.screen.Note("The turn waits for somebody, until %s: see for what, and answer, with: %s", wait.Deadline.Local().Format(time.DateTime), k.again("approve "+id))
		return
	}
	k.screen.Note("%s", k.screen.Notes.Faint("The turn is not done; carry on with it: "+k.again("resume "+id)))
}

// warnLeft prints which pending work a new message abandons.
func (k *kept) warnLeft() {
	if k.was.Length == 0 {
		return
	}
	switch k.talk.Next().(type) {
	case converse.Await:
		k.screen.Note("The conversation waited for somebody, and goes on without the answer: what waited for it is not done.")
	case converse.Invoke:
		k.screen.Note("The conversation was left with calls of tools that have no result; the model is told that they were interrupted.")
	}
}

// sayWhich prints the ID of a new conversation and how to continue it.
func (k *kept) sayWhich() {
	if k.store != nil && !k.json && k.was.Length == 0 && k.talk.Length() > 0 && !k.gone {
		k.screen.Note("%s", k.screen.Notes.Faint("This was conversation "+word(k.talk.ID())+". Carry on with it: "+k.again("run --conversation "+word(k.talk.ID()))))
	}
}

// adviseContinue prints how to come back to the conversation.
func (k *kept) adviseContinue() {
	if k.store != nil && k.talk.Length() > 0 && !k.gone {
		k.screen.Note("%s", k.screen.Notes.Faint("This was conversation "+word(k.talk.ID())+". Carry on with it: "+k.again("chat --conversation "+word(k.talk.ID()))))
	}
}

// again returns a command line for later, with the configuration and the store of this
// one.
func (p *program) again(command string) string {
	if p.configFile != defaultConfig {
		command += " --config " + word(p.configFile)
	}
	if p.history != "" {
		command += " --history " + word(p.history)
	}
	return "consort " + command
}

// word quotes an ID for a shell, and sanitizes it for a terminal.
func word(id string) string {
	id = shown.Text(id)
	if strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/@-") == "" && !strings.HasPrefix(id, "-") {
		return id
	}
	return "'" + strings.ReplaceAll(id, "'", `'\''`) + "'"
}

func (p *program) resumeCommand() *cobra.Command {
	return p.withHistory(p.withTrace(p.withTrust(p.withJSON(&cobra.Command{
		Use:   "resume ID",
		Short: "Carry on with a turn that was not done",
		Long: "Resume carries on with a conversation whose last turn was cut off. Calls of tools\n" +
			"that were not begun are made. One that may have been made is made again where its\n" +
			"tool says that this does no harm; otherwise the model is told that nobody knows,\n" +
			"or somebody is asked, as history.doubt says. Then the model is asked.",
		Example: "  consort history list --open\n  consort resume 20261121-k3f9ab2c",
		Args:    cobra.ExactArgs(1),
		RunE:    does(p.resume),
	}, "print one line of JSON for each event"))))
}

func (p *program) resume(ctx context.Context, args []string) (err error) {
	if err := history.CheckID(args[0]); err != nil { // an empty ID would start a new conversation
		return exit.Usagef("%w", err)
	}
	cfg, err := p.load()
	if err != nil {
		return err
	}
	p.views = !p.json
	assembly, err := p.withStore(ctx, cfg, keepsAlready, interaction{elicit: p.screen.Decline})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(assembly)) }()
	k, err := p.take(ctx, assembly, choice{id: args[0], must: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.talk.Close(context.Background())) }()
	if k.other {
		return exit.Usagef("the conversation %s belongs to a client of consort serve, which carries it on while it runs: "+
			"to carry it on here, give what that client is trusted with, as in --trust user=ada", word(args[0]))
	}
	if done, is := k.talk.Next().(converse.Done); is && !done.Reason.Limited() {
		p.screen.Note("%s", p.screen.Notes.Faint("Nothing is left to do; the conversation waits for its user."))
	}
	defer k.adviseResume()
	return k.turn(ctx, "")
}
