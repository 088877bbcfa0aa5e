// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"slices"
	"strings"

	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/converse/internal/sample"
	"github.com/consort-go/consort/converse/internal/toolchoice"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
)

// tools returns the tools of a request, and their names if the model may call them; the
// conversation does not run them. It returns an error if the model cannot be offered one
// of them. None is left out, because the requester would not notice.
func (s *sampling) tools(request *invoker.SampleRequest) (*Toolset, sample.Names, error) {
	choice := toolchoice.For(s.batch.turn.conv.origin, s.opts.Limits.Tools)
	if err := choice.Place(len(request.Tools) - 1); err != nil {
		return nil, nil, invoker.Failf(invoker.InvalidArguments, "The model cannot be offered %d tools: %w.", len(request.Tools), err)
	}
	set, names := &Toolset{}, sample.Names{}
	for _, tool := range request.Tools {
		definition, err := names.Define(tool, s.batch.clean)
		if err != nil {
			return nil, nil, err
		}
		if err := choice.Screen(definition); err != nil {
			return nil, nil, invoker.Failf(invoker.InvalidArguments, "The model cannot be offered the tool %q: %w.", textcut.Bytes(tool.Name, bounds.MaxQuoted), err)
		}
		set.Definitions = append(set.Definitions, definition)
	}
	slices.SortFunc(set.Definitions, func(a, b *invoker.Definition) int { return strings.Compare(a.Name, b.Name) })
	if request.ToolChoice == invoker.ToolsNone {
		names = nil
	}
	return set, names, nil
}
