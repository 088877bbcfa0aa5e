// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/approvals"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/glob"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/terminal"
)

// The words of --approve that are not names of tools.
const (
	approveAll   = "all"
	approveReads = "reads"
)

// allowance is what --approve says.
type allowance struct {
	all, reads bool
	tools      []string // globs of names
}

// parseAllowance parses the values of --approve.
func parseAllowance(values []string) (allowance, error) {
	var a allowance
	for _, value := range values {
		switch {
		case value == approveAll:
			a.all = true
		case value == approveReads:
			a.reads = true
		case !strings.Contains(value, "__") && !strings.ContainsAny(value, "*?"), strings.ContainsAny(value, " ,\t\n"):
			return allowance{}, exit.Usagef("--approve %s: expected all, reads, or tools by the names that consort tools lists, such as --approve 'files__*'; repeat the flag for more", display.Line(value))
		default:
			a.tools = append(a.tools, value)
		}
	}
	if a.all && a.reads {
		return allowance{}, exit.Usagef("--approve all and --approve reads exclude each other: give one of them, such as --approve reads")
	}
	return a, nil
}

// allows reports whether a call runs without asking.
func (a allowance) allows(ask converse.Approval) bool {
	return a.all || a.reads && ask.ReadOnly ||
		slices.ContainsFunc(a.tools, func(pattern string) bool { return glob.Match(pattern, approvals.Name(ask)) })
}

// limit makes approve deny what --approve reads leaves out. approve is nil if all calls
// run.
func (a allowance) limit(approve converse.ApproveFunc) converse.ApproveFunc {
	if !a.reads {
		return approve
	}
	return func(ctx context.Context, ask converse.Approval) (converse.Decision, error) {
		switch {
		case !a.allows(ask):
			return converse.Deny("With --approve reads, only tools that change nothing run. To allow this one too, add --approve " + approvals.Name(ask) + "."), nil
		case approve == nil:
			return converse.Allow(), nil
		}
		return approve(ctx, ask)
	}
}

// approving returns the interaction of a command that asks a person before calls that may
// change something. Ask may be nil; it is used if there is a person at the terminal.
func (p *program) approving(cfg *config.Config, ask approvals.Asker, elicit elicitFunc) (interaction, error) {
	allowed, err := parseAllowance(p.approve)
	if err != nil {
		return interaction{}, err
	}
	options := approvals.Options{
		Allowed: allowed.allows, Unanswered: unanswered, Server: serversOf(cfg),
		Warn: func(problem string) { p.screen.Note("%s", display.Text(problem)) },
	}
	if terminal.IsAttended(p.stdin, p.screen.Stderr) {
		options.Asker = ask
	}
	if path, err := approvalsFile(); err == nil { // without a place for them, no answer is kept for good
		options.Store = approvals.NewStore(path)
	}
	p.approver = approvals.NewApprover(options)
	return interaction{approve: p.approver.Approve, askWrites: true, limit: allowed.limit, elicit: elicit}, nil
}

// unanswered returns the error for a call without a person to ask.
func unanswered(ask converse.Approval, problem error) error {
	reason := "This call needs approval, and nobody can be asked here."
	if problem != nil {
		reason += " It may have been allowed before, but " + problem.Error() + "."
	}
	return &config.UnansweredError{Reason: fmt.Sprintf("%s Allow it with --approve all|reads|RULE, such as --approve %s, or with approval.default or approval.rules in the configuration.", reason, approvals.Name(ask))}
}

// approvalsFile returns the file of the stored approvals.
func approvalsFile() (string, error) { return histories.StateFile("approvals.json") }

// serversOf returns a function that describes the server of an ensemble.
func serversOf(cfg *config.Config) func(ensemble string) approvals.Server {
	here, _ := os.Getwd() // without one, the command line decides
	return func(ensemble string) approvals.Server {
		if s := cfg.MCP[ensemble]; s != nil {
			if s.Transport == config.Stdio {
				return startedServer(s, here)
			}
			return approvals.Server{
				Address: address("url", string(s.Transport), s.URL.Reveal()) + valuesOf(s.Headers) + rootsOf(s.Roots),
				Label:   hostOf(s.URL),
			}
		}
		if s := cfg.GRPC[ensemble]; s != nil {
			return approvals.Server{
				Address: address("grpc", s.Address.Reveal(), s.Dapr.Reveal(), s.Token.Reveal()) + valuesOf(s.Metadata),
				Label:   s.Address.String() + s.Dapr.String(),
			}
		}
		return approvals.Server{Address: "own", Label: "this program"}
	}
}

// hostOf returns the scheme and the host of a URL as the configuration writes it; other
// parts may contain secrets.
func hostOf(address config.Value) string {
	u, err := url.Parse(address.String())
	if err != nil || u.Host == "" {
		return "a URL"
	}
	return u.Scheme + "://" + u.Host
}

// person returns the user at the terminal, for a command that runs one turn, and the
// context of that turn. Ctrl-C at a question cancels it. The caller must call end.
func (p *program) person(ctx context.Context) (turn context.Context, user *terminal.User, end func()) {
	turn, cancel := context.WithCancelCause(ctx)
	return turn, terminal.NewUser(p.screen, p.stdin, nil, func() { cancel(terminal.ErrInterrupted) }), func() { cancel(nil) }
}

// startedServer describes a server that is started as a subprocess. Its working directory
// is part of its address: the same command may work on other files elsewhere.
func startedServer(s *config.Server, here string) approvals.Server {
	directory := s.Directory.Reveal()
	if !filepath.IsAbs(directory) {
		directory = filepath.Join(here, directory)
	}
	words := []string{"command", directory}
	for _, word := range s.Command {
		words = append(words, word.Reveal())
	}
	label := directory
	if len(s.Command) > 0 {
		label = s.Command[0].String() + " in " + directory
	}
	return approvals.Server{Address: address(words...) + valuesOf(s.Environment) + rootsOf(s.Roots), Label: label}
}

// address joins the parts of an address so that different parts have different addresses.
func address(parts ...string) string {
	text, _ := json.Marshal(parts) // strings always have a JSON form
	return string(text) + "\n"
}

// valuesOf returns names with their values as a part of an address. The same server can
// work for another person, or elsewhere, with other variables or headers.
func valuesOf(values map[string]config.Value) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, name, values[name].Reveal())
	}
	return address(parts...)
}

// rootsOf returns roots as a part of an address.
func rootsOf(roots []config.Root) string {
	var parts []string
	for _, root := range roots {
		parts = append(parts, root.Name, root.Path.Reveal())
	}
	return address(parts...)
}
