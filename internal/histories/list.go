// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/internal/transcript"
)

// ConversationList is the JSON output of history list and history search.
type ConversationList struct {
	Conversations []transcript.About `json:"conversations"`
}

// ConversationShown is the JSON output of history show.
type ConversationShown struct {
	Conversation transcript.About  `json:"conversation"`
	Canisters    []json.RawMessage `json:"canisters"`
}

// List prints the conversations that a filter allows.
func (m *Manager) List(ctx context.Context, filter history.Filter) error {
	if filter.Limit < 0 {
		return exit.Usagef("--limit %d: expected a number of at least 0", filter.Limit)
	}
	var list []history.Info
	var unread error // a damaged conversation does not hide the others
	for info, err := range m.store.List(ctx, filter) {
		if err != nil {
			unread = errors.Join(unread, err)
			continue
		}
		list = append(list, info)
	}
	if unread != nil && len(list) == 0 {
		return unread
	}
	return errors.Join(m.showList(list), unread)
}

// showList prints a list as a JSON document, or for people.
func (m *Manager) showList(list []history.Info) error {
	form := ConversationList{[]transcript.About{}}
	paint := m.to.Screen.Results
	rows := [][]string{{"ID", "CHANGED", "CANISTERS", "TITLE"}}
	for _, info := range list {
		form.Conversations = append(form.Conversations, transcript.AboutOf(info))
		rows = append(rows, []string{display.Line(info.ID), info.Changed.Local().Format("2006-01-02 15:04"), strconv.Itoa(info.Length), about(info)})
	}
	switch {
	case m.to.JSON:
		return m.to.Screen.PrintDocument(form)
	case len(list) == 0:
		m.to.Screen.Note("%s", m.to.Screen.Notes.Faint("No conversation matches."))
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

// Show prints a conversation.
func (m *Manager) Show(ctx context.Context, id string) error {
	info, err := Known(ctx, m.store, id)
	if err != nil {
		return err
	}
	if m.to.JSON {
		return m.showJSON(ctx, info)
	}
	paint := m.to.Screen.Results
	m.to.Screen.Print(paint.Bold(display.Line(info.ID)+"  "+about(info)) + "\n" + paint.Faint(strings.Join(transcript.Facts(info), "\n")) + "\n")
	for c, err := range transcript.Canisters(ctx, m.store, info) {
		if err != nil {
			return err
		}
		part := transcript.PartOf(c)
		head := fmt.Sprintf("%s  %s", paint.Name(fmt.Sprintf("%d %s", part.Number, part.Heading())), paint.Faint(part.When()))
		m.to.Screen.Print("\n" + strings.TrimRight(head, " ") + "\n")
		if text := display.Text(part.Text); text != "" {
			m.to.Screen.Print(strings.TrimRight(text, "\n") + "\n")
		}
		if err := m.to.Screen.Err(); err != nil {
			return err
		}
	}
	return nil
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
