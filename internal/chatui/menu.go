// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/consort-go/consort/internal/display"
)

// Completions are proposals for the end of a text.
type Completions struct {
	// Replace is the length of the end of the text that a proposal replaces, in bytes.
	Replace int
	Items   []Completion
}

// Completion is one proposal.
type Completion struct {
	Text  string
	About string // one line for the person; may be empty
}

// completionTime bounds how long proposals may take.
const completionTime = 5 * time.Second

// maxMenu bounds the rows with proposals.
const maxMenu = 8

// menu is the proposals that are shown.
type menu struct {
	Completions
	chosen int // -1 before the first choice
	length int // how many bytes of the input the next choice replaces
}

// completed holds the proposals for a text.
type completed struct {
	text  string
	found Completions
}

// tab asks for proposals, or chooses the next one.
func (m *model) tab(forth bool) tea.Cmd {
	if m.menu != nil && len(m.menu.Items) > 0 {
		if forth {
			m.menu.chosen++
		} else {
			m.menu.chosen = max(m.menu.chosen, 0) + len(m.menu.Items) - 1
		}
		m.menu.chosen %= len(m.menu.Items)
		m.menu.put(m.input, m.menu.Items[m.menu.chosen].Text)
		return nil
	}
	ask, text := m.options.Complete, m.input.before()
	if ask == nil || !forth {
		return nil
	}
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), completionTime)
		defer cancel()
		return completed{text, ask(ctx, text)}
	}
}

// put puts a proposal into the input.
func (n *menu) put(in *input, text string) {
	in.replaceBefore(n.length, display.Line(text))
	n.length = len(display.Line(text))
}

// complete shows proposals, unless the text has changed since. Their common
// beginning is put into the input.
func (m *model) complete(msg completed) {
	if m.question != nil || m.search != nil || m.input.before() != msg.text {
		return
	}
	items := msg.found.Items
	if len(items) == 0 {
		m.hint = "Nothing completes this."
		return
	}
	m.menu = &menu{Completions: msg.found, chosen: -1, length: msg.found.Replace}
	if common := commonStart(items); len(common) > m.menu.length || len(items) == 1 {
		m.menu.put(m.input, common)
	}
	if len(items) == 1 {
		// A folder is not complete; the URI of a resource is.
		if text := items[0].Text; !strings.HasSuffix(text, string(filepath.Separator)) || strings.HasPrefix(text, "@") {
			m.input.update(tea.PasteMsg{Content: " "})
		}
		m.menu = nil
	}
}

// commonStart returns the common beginning of all proposals.
func commonStart(items []Completion) string {
	common := []rune(items[0].Text)
	for _, item := range items[1:] {
		text := []rune(item.Text)
		for i := range common {
			if i >= len(text) || text[i] != common[i] {
				common = common[:i]
				break
			}
		}
	}
	return string(common)
}

// rows returns the rows with the proposals around the chosen one.
func (n *menu) rows(m *model) []string {
	if n == nil {
		return nil
	}
	items, most := n.Items, min(maxMenu, max(1, m.height/4))
	first := max(0, min(n.chosen-most/2, len(items)-most))
	var rows []string
	for i := first; i < min(first+most, len(items)); i++ {
		mark := "  "
		if i == n.chosen {
			mark = "▸ "
		}
		row := m.paint.Name(mark + display.Line(items[i].Text))
		if about := display.Line(items[i].About); about != "" {
			row += m.paint.Faint("  " + about)
		}
		rows = append(rows, fit("  "+row, m.columns()))
	}
	if more := len(items) - len(rows); more > 0 {
		rows = append(rows, m.paint.Faint(fmt.Sprintf("    … %d in all: Tab chooses the next", len(items))))
	}
	return rows
}
