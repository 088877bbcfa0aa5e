// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/terminal"
)

// Check is the JSON output of consort check.
type Check struct {
	Config   string    `json:"config"` // the file
	OK       bool      `json:"ok"`
	Problems []Problem `json:"problems"` // of the configuration
	Model    *Model    `json:"model"`    // null if there is none
	History  *History  `json:"history"`  // null if nothing is kept
	Servers  []Server  `json:"servers"`
}

// Problem is the JSON form of a [config.Problem].
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
	Nearest string `json:"nearest,omitempty"`
	text    string // for people
}

// Model is the outcome of the check of the model, in the JSON form of the command check.
type Model struct {
	Link
	Asked bool `json:"asked"` // a request was sent to it and to each fallback
	// Fallbacks are asked when the model is unavailable.
	Fallbacks []Link `json:"fallbacks,omitempty"`
}

// Link is a model, or a fallback, which is asked when those before it are unavailable.
type Link struct {
	Name    string `json:"name"`
	BaseURL string `json:"base_url,omitempty"`
	// RoundTripMS is the time from the request to the whole answer; 0 without an answer.
	RoundTripMS float64 `json:"round_trip_ms,omitempty"`
	Error       string  `json:"error,omitempty"` // for the model: also why it cannot be asked
	// Failed says that Error is about a request, and not about the settings.
	Failed bool `json:"-"`
}

// answered records the outcome of a request that took a duration.
func (l *Link) answered(took time.Duration, err error) {
	if err != nil {
		l.Error, l.Failed = err.Error(), true
		return
	}
	l.RoundTripMS = jsontext.Milliseconds(took)
}

// History says where chat and serve keep conversations.
type History struct {
	Store   config.StoreKind `json:"store"`
	Path    string           `json:"path,omitempty"`
	Default bool             `json:"default"` // no other store is named
	Error   string           `json:"error,omitempty"`
}

// Server is the outcome of the check of one server, in the JSON form of the command check.
type Server struct {
	Name        string          `json:"name"`
	Transport   string          `json:"transport"`
	State       string          `json:"state"`
	Protocol    string          `json:"protocol,omitempty"`
	Server      string          `json:"server,omitempty"` // the name that the server gives itself
	Title       string          `json:"title,omitempty"`
	Version     string          `json:"version,omitempty"`
	Description string          `json:"description,omitempty"`
	Website     string          `json:"website,omitempty"`
	Metadata    canister.Fields `json:"metadata,omitempty"`
	Tools       int             `json:"tools"`
	ConnectMS   float64         `json:"connect_ms,omitempty"`
	Aside       []Aside         `json:"aside"`
	Shortened   []Aside         `json:"shortened,omitempty"`
	Error       string          `json:"error,omitempty"`
}

// NewServer returns the report on a server after an attempt to connect.
func NewServer(s ensemble.Snapshot, aside []ensemble.Aside, transport string) Server {
	out := Server{
		Name: s.Name, Transport: transport, State: string(s.State), Aside: []Aside{},
		Protocol: s.Peer.Protocol, Server: s.Peer.Name, Title: s.Peer.Title, Version: s.Peer.Version,
		Description: s.Peer.Description, Website: s.Peer.Website, Metadata: s.Peer.Metadata,
		Tools: s.Tools, ConnectMS: jsontext.Milliseconds(s.ConnectDuration),
	}
	if s.State != ensemble.Ready && (s.State != ensemble.Idle || s.LastSuccess.IsZero()) { // after a success, IdleDisconnect has passed since
		out.Error = "the server cannot be reached"
		if s.LastError != nil {
			out.Error = s.LastError.Error()
		}
	}
	known := len(s.Aside)
	for _, a := range aside {
		out.Aside = append(out.Aside, Aside(a))
	}
	out.Tools -= max(0, len(aside)-known) // minus the tools that the model cannot take
	return out
}

// Text renders the report for people.
func (r *Check) Text(paint terminal.Palette) string {
	var b strings.Builder
	if len(r.Problems) > 0 {
		fmt.Fprintf(&b, "%s %s is wrong:\n", paint.Bad("✗"), r.Config)
		for _, p := range r.Problems {
			fmt.Fprintf(&b, "  %s\n", display.Text(p.text))
		}
		return b.String()
	}
	fmt.Fprintf(&b, "%s %s\n", paint.Good("✓"), r.Config)
	b.WriteString(r.Model.text(paint))
	b.WriteString(r.History.text(paint))
	if len(r.Servers) == 0 {
		return b.String() + "  no servers\n"
	}
	b.WriteString("\n" + r.servers(paint))
	for _, s := range r.Servers {
		for _, a := range s.Aside {
			fmt.Fprintf(&b, "\n  %s: %s is set aside: %s", display.Text(s.Name), display.Line(a.Tool), display.Line(a.Reason))
		}
		for _, a := range s.Shortened {
			fmt.Fprintf(&b, "\n  %s: %s is shortened: %s", display.Text(s.Name), display.Line(a.Tool), display.Line(a.Reason))
		}
	}
	for _, s := range r.Servers {
		if s.Error != "" {
			fmt.Fprintf(&b, "\n%s %s: %s", paint.Bad("✗"), display.Text(s.Name), display.Text(s.Error))
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func (m *Model) text(paint terminal.Palette) string {
	switch {
	case m == nil:
		return "  no [model]: tools and call work, chat and run do not\n"
	case m.Error != "" && !m.Failed:
		return fmt.Sprintf("%s model %s: %s\n", paint.Bad("✗"), display.Text(m.Name), display.Text(m.Error))
	}
	text := m.Link.text(paint, "model")
	for _, f := range m.Fallbacks {
		text += f.text(paint, "fallback")
	}
	return text
}

func (l *Link) text(paint terminal.Palette, what string) string {
	name := display.Text(l.Name)
	if l.BaseURL != "" {
		name += " at " + display.Text(l.BaseURL)
	}
	switch {
	case l.Failed:
		text := strings.ReplaceAll(display.Text(l.Error), "\n", "\n  ")
		return fmt.Sprintf("%s %s %s did not answer: %s\n", paint.Bad("✗"), what, name, text)
	case l.RoundTripMS > 0:
		took := time.Duration(l.RoundTripMS * float64(time.Millisecond)).Round(time.Millisecond)
		return fmt.Sprintf("%s %s %s answered in %v\n", paint.Good("✓"), what, name, took)
	}
	return fmt.Sprintf("%s %s %s (its settings are valid; no request was sent)\n", paint.Good("✓"), what, name)
}

// failed reports whether a model did not answer.
func (m *Model) failed() bool {
	return m.Failed || slices.ContainsFunc(m.Fallbacks, func(f Link) bool { return f.Failed })
}

func (h *History) text(paint terminal.Palette) string {
	switch {
	case h == nil:
		return "  conversations are not stored\n"
	case !h.Store.HasPath():
		return paint.Good("✓") + " conversations are stored in " + h.Store.Title() + "\n"
	case h.Error != "":
		return fmt.Sprintf("%s conversations of chat and serve cannot be stored: %s\n", paint.Bad("✗"), display.Line(h.Error))
	case h.Default:
		return fmt.Sprintf("%s conversations of chat and serve are stored in %s\n", paint.Good("✓"), terminal.ShortPath(h.Path))
	}
	return fmt.Sprintf("%s conversations are stored in %s\n", paint.Good("✓"), terminal.ShortPath(h.Path))
}

// servers renders a table with a row for each server.
func (r *Check) servers(paint terminal.Palette) string {
	rows := [][]string{{"SERVER", "STATE", "PROTOCOL", "NAME", "TOOLS", "SET ASIDE", "CONNECTED IN"}}
	for _, s := range r.Servers {
		took, state := "–", s.State
		switch ensemble.State(s.State) {
		case ensemble.Queued, ensemble.Connecting, ensemble.Lost: // a server that failed is tried again
			state = "failed"
		}
		if s.Error == "" {
			took = time.Duration(s.ConnectMS * float64(time.Millisecond)).Round(time.Millisecond).String()
		}
		rows = append(rows, []string{
			display.Line(s.Name), state, display.Line(s.Protocol), display.Line(s.Server + " " + s.Version),
			strconv.Itoa(s.Tools), strconv.Itoa(len(s.Aside)), took,
		})
	}
	return terminal.Table(rows, func(row, column int, cell string) string {
		switch {
		case row == 0:
			return paint.Faint(cell)
		case column == 1 && r.Servers[row-1].Error != "":
			return paint.Bad(cell)
		case column == 1:
			return paint.Good(cell)
		}
		return cell
	})
}

// FileProblem returns a problem of a whole file.
func FileProblem(file, message string) Problem {
	return Problem{File: file, Message: message, text: file + ": " + message}
}

// Verdict returns the error that sets the exit status; everything has been printed.
func (r *Check) Verdict() error {
	switch {
	case len(r.Problems) > 0 || r.Model != nil && r.Model.Error != "" && !r.Model.Failed:
		return &exit.Error{Status: exit.Usage}
	case r.Model != nil && r.Model.failed():
		return &exit.Error{Status: exit.Failed}
	case slices.ContainsFunc(r.Servers, func(s Server) bool { return s.Error != "" }):
		return &exit.Error{Status: exit.Tool}
	}
	return nil
}

// ProblemsIn returns the problems that a configuration error lists.
func ProblemsIn(err error) []Problem {
	var wrong *config.Error
	if !errors.As(err, &wrong) {
		return nil
	}
	var problems []Problem
	for _, p := range wrong.Problems {
		problems = append(problems, Problem{p.File, p.Line, p.Column, p.Key, p.Message, p.Nearest, p.Error()})
	}
	return problems
}
