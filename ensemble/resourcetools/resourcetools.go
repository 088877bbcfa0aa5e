// SPDX-License-Identifier: Apache-2.0

// Package resourcetools lets models read the resources of ensembles.
package resourcetools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/findcall"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/internal/toolname"
	"github.com/consort-go/consort/internal/uritemplate"
	"github.com/consort-go/consort/invoker"
)

// The limits for the answers of the tools.
const (
	resourcePage = 50       // resources and templates on one page
	resourceText = 300      // bytes of a description
	resourceRead = 64 << 10 // bytes of text in one answer
)

type listArguments struct {
	Ensemble string `json:"ensemble,omitempty" jsonschema:"list only the resources of this ensemble; empty lists all"`
	Page     int    `json:"page,omitempty" jsonschema:"the page of the list, from 1"`
}

type readArguments struct {
	URI    string `json:"uri" jsonschema:"the URI as returned by list_resources or another tool"`
	Offset int    `json:"offset,omitempty" jsonschema:"how many bytes of the text to skip, to continue reading a long one"`
}

// New makes an ensemble that lets a model find and read the resources of other
// ensembles. It belongs in the same roster as they do. Its tools are:
//
//   - list_resources, for all ensembles or one of them, 50 per page;
//   - read_resource, by URI: as text, 64 KiB at a time; binary data is only described.
//
// Both are read-only. Trusted values reach the ensembles as with any call. The errors
// are the same as from [ensemble.NewRoster]. The caller must still close the given
// ensembles.
func New(name string, ensembles ...*ensemble.Ensemble) (*ensemble.Ensemble, error) {
	roster, err := ensemble.NewRoster(ensembles...)
	if err != nil {
		return nil, err
	}
	options := &invoker.Options{Hints: invoker.Hints{ReadOnly: true, Idempotent: true}}
	list, err := invoker.New("list_resources", "List the resources that can be read with read_resource: documents, files, records. A template describes many resources: fill in its {variables} to get a URI.",
		func(ctx context.Context, arguments listArguments) (string, error) {
			return listResources(ctx, roster, arguments)
		}, options)
	if err != nil {
		return nil, err
	}
	read, err := invoker.New(findcall.ReadName, findcall.ReadDescription,
		func(ctx context.Context, arguments readArguments) (string, error) {
			return readResource(ctx, roster, arguments)
		}, options)
	if err != nil {
		return nil, err
	}
	return ensemble.Local(name, list, read), nil
}

// listResources returns one page of the list.
func listResources(ctx context.Context, roster *ensemble.Roster, asked listArguments) (string, error) {
	if _, ok := roster.Ensemble(asked.Ensemble); !ok && asked.Ensemble != "" {
		return "", invoker.Invalid("/ensemble", "There is no ensemble %q. There are: %s.", textcut.Bytes(asked.Ensemble, toolname.Max), strings.Join(namesOf(roster.Ensembles()), ", "))
	}
	all, err := roster.Resources(ctx)
	if err != nil {
		return "", err // Resources fails only if the call ended, or the program ends
	}
	var lines []string
	for _, r := range all.Resources {
		if asked.Ensemble == "" || r.Ensemble == asked.Ensemble {
			lines = append(lines, resourceLine("", r.URI, r.Ensemble, r.MIME, r.Title, r.Name, r.Description))
		}
	}
	for _, t := range all.Templates {
		if asked.Ensemble == "" || t.Ensemble == asked.Ensemble {
			lines = append(lines, resourceLine("template ", t.URI, t.Ensemble, t.MIME, t.Title, t.Name, t.Description))
		}
	}
	page, pages := max(asked.Page, 1), max((len(lines)+resourcePage-1)/resourcePage, 1)
	if page > pages {
		return "", invoker.Invalid("/page", "The list has %d pages.", pages)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d resources and templates, page %d of %d.\n", len(lines), page, pages)
	for _, line := range lines[(page-1)*resourcePage : min(page*resourcePage, len(lines))] {
		b.WriteString(line)
	}
	for _, a := range all.Away {
		if asked.Ensemble == "" || a.Ensemble == asked.Ensemble {
			fmt.Fprintf(&b, "The ensemble %q cannot be reached; its resources are missing.\n", a.Ensemble)
		}
	}
	return b.String(), nil
}

func namesOf(ensembles []*ensemble.Ensemble) []string {
	var names []string
	for _, e := range ensembles {
		names = append(names, fmt.Sprintf("%q", e.Name()))
	}
	return names
}

// resourceLine describes one resource, always on one line.
func resourceLine(kind, uri, from, mime, title, name, description string) string {
	line := fmt.Sprintf("- %s%s (%s", kind, oneLine(uri, uritemplate.MaxURI), oneLine(from, toolname.Max))
	if mime != "" {
		line += ", " + oneLine(mime, toolname.Max)
	}
	line += ")"
	for _, text := range slices.Compact([]string{cmp.Or(title, name), description}) {
		if text != "" {
			line += ": " + oneLine(text, resourceText)
		}
	}
	return line + "\n"
}

// oneLine returns a text without line breaks, cut to a maximum length in bytes.
func oneLine(text string, most int) string {
	return textcut.Bytes(strings.Join(strings.Fields(text), " "), most)
}

// readResource returns the contents of a resource, or a part of them.
func readResource(ctx context.Context, roster *ensemble.Roster, asked readArguments) (string, error) {
	parts, err := roster.ReadResource(ctx, asked.URI)
	var failure *invoker.Failure
	if errors.As(err, &failure) && failure.Code == invoker.NotFound {
		return "", &invoker.Failure{Code: failure.Code, Message: failure.Message + " Call list_resources to see the available resources.", Cause: err}
	}
	if err != nil {
		return "", err
	}
	text := textOfParts(parts)
	if asked.Offset < 0 || asked.Offset > len(text) {
		return "", invoker.Invalid("/offset", "The text has %d bytes.", len(text))
	}
	start := asked.Offset
	for start > 0 && start < len(text) && !utf8.RuneStart(text[start]) {
		start--
	}
	piece := textcut.Prefix(text[start:], resourceRead)
	end := start + len(piece)
	if end == len(text) {
		return piece, nil
	}
	return fmt.Sprintf("%s\n[cut: continue with offset %d of %d bytes]", piece, end, len(text)), nil
}

// textOfParts joins the texts of the parts; a binary part becomes a line that describes
// it.
func textOfParts(parts []canister.ResourceContent) string {
	var texts []string
	for _, part := range parts {
		if part.Blob == nil {
			texts = append(texts, part.Text)
			continue
		}
		kind := cmp.Or(part.MIME, "of an unknown kind")
		texts = append(texts, fmt.Sprintf("[%s: %d bytes, %s, which cannot be shown as text]", oneLine(part.URI, uritemplate.MaxURI), len(part.Blob), oneLine(kind, toolname.Max)))
	}
	return strings.Join(texts, "\n")
}
