// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/internal/command/session"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// maxPrompt bounds the prompt on standard input, in bytes.
const maxPrompt = 16 << 20

func runCommand(p *program) *cobra.Command {
	var o opening
	var want histories.Choice
	cmd := o.flags(p.withApprove(p.withHistory(p.withPlain(p.withTrace(p.withTrust(p.withJSON(&cobra.Command{
		Use:   "run [PROMPT]",
		Short: "Run one turn of a conversation and print the answer",
		Long: "Run sends PROMPT, or standard input, to the model and streams the answer to standard\n" +
			"output. Tool calls are reported on standard error. A tool that may change something\n" +
			"runs after a question on the terminal, or as --approve or the configuration allows.",
		Example: "  consort run \"What should I wear in Oslo?\"\n  git diff | consort run --approve 'notes__*'",
		RunE:    runE(func(ctx context.Context, args []string) error { return runTurn(ctx, p, &o, want, args) }),
	}, "print one line of JSON per event")))))))
	cmd.Flags().StringVar(&want.ID, "conversation", "", "continue the conversation `ID`, or begin it")
	return cmd
}

func runTurn(ctx context.Context, p *program, o *opening, want histories.Choice, args []string) (err error) {
	p.needs.view = !p.json
	cfg, err := p.load()
	if err != nil {
		return err
	}
	var prompt string
	if len(args) > 0 || o.prompt == "" {
		if prompt, err = promptFrom(ctx, p, args); err != nil {
			return err
		}
	}
	assemble := p.withModel
	if want.ID != "" {
		assemble = func(cfg *config.Config, with interaction) (*config.Assembly, error) {
			return p.withStore(ctx, cfg, histories.Surely, with)
		}
	}
	ctx, user, end := p.person(ctx)
	defer end()
	with, err := p.approving(cfg, user, p.screen.Decline)
	if err != nil {
		return err
	}
	assembly, err := assemble(cfg, with)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(assembly)) }()
	s, err := session.Open(ctx, p.session(), assembly, want)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unclosed(s.Conversation.Close(context.Background()))) }()
	if err := addOpening(ctx, p, o, assembly, s.Conversation); err != nil {
		return s.Explain(err)
	}
	if prompt == "" && !session.Waits(s.Conversation) {
		return exit.Usagef("the prompt %q ends with a reply, so the next message is yours: give a PROMPT", o.prompt)
	}
	if prompt != "" {
		s.WarnLeft()
	}
	defer s.AdviseResume()
	defer s.SayWhich()
	return s.Turn(ctx, prompt)
}

// promptFrom returns the prompt from the arguments, or else from standard input.
func promptFrom(ctx context.Context, p *program, args []string) (string, error) {
	if prompt := strings.Join(args, " "); prompt != "" && prompt != "-" {
		return prompt, nil
	}
	if term.IsTerminal(int(p.stdin.Fd())) {
		return "", exit.Usagef(`the prompt is missing: give one, as in consort run "What should I wear in Oslo?", or on standard input; for a dialogue, use consort chat`)
	}
	text, err := readAll(terminal.Until(ctx, p.stdin), maxPrompt)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(text) == "" {
		return "", exit.Usagef("the prompt is missing: standard input is empty")
	}
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"), nil
}

// readAll reads up to limit bytes.
func readAll(r io.Reader, limit int64) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return "", exit.Usagef("reading standard input: %w", err)
	}
	if int64(len(text)) > limit {
		return "", exit.Usagef("standard input has more than %d bytes", limit)
	}
	return string(text), nil
}
