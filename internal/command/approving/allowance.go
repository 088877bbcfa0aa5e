// SPDX-License-Identifier: Apache-2.0

// Package approving says which calls the flag --approve allows, and which server of a
// configuration a stored approval is for.
package approving

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/approvals"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/glob"
)

// The words of --approve that are not names of tools.
const (
	approveAll   = "all"
	approveReads = "reads"
)

// Allowance is what --approve says.
type Allowance struct {
	all, reads bool
	tools      []string // globs of names
}

// Parse parses the values of --approve.
func Parse(values []string) (Allowance, error) {
	var a Allowance
	for _, value := range values {
		switch {
		case value == approveAll:
			a.all = true
		case value == approveReads:
			a.reads = true
		case !strings.Contains(value, "__") && !strings.ContainsAny(value, "*?"), strings.ContainsAny(value, " ,\t\n"):
			return Allowance{}, exit.Usagef("--approve %s: expected all, reads, or tools by the names that consort tools lists, such as --approve 'files__*'; repeat the flag for more", display.Line(value))
		default:
			a.tools = append(a.tools, value)
		}
	}
	if a.all && a.reads {
		return Allowance{}, exit.Usagef("--approve all and --approve reads exclude each other: give one of them, such as --approve reads")
	}
	return a, nil
}

// Allows reports whether a call runs without asking.
func (a Allowance) Allows(ask converse.Approval) bool {
	return a.all || a.reads && ask.ReadOnly ||
		slices.ContainsFunc(a.tools, func(pattern string) bool { return glob.Match(pattern, approvals.Name(ask)) })
}

// Limit makes approve deny what --approve reads leaves out. approve is nil if all calls
// run.
func (a Allowance) Limit(approve converse.ApproveFunc) converse.ApproveFunc {
	if !a.reads {
		return approve
	}
	return func(ctx context.Context, ask converse.Approval) (converse.Decision, error) {
		switch {
		case !a.Allows(ask):
			return converse.Deny("With --approve reads, only tools that change nothing run. To allow this one too, add --approve " + approvals.Name(ask) + "."), nil
		case approve == nil:
			return converse.Allow(), nil
		}
		return approve(ctx, ask)
	}
}

// Unanswered returns the error for a call without a person to ask.
func Unanswered(ask converse.Approval, problem error) error {
	reason := "This call needs approval, and nobody can be asked here."
	if problem != nil {
		reason += " It may have been allowed before, but " + problem.Error() + "."
	}
	return &config.UnansweredError{Reason: fmt.Sprintf("%s Allow it with --approve all|reads|RULE, such as --approve %s, or with approval.default or approval.rules in the configuration.", reason, approvals.Name(ask))}
}
