// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/shown"
)

// approve puts an invocation to the person.
func (c *chat) approve(ctx context.Context, ask converse.Approval) (converse.Decision, error) {
	paint := c.screen.notes
	var question strings.Builder
	fmt.Fprintf(&question, "\n%s %s of %s%s\n", paint.bold("? The model wants to call"),
		paint.name(shown.Line(ask.Tool)), shown.Line(ask.Ensemble), paint.faint(hintText(ask)))
	for line := range strings.Lines(shown.JSON(ask.Arguments)) {
		question.WriteString("  " + line)
	}
	question.WriteString("\n  run it? [y/N, or a reason why not] ")
	answer, err := c.console.question(ctx, question.String())
	if err != nil {
		return converse.Decision{}, c.heard(err)
	}
	switch answer = strings.TrimSpace(answer); strings.ToLower(answer) {
	case "y", "yes":
		return converse.Allow(), nil
	case "", "n", "no":
		return converse.Deny("The person said no."), nil
	}
	return converse.Deny("The person said no: " + answer), nil
}

// hintText is what the author of a tool says about it that matters for an
// approval.
func hintText(ask converse.Approval) string {
	switch {
	case ask.Definition == nil:
		return ""
	case ask.Definition.Hints.ReadOnly:
		return ", which says that it changes nothing"
	case ask.Definition.Hints.MayDestroy():
		return ", which may destroy something"
	}
	return ", which changes something"
}
