// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/transcript"
)

// HistoryLine renders a canister as one line.
func HistoryLine(paint Palette, held canister.Canister) string {
	kind := paint.Name(pad(string(held.Kind()), 10))
	switch h := held.(type) {
	case canister.User:
		return kind + "  " + shortly(h.Content)
	case canister.Assistant:
		return kind + "  " + shortly(h.Content)
	case canister.Supervisor:
		return kind + "  " + shortly(h.Content)
	case canister.Document:
		return kind + "  " + strings.TrimSpace(display.Line(h.Title)+" "+shortly(h.Content))
	case canister.Invocation:
		return kind + "  " + Fit(callText(h), 200)
	case canister.Result:
		return kind + "  " + Fit(resultText(h), 200)
	default:
		part := transcript.PartOf(transcript.Numbered{Canister: held}, time.Local)
		return kind + "  " + Fit(strings.TrimSpace(display.Line(part.About)+" "+display.Line(part.Text)), 200)
	}
}

func shortly(contents []canister.Content) string {
	return Fit(display.Line(display.Contents(contents)), 200)
}

// maxFailure bounds how much of a tool's failure text is shown, in columns.
const maxFailure = 400

// CauseText returns the cause of a failure, which is for the user and not for the model,
// on its own line.
func CauseText(cause string) string {
	if cause == "" {
		return ""
	}
	return "\n    " + Fit(display.Line(cause), maxFailure)
}

// callText formats a call as the model wrote it.
func callText(i canister.Invocation) string {
	arguments := display.Line(i.Arguments)
	if arguments == "{}" {
		arguments = ""
	}
	return display.Line(i.Name) + "(" + arguments + ")"
}

func resultText(r canister.Result) string {
	text := display.Line(display.Contents(r.Content))
	if r.Failed() {
		return display.Line(r.Code) + ": " + text
	}
	return text
}
