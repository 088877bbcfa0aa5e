// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os/user"
	"strings"

	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/histories"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func approveCommand(p *program) *cobra.Command {
	as, resume := "", false
	cmd := p.withHistory(p.withTrace(p.withTrust(p.withJSON(&cobra.Command{
		Use:   "approve [ID [WAIT]]",
		Short: "Answer a waiting conversation, or the call of a client",
		Long: "Approve lists the open waits of the conversation ID, or answers one as a flag says:\n" +
			"the one whose ID begins with WAIT, or without WAIT the only one. Then continue the\n" +
			"conversation with consort resume ID. Without ID it lists the waits of all\n" +
			"conversations, and of the calls of clients of consort serve.",
		Example: "  consort approve\n  consort approve 20261121-k3f9ab2c\n  consort approve 20261121-k3f9ab2c 4QKB --resume\n  consort approve 20261121-k3f9ab2c --deny \"not on a Friday\"",
		Args:    cobra.RangeArgs(0, 2),
	}, "print one JSON document; with --resume one line of JSON for each event"))))
	cmd.RunE = runE(func(ctx context.Context, args []string) error {
		with, err := verdict(cmd.Flags(), len(args) == 2)
		if err != nil {
			return err
		}
		return runApprove(ctx, p, with, as, resume, args)
	})
	flags := cmd.Flags()
	for _, f := range histories.AnswerFlags {
		if strings.Contains(f.Usage, "`") {
			flags.String(f.Name, "", f.Usage)
		} else {
			flags.Bool(f.Name, false, f.Usage)
		}
	}
	flags.StringVar(&as, "as", "", "answer as `WHO` (default: the user of this machine)")
	flags.BoolVar(&resume, "resume", false, "continue the conversation at once")
	return cmd
}

// verdict returns the answer that the flags give, or nil if they give none and no wait is
// named.
func verdict(flags *pflag.FlagSet, named bool) (said *histories.Answer, err error) {
	for _, f := range histories.AnswerFlags {
		flag := flags.Lookup(f.Name)
		if flag == nil || !flag.Changed {
			continue
		}
		if said != nil {
			return nil, exit.Usagef("--%s and --%s exclude each other: give one of them", said.Name, f.Name)
		}
		text := flag.Value.String()
		if flag.Value.Type() == "bool" {
			if text != "true" {
				return nil, exit.Usagef("--%s=%s: omit the flag", f.Name, text)
			}
			text = ""
		}
		if object := map[string]any{}; (f.Name == "arguments" || f.Name == "answer") && json.Unmarshal([]byte(text), &object) != nil {
			return nil, exit.Usagef("--%s: expected one JSON object", f.Name)
		}
		said = &histories.Answer{AnswerFlag: f, Text: text}
	}
	if said == nil && named {
		said = &histories.Answer{AnswerFlag: histories.AnswerFlags[0]}
	}
	return said, nil
}

// runApprove lists the waits of a conversation, or answers one. With is nil if there is
// no answer.
func runApprove(ctx context.Context, p *program, with *histories.Answer, as string, resume bool, args []string) error {
	if len(args) == 0 {
		if with != nil || resume || as != "" {
			return exit.Usagef("give the ID of what is answered, as listed by: %s", p.location.CommandLine("approve"))
		}
		return listWaits(ctx, p)
	}
	if resume && with == nil {
		return exit.Usagef("--resume needs an answer; to continue the conversation without one: %s", p.location.CommandLine("resume "+display.Word(args[0])))
	}
	if as != "" && with == nil {
		return exit.Usagef("--as needs an answer, such as --allow or --deny REASON")
	}
	a := histories.Answering{ID: args[0], With: with, Quiet: resume}
	if len(args) == 2 {
		a.Wait = args[1]
	}
	m, err := openManager(ctx, p, false)
	if err != nil {
		return err
	}
	a.By = as
	if with != nil && as == "" {
		a.By, err = userName()
	}
	if err == nil {
		err = m.Answer(ctx, a)
	}
	err = errors.Join(err, m.Close())
	if err != nil || !resume {
		return err
	}
	return runResume(ctx, p, args[:1])
}

// listWaits lists all open waits of the store.
func listWaits(ctx context.Context, p *program) error {
	m, err := openManager(ctx, p, false)
	if err != nil {
		return err
	}
	return errors.Join(m.ListWaits(ctx), m.Close())
}

// userName returns the name of the user of this machine.
func userName() (string, error) {
	me, err := user.Current()
	if err == nil && me.Username != "" {
		return me.Username, nil
	}
	return "", exit.Usagef("the user of this machine is unknown; give your name with --as WHO: %w", cmp.Or(err, errors.New("the user has no name")))
}
