// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/internal/transcript"
)

// ConversationList is the JSON output of history list and history prune.
type ConversationList struct {
	Conversations []transcript.About `json:"conversations"`
}

// List prints the conversations that a filter allows.
func (m *Manager) List(ctx context.Context, filter history.Filter) error {
	list, unread := m.listed(ctx, filter)
	if unread != nil && len(list) == 0 {
		return unread
	}
	return errors.Join(m.showList(list), unread)
}

// listed returns the conversations that a filter allows. The error is about the ones that cannot
// be read, which do not hide the others.
func (m *Manager) listed(ctx context.Context, filter history.Filter) (list []history.Info, unread error) {
	if filter.Limit < 0 {
		return nil, exit.Usagef("--limit %d: expected a number of at least 0", filter.Limit)
	}
	return collect(m.store.List(ctx, filter))
}

// collect returns the conversations of a sequence, and its errors as one.
func collect(all iter.Seq2[history.Info, error]) (list []history.Info, failed error) {
	for info, err := range all {
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		list = append(list, info)
	}
	return list, failed
}

// Recent returns the conversations that changed last, at most most of them. The error names
// damaged ones.
func (m *Manager) Recent(ctx context.Context, most int) ([]history.Info, error) {
	return m.listed(ctx, history.Filter{Limit: most})
}

// showList prints a list as a JSON document, or for people.
func (m *Manager) showList(list []history.Info) error {
	form := ConversationList{[]transcript.About{}}
	paint := m.to.Screen.Results
	rows := [][]string{{"ID", "CHANGED", "CANISTERS", "TITLE"}}
	for _, info := range list {
		form.Conversations = append(form.Conversations, transcript.AboutOf(info))
		rows = append(rows, []string{display.Text(info.ID), info.Changed.In(m.zone).Format("2006-01-02 15:04"), strconv.Itoa(info.Length), about(info)})
	}
	switch {
	case m.to.JSON:
		return m.to.Screen.PrintDocument(form)
	case len(list) == 0:
		m.to.Screen.Hint("No conversation matches.")
		return nil
	}
	m.to.Screen.Print(terminal.Table(rows, func(row, column int, cell string) string {
		switch {
		case row == 0:
			return paint.Faint(cell)
		case column == 0:
			return paint.Name(cell)
		}
		return cell
	}))
	return m.to.Screen.Err()
}

// about returns the title of a conversation, its tags, and whether it is open.
func about(info history.Info) string {
	parts := []string{display.Line(info.Title)}
	for _, tag := range info.Tags {
		parts = append(parts, "#"+display.Line(tag))
	}
	if (history.Filter{Open: true}).Match(info) {
		parts = append(parts, "(open)")
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}
