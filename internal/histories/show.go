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
	info, err := m.at.Known(ctx, m.store, id)
	if err != nil {
		return err
	}
	if m.to.JSON {
		return m.showJSON(ctx, info)
	}
	paint := m.to.Screen.Results
	facts := transcript.Facts(info, m.zone)
	facts[0] += fmt.Sprintf(", %d canisters", info.Length)
	m.to.Screen.Print(paint.Bold(display.Text(info.ID)+"  "+about(info)) + "\n" + paint.Faint(strings.Join(facts, "\n")) + "\n")
	written := rendering{m: m, full: full}
	for e, err := range transcript.Entries(transcript.Canisters(ctx, m.store, info)) {
		if err != nil {
			return err
		}
		if text := written.entry(e); text != "" {
			m.to.Screen.Print("\n" + text)
		}
		if err := m.to.Screen.Err(); err != nil {
			return err
		}
	}
	if hidden := info.Length - written.canisters; hidden > 0 && !full {
		m.to.Screen.Hint(fmt.Sprintf("Intents, waits, answers and empty messages are not shown (%d here). --full shows them.", hidden))
	}
	return nil
}

// rendering writes the entries of a conversation as text, and counts their canisters.
type rendering struct {
	m         *Manager
	full      bool
	canisters int // that were written
}

// entry renders an entry; "" leaves it out.
func (r *rendering) entry(e transcript.Entry) string {
	isCall := e.Kind() == canister.KindInvocation
	isNote := !canister.Message(e.Canister)
	isEmpty := e.Kind() == canister.KindAssistant && len(canister.ContentOf(e.Canister)) == 0
	if (isNote || isEmpty) && !r.full {
		return ""
	}
	remarks := e.Decisions(r.m.zone)
	if took, known := e.Took(); known {
		remarks = append([]string{took.Round(10 * time.Millisecond).String()}, remarks...)
	}
	text := r.part(e.Numbered, remarks)
	if !isCall {
		return text
	}
	if changed := e.Changed(); changed != "" {
		text += "called with " + display.JSON([]byte(changed)) + "\n"
	}
	if r.full {
		for _, note := range e.Notes {
			text += r.part(note, nil)
		}
	}
	if folded := e.Folded(); folded != "" && !r.full {
		return text + r.foldedCall(e, folded)
	}
	for _, inner := range e.Calls {
		text += r.entry(inner)
	}
	if e.Result.Canister == nil {
		return text + "no result\n"
	}
	return text + r.part(e.Result, nil)
}

// foldedCall renders the outcome of a search or a program in short: the tools that were found, or
// the calls and the value of the program.
func (r *rendering) foldedCall(e transcript.Entry, folded string) string {
	line := r.m.to.Screen.Results.Faint(folded+" (--full shows all)") + "\n"
	if len(e.Calls) == 0 {
		return line
	}
	return line + r.part(e.Result, nil)
}

// part renders a canister: a heading with its number, and its text.
func (r *rendering) part(c transcript.Numbered, remarks []string) string {
	paint := r.m.to.Screen.Results
	r.canisters++
	part := transcript.PartOf(c, r.m.zone)
	head := paint.Name(fmt.Sprintf("%d %s", part.Number, part.Heading()))
	if more := strings.Join(append(remarks, part.When()), ", "); more != "" {
		head += "  " + paint.Faint(more)
	}
	said := part.Text
	switch part.Kind {
	case canister.KindUser, canister.KindAssistant, canister.KindSupervisor:
		said = r.m.to.Screen.Rendered(said)
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
