// SPDX-License-Identifier: Apache-2.0

// Package libraries reads, lists and prints the resources and prompts of servers.
package libraries

import (
	"context"
	"fmt"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/reports"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/invoker"
)

// Library has the resources and prompts of a roster.
type Library struct {
	Roster *ensemble.Roster
	Screen *terminal.Screen
	JSON   bool // print JSON
}

// Document returns a resource as a document.
func (l Library) Document(ctx context.Context, uri string) (canister.Document, error) {
	reading := l.Screen.Begin("reading " + display.Line(uri))
	document, err := l.Roster.Document(ctx, uri)
	reading.End()
	if ctx.Err() != nil {
		return document, context.Cause(ctx)
	}
	return document, failed(err)
}

// ShowResource prints a resource.
func (l Library) ShowResource(ctx context.Context, uri string) error {
	document, err := l.Document(ctx, uri)
	if err != nil {
		return err
	}
	if l.JSON {
		return l.Screen.PrintCanisters(document)
	}
	var parts []string
	show := l.Screen.PrintLine
	for _, content := range document.Content {
		show = l.Screen.PrintLine
		if resource, ok := content.(canister.ResourceContent); ok && resource.Blob == nil {
			content, show = canister.TextContent{Text: resource.Text}, l.Screen.PrintCopy
		}
		parts = append(parts, display.Content(content))
	}
	show(strings.Join(parts, "\n"))
	return l.Screen.Err()
}

// ListResources prints the resources of all servers.
func (l Library) ListResources(ctx context.Context) error {
	connecting := l.Screen.Begin("connecting")
	all, err := l.Roster.Resources(ctx)
	connecting.End()
	if err != nil {
		return err
	}
	list := reports.NewResourceList(all)
	if l.JSON {
		return l.Screen.PrintDocument(list)
	}
	l.Screen.Print(list.Text(l.Screen.Results, l.Roster))
	reports.NoteAway(l.Screen, list.Away)
	return l.Screen.Err()
}

// failed converts the error of a server into the error of a command.
func failed(err error) error {
	failure := invoker.AsFailure(err)
	if failure == nil {
		return nil
	}
	return exit.With(exit.Tool, fmt.Errorf("%s: %s", failure.Code, failure.Message))
}
