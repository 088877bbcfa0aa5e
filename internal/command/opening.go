// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/exit"
	"github.com/spf13/cobra"
)

// opening is the initial content of a conversation, before the user's first message.
type opening struct {
	documents []string // URIs
	prompt    string   // a name
	arguments []string // NAME=VALUE
}

// flags adds the flags of the opening to a command.
func (o *opening) flags(cmd *cobra.Command) *cobra.Command {
	flags := cmd.Flags()
	flags.StringArrayVar(&o.documents, "document", nil, "add the resource `URI` of a server to the conversation")
	flags.StringVar(&o.prompt, "prompt", "", "start with the prompt `NAME` of a server")
	flags.StringArrayVar(&o.arguments, "argument", nil, "pass the argument `NAME=VALUE` to the prompt")
	return cmd
}

// addOpening adds the opening to the conversation.
func addOpening(ctx context.Context, p *program, o *opening, assembly *config.Assembly, conversation *converse.Conversation) error {
	arguments, err := assignments("--argument", o.arguments)
	if err != nil {
		return err
	}
	if o.prompt == "" && len(arguments) > 0 {
		return exit.Usagef("--argument needs a prompt; name one with --prompt")
	}
	ctx = forProgram(ctx, assembly)
	var canisters []canister.Canister
	for _, uri := range o.documents {
		document, err := libraryOf(p, assembly.Roster).Document(ctx, uri)
		if err != nil {
			return err
		}
		canisters = append(canisters, document)
	}
	if o.prompt != "" {
		prompted, err := libraryOf(p, assembly.Roster).Prompt(ctx, o.prompt, arguments)
		if err != nil {
			return err
		}
		canisters = append(canisters, prompted...)
	}
	if len(canisters) == 0 { // adding none would still record a conversation
		return nil
	}
	return conversation.Add(ctx, canisters...)
}
