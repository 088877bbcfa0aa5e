// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/folding"
	"github.com/consort-go/consort/invoker"
)

// Spinner returns a frame of an animation, one column wide.
func Spinner(style Style, frame int) string {
	frames := style.symbols().spinner
	return frames[frame%len(frames)]
}

// RunningCall returns the line of a call that runs: a frame of the spinner, the tool, its
// arguments in short, how long it runs, and its progress.
func RunningCall(style Style, call canister.Invocation, frame int, elapsed time.Duration, progress invoker.Progress) string {
	return style.row(style.callLine(Spinner(style, frame), style.nameInk(), call, Elapsed(elapsed), Progress(progress), faintInk)...)
}

// CompletedCall returns the lines of a call that has ended: one for a success, with the
// beginning of the result, and more for a failure, with the reason. A search shows the
// tools that it found. Below a program is a line about the calls that it made. Number identifies
// the call to the person; 0 shows none.
func CompletedCall(style Style, number int, e converse.InvocationCompleted, made *folding.Tally) []string {
	rows := completedCall(style, number, e)
	if inner := made.String(); inner != "" {
		rows = append(rows, style.folded(inner))
	}
	return rows
}

// folded returns a line below a call.
func (s Style) folded(text string) string {
	return s.row(span{text: "    " + s.fit(text, s.width()-4), ink: faintInk})
}

func completedCall(style Style, number int, e converse.InvocationCompleted) []string {
	mark, sign := style.symbols().done, style.goodInk()
	if e.Result.Failed() {
		mark, sign = style.symbols().failed, style.badInk()
	}
	if number > 0 {
		mark += fmt.Sprint(" ", number)
	}
	result, isSearch := folding.Found(e.Invocation.Name, e.Result)
	if !isSearch {
		result = display.Line(display.Contents(e.Result.Content))
	}
	if !e.Result.Failed() {
		line := style.callLine(mark, sign, e.Invocation, Elapsed(e.Duration), "", ink{})
		if isSearch && columnsOfSpans(line)+2+minFound > style.width() {
			return []string{style.row(line...), style.folded(result)}
		}
		return []string{style.row(style.callLine(mark, sign, e.Invocation, Elapsed(e.Duration), result, ink{})...)}
	}
	reason := style.fit(display.Line(e.Result.Code)+": "+result, maxFailure)
	lines := [][]span{style.callLine(mark, sign, e.Invocation, Elapsed(e.Duration), "", ink{})}
	if columnsOfSpans(lines[0])+2+columns(reason) <= style.width() {
		lines[0] = append(lines[0], span{text: "  " + reason})
	} else {
		lines = append(lines, style.indented(4, reason, ink{})...)
	}
	if e.Cause != "" {
		lines = append(lines, style.indented(4, style.fit(display.Line(e.Cause), maxFailure), faintInk)...)
	}
	return style.rows(lines)
}

// minFound is how many columns the outcome of a search needs on the line of its call.
const minFound = 12

// maxFailure bounds how much of the reason of a failure is shown, in columns.
const maxFailure = 400

// indented returns wrapped text, indented by some columns.
func (s Style) indented(by int, text string, with ink) [][]span {
	lines := wrap([]span{{text: text, ink: with}}, s.width()-by)
	for i, line := range lines {
		lines[i] = append([]span{{text: strings.Repeat(" ", by)}}, line...)
	}
	return lines
}

// CallText returns a call as the name of the tool with its arguments in short, on one line
// of any length.
func CallText(call canister.Invocation) string {
	text := display.Line(call.Name)
	if arguments, _ := shortArguments(call.Arguments); arguments != "" {
		text += "(" + arguments + ")"
	}
	return text
}

// callLine returns a line that fits: the mark, the name and the time are always there, and
// the arguments and the last text share the rest.
func (s Style) callLine(mark string, sign ink, call canister.Invocation, took, last string, with ink) []span {
	room := s.width() - columns(mark) - columns(took) - 5
	name := s.fit(display.Line(call.Name), room)
	room -= columns(name)
	arguments, first := shortArguments(call.Arguments)
	if room < 8 && columns(arguments)+2 > room {
		arguments = ""
	}
	if arguments != "" {
		need := 0
		if last != "" && room >= 20 {
			need = min(columns(last)+2, room/2)
		}
		arguments = "(" + s.fitArguments(arguments, first, max(room-need-2, 0)) + ")"
		if arguments == "()" {
			arguments = ""
		}
	}
	room -= columns(arguments) + 2
	if room < 4 {
		last = ""
	}
	spans := []span{
		{text: "  "}, {text: mark, ink: sign}, {text: " "},
		{text: name, ink: s.nameInk()}, {text: arguments, ink: faintInk},
		{text: "  " + took, ink: faintInk},
	}
	if last != "" {
		spans = append(spans, span{text: "  "}, span{text: s.fit(last, room), ink: with})
	}
	return spans
}

// fitArguments returns arguments cut to room columns. The end of a path that is too long is
// shown, and the beginning of everything else, such as a program.
func (s Style) fitArguments(all, first string, room int) string {
	more := s.symbols().more
	if columns(first) > room && strings.Contains(first, "/") && !strings.ContainsAny(first, "()\"") && room > 2*columns(more) {
		return more + lastColumns(first, room-columns(more))
	}
	return s.fit(all, room)
}

// shortArguments returns arguments on one line, what the call acts on first, and the first
// of them.
func shortArguments(arguments string) (all, first string) {
	parts := argumentList(arguments)
	if len(parts) == 0 {
		return "", ""
	}
	return strings.Join(parts, ", "), parts[0]
}

func argumentList(arguments string) []string {
	all, ok := members(json.RawMessage(arguments))
	if !ok {
		return []string{display.Line(arguments)}
	}
	first, rest := byTarget(all)
	var parts []string
	for i, m := range slices.Concat(first, rest) {
		value := compact(m.value)
		if text, ok := stringOf(m.value); ok {
			value = display.Line(text)
		}
		if i > 0 || len(first) == 0 {
			value = display.Line(m.name) + ": " + value
		}
		parts = append(parts, value)
	}
	return parts
}

// CallDetails returns a call with all of its arguments and all of its result.
func CallDetails(style Style, e converse.InvocationCompleted) []string {
	v := values{style: style}
	v.lines = append(v.lines, []span{{text: style.fit(display.Line(e.Invocation.Name), style.width()), ink: style.nameInk()}})
	switch all, ok := members(json.RawMessage(e.Invocation.Arguments)); {
	case !ok:
		v.text("arguments", e.Invocation.Arguments, 2)
	case len(all) == 0:
		v.lines = append(v.lines, []span{{text: "  no arguments", ink: faintInk}})
	default:
		v.object(all, 2, 0)
	}
	head := "result after " + Elapsed(e.Duration)
	if e.Result.Failed() {
		head = display.Line(e.Result.Code) + " after " + Elapsed(e.Duration)
	}
	v.lines = append(v.lines, []span{{text: style.fit(head, style.width()), ink: faintInk}})
	rows := append(style.rows(v.lines), contentRows(style, e.Result.Content)...)
	if e.Cause != "" {
		rows = append(rows, style.rows(style.indented(2, display.Text(e.Cause), faintInk))...)
	}
	return rows
}

// contentRows returns the whole of contents: text as it is, patches in colours, structured
// content as a tree, and a description of the rest.
func contentRows(style Style, contents []canister.Content) []string {
	var rows []string
	for _, one := range contents {
		switch c := one.(type) {
		case canister.StructuredContent:
			rows = append(rows, structured(style, contents, c)...)
		default:
			text := display.Content(c)
			if isPatch(text) {
				rows = append(rows, patchRows(style, text)...)
				continue
			}
			rows = append(rows, style.rows(style.indented(2, strings.TrimSuffix(display.Text(text), "\n"), ink{}))...)
		}
	}
	return rows
}

// structured returns structured content, unless one of the texts is the same JSON.
func structured(style Style, contents []canister.Content, c canister.StructuredContent) []string {
	for _, other := range contents {
		if text, ok := other.(canister.TextContent); ok && json.Valid([]byte(text.Text)) && compact(json.RawMessage(text.Text)) == compact(c.JSON) {
			return nil
		}
	}
	v := values{style: style}
	if all, ok := members(c.JSON); ok && len(all) > 0 {
		v.object(all, 2, 0)
	} else {
		v.value("value", c.JSON, 2, 0)
	}
	return style.rows(v.lines)
}

// Progress returns a report of progress as one line; empty for the zero value.
func Progress(p invoker.Progress) string {
	text := display.Line(p.Message)
	switch {
	case p.Total > 0:
		text = fmt.Sprintf("%g/%g %s", p.Done, p.Total, text)
	case p.Done > 0:
		text = fmt.Sprintf("%g %s", p.Done, text)
	}
	return strings.TrimSpace(text)
}

// Elapsed returns how long something took, such as 0.12s, 3.4s or 1m10s.
func Elapsed(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%.2fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
