// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/transcript"
)

// ConversationShown is the JSON output of history show.
type ConversationShown struct {
	Conversation transcript.About  `json:"conversation"`
	Canisters    []json.RawMessage `json:"canisters"`
}

// Show prints a conversation: its messages, and its calls with their results. If full is set,
// it also prints intents, waits and answers, and messages without content. JSON always has
// all canisters.
func (m *Manager) Show(ctx context.Context, id string, full bool) error {
	info, err := Known(ctx, m.store, id)
	if err != nil {
		return err
	}
	if m.to.JSON {
		return m.showJSON(ctx, info)
	}
	paint := m.to.Screen.Results
	facts := transcript.Facts(info, m.zone)
	facts[0] += fmt.Sprintf(", %d canisters", info.Length)
	m.to.Screen.Print(paint.Bold(display.Line(info.ID)+"  "+about(info)) + "\n" + paint.Faint(strings.Join(facts, "\n")) + "\n")
	for e, err := range transcript.Entries(transcript.Canisters(ctx, m.store, info)) {
		if err != nil {
			return err
		}
		if text := m.entryText(e, full); text != "" {
			m.to.Screen.Print("\n" + text)
		}
		if err := m.to.Screen.Err(); err != nil {
			return err
		}
	}
	return nil
}

// entryText renders an entry; "" leaves it out.
func (m *Manager) entryText(e transcript.Entry, full bool) string {
	isCall := e.Kind() == canister.KindInvocation
	isNote := !canister.Message(e.Canister)
	isEmpty := e.Kind() == canister.KindAssistant && len(canister.ContentOf(e.Canister)) == 0
	if (isNote || isEmpty) && !full {
		return ""
	}
	remarks := e.Decisions(m.zone)
	if took, known := e.Took(); known {
		remarks = append([]string{took.Round(10 * time.Millisecond).String()}, remarks...)
	}
	text := m.partText(e.Numbered, remarks)
	if !isCall {
		return text
	}
	if changed := e.Changed(); changed != "" {
		text += "called with " + display.JSON([]byte(changed)) + "\n"
	}
	if full {
		for _, note := range e.Notes {
			text += m.partText(note, nil)
		}
	}
	if folded := e.Folded(); folded != "" && !full {
		return text + m.foldedText(e, folded)
	}
	for _, inner := range e.Calls {
		text += m.entryText(inner, full)
	}
	if e.Result.Canister == nil {
		return text + "no result\n"
	}
	return text + m.partText(e.Result, nil)
}

// foldedText renders the outcome of a search or a program in short: the tools that were found, or
// the calls and the value of the program.
func (m *Manager) foldedText(e transcript.Entry, folded string) string {
	line := m.to.Screen.Results.Faint(folded+" (--full shows all)") + "\n"
	if len(e.Calls) == 0 {
		return line
	}
	return line + m.partText(e.Result, nil)
}

// partText renders a canister: a heading with its number, and its text.
func (m *Manager) partText(c transcript.Numbered, remarks []string) string {
	paint := m.to.Screen.Results
	part := transcript.PartOf(c, m.zone)
	head := paint.Name(fmt.Sprintf("%d %s", part.Number, part.Heading()))
	if more := strings.Join(append(remarks, part.When()), ", "); more != "" {
		head += "  " + paint.Faint(more)
	}
	said := part.Text
	switch part.Kind {
	case canister.KindUser, canister.KindAssistant, canister.KindSupervisor:
		said = m.to.Screen.Rendered(said)
	default:
		said = display.Text(said)
	}
	if said = strings.TrimRight(said, "\n"); said != "" {
		said += "\n"
	}
	return head + "\n" + said
}

func (m *Manager) showJSON(ctx context.Context, info history.Info) error {
	all := ConversationShown{transcript.AboutOf(info), []json.RawMessage{}}
	for c, err := range transcript.Canisters(ctx, m.store, info) {
		if err != nil {
			return err
		}
		line, err := canister.Marshal(c.Canister)
		if err != nil {
			return err
		}
		all.Canisters = append(all.Canisters, line)
	}
	return m.to.Screen.PrintDocument(all)
}
