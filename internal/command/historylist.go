// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/bundle"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/shown"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/spf13/cobra"
)

// conversationList is the JSON output of history list and history search.
type conversationList struct {
	Conversations []bundle.About `json:"conversations"`
}

// conversationShown is the JSON output of history show.
type conversationShown struct {
	Conversation bundle.About      `json:"conversation"`
	Canisters    []json.RawMessage `json:"canisters"`
}

func (p *program) historyListCommand() *cobra.Command {
	var filter history.Filter
	cmd := p.withHistory(p.withJSON(&cobra.Command{
		Use:   "list",
		Short: "List conversations, the one that was changed last first",
		Args:  cobra.NoArgs,
		RunE:  p.onShelf(func(s *shelf, ctx context.Context, _ []string) error { return s.list(ctx, filter) }),
	}, "print one JSON document"))
	flags := cmd.Flags()
	flags.StringVar(&filter.Text, "text", "", "only those that have all of these `WORDS`, in their titles or in what was said")
	flags.StringArrayVar(&filter.Tags, "tag", nil, "only those that have the `TAG`; may be repeated")
	flags.BoolVar(&filter.Open, "open", false, "only those that do not end with an answer")
	flags.IntVar(&filter.Limit, "limit", 0, "at most `N` of them (default: all)")
	return cmd
}

func (p *program) historySearchCommand() *cobra.Command {
	var filter history.Filter
	cmd := p.withHistory(p.withJSON(&cobra.Command{
		Use:   "search WORDS",
		Short: "List the conversations in which all of the words were said",
		Args:  cobra.MinimumNArgs(1),
		RunE: p.onShelf(func(s *shelf, ctx context.Context, args []string) error {
			filter.Text = strings.Join(args, " ")
			return s.list(ctx, filter)
		}),
	}, "print one JSON document"))
	cmd.Flags().IntVar(&filter.Limit, "limit", 0, "at most `N` of them (default: all)")
	return cmd
}

func (s *shelf) list(ctx context.Context, filter history.Filter) error {
	if filter.Limit < 0 {
		return exit.Usagef("--limit %d: expected a number of at least 0", filter.Limit)
	}
	var list []history.Info
	var unread error // a damaged conversation does not hide the others
	for info, err := range s.store.List(ctx, filter) {
		if err != nil {
			unread = errors.Join(unread, err)
			continue
		}
		list = append(list, info)
	}
	if unread != nil && len(list) == 0 {
		return unread
	}
	return errors.Join(s.showList(list), unread)
}

// showList prints a list as a JSON document, or for people.
func (s *shelf) showList(list []history.Info) error {
	form := conversationList{[]bundle.About{}}
	paint := s.screen.Results
	rows := [][]string{{"ID", "CHANGED", "CANISTERS", "TITLE"}}
	for _, info := range list {
		form.Conversations = append(form.Conversations, bundle.AboutOf(info))
		rows = append(rows, []string{shown.Line(info.ID), info.Changed.Local().Format("2006-01-02 15:04"), strconv.Itoa(info.Length), about(info)})
	}
	switch {
	case s.json:
		return s.screen.PrintDocument(form)
	case len(list) == 0:
		s.screen.Note("%s", s.screen.Notes.Faint("There are no such conversations."))
		return nil
	}
	s.screen.Print(terminal.Table(rows, func(row, column int, cell string) string {
		switch {
		case row == 0:
			return paint.Faint(cell)
		case column == 0:
			return paint.Name(cell)
		}
		return cell
	}))
	return s.screen.Err()
}

// about returns the title of a conversation, its tags, and whether it is open.
func about(info history.Info) string {
	parts := []string{shown.Line(info.Title)}
	for _, tag := range info.Tags {
		parts = append(parts, "#"+shown.Line(tag))
	}
	if (history.Filter{Open: true}).Allows(info) {
		parts = append(parts, "(open)")
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

func (p *program) historyShowCommand() *cobra.Command {
	return p.withHistory(p.withJSON(&cobra.Command{
		Use:   "show ID",
		Short: "Print a conversation",
		Args:  cobra.ExactArgs(1),
		RunE:  p.onShelf(func(s *shelf, ctx context.Context, args []string) error { return s.show(ctx, args[0]) }),
	}, "print one JSON document"))
}

func (s *shelf) show(ctx context.Context, id string) error {
	info, err := known(ctx, s.store, id)
	if err != nil {
		return err
	}
	if s.json {
		return s.showJSON(ctx, info)
	}
	paint := s.screen.Results
	s.screen.Print(paint.Bold(shown.Line(info.ID)+"  "+about(info)) + "\n" + paint.Faint(strings.Join(bundle.Facts(info), "\n")) + "\n")
	for c, err := range bundle.Canisters(ctx, s.store, info) {
		if err != nil {
			return err
		}
		part := bundle.PartOf(c)
		head := fmt.Sprintf("%s  %s", paint.Name(fmt.Sprintf("%d %s", part.Place, part.Heading())), paint.Faint(part.When()))
		s.screen.Print("\n" + strings.TrimRight(head, " ") + "\n")
		if text := shown.Text(part.Text); text != "" {
			s.screen.Print(strings.TrimRight(text, "\n") + "\n")
		}
		if err := s.screen.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (s *shelf) showJSON(ctx context.Context, info history.Info) error {
	all := conversationShown{bundle.AboutOf(info), []json.RawMessage{}}
	for c, err := range bundle.Canisters(ctx, s.store, info) {
		if err != nil {
			return err
		}
		line, err := canister.Marshal(c.Canister)
		if err != nil {
			return err
		}
		all.Canisters = append(all.Canisters, line)
	}
	return s.screen.PrintDocument(all)
}
