// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/reports"
	"github.com/consort-go/consort/invoker"
	"github.com/spf13/cobra"
)

func resourcesCommand(p *program) *cobra.Command {
	var uri string
	cmd := p.withTrust(p.withJSON(&cobra.Command{
		Use:     "resources",
		Short:   "List the resources of the servers, or print one",
		Example: "  consort resources\n  consort resources --read file:///notes.txt",
		Args:    cobra.NoArgs,
		RunE: runE(func(ctx context.Context, _ []string) error {
			return withRoster(ctx, p, func(ctx context.Context, assembly *config.Assembly) error {
				if uri != "" {
					return showResource(ctx, p, assembly, uri)
				}
				return listResources(ctx, p, assembly)
			})
		}),
	}, "print one JSON document, or with --read the document as a canister"))
	cmd.Flags().StringVar(&uri, "read", "", "print the contents of the resource `URI`")
	return cmd
}

// withRoster calls do with the assembled servers, without a model. The context carries
// the trusted values.
func withRoster(ctx context.Context, p *program, do func(context.Context, *config.Assembly) error) (err error) {
	p.needs.quiet = config.LevelError // the lists contain all warnings
	cfg, err := p.load()
	if err != nil {
		return err
	}
	cfg.Model, cfg.Audit = nil, nil // both are unused, so they need not be valid
	assembly, err := p.assemble(cfg, interaction{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(assembly)) }()
	return do(invoker.WithTrusted(ctx, assembly.Trusted...), assembly)
}

// failed converts the error of a server into the error of a command.
func failed(err error) error {
	failure := invoker.AsFailure(err)
	if failure == nil {
		return nil
	}
	return exit.With(exit.Tool, fmt.Errorf("%s: %s", failure.Code, failure.Message))
}

// readDocument returns a resource as a document.
func readDocument(ctx context.Context, p *program, roster *ensemble.Roster, uri string) (canister.Document, error) {
	reading := p.screen.Begin("reading " + display.Line(uri))
	document, err := roster.Document(ctx, uri)
	reading.End()
	if ctx.Err() != nil {
		return document, context.Cause(ctx)
	}
	return document, failed(err)
}

func showResource(ctx context.Context, p *program, assembly *config.Assembly, uri string) error {
	document, err := readDocument(ctx, p, assembly.Roster, uri)
	if err != nil {
		return err
	}
	if p.json {
		return p.screen.PrintCanisters(document)
	}
	var parts []string
	for _, content := range document.Content {
		if resource, ok := content.(canister.ResourceContent); ok && resource.Blob == nil {
			content = canister.TextContent{Text: resource.Text}
		}
		parts = append(parts, display.Content(content))
	}
	p.screen.PrintLine(strings.Join(parts, "\n"))
	return p.screen.Err()
}

func listResources(ctx context.Context, p *program, assembly *config.Assembly) error {
	connecting := p.screen.Begin("connecting")
	all, err := assembly.Roster.Resources(ctx)
	connecting.End()
	if err != nil {
		return err
	}
	list := reports.NewResourceList(all)
	if p.json {
		return p.screen.PrintDocument(list)
	}
	p.screen.Print(list.Text(p.screen.Results, assembly.Roster))
	noteAway(p, list.Away)
	return p.screen.Err()
}

func noteAway(p *program, away []reports.Away) {
	for _, a := range away {
		p.screen.Note("%s", p.screen.Notes.Bad("away: ")+display.Text(a.Error))
	}
}
