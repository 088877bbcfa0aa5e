// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/spf13/cobra"
)

// conversationJSON is what is known of a conversation.
type conversationJSON struct {
	ID           string    `json:"id"`
	Title        string    `json:"title,omitempty"`
	Tags         []string  `json:"tags"`
	Owner        string    `json:"owner,omitempty"`
	Created      time.Time `json:"created"`
	Changed      time.Time `json:"changed"`
	Length       int       `json:"length"`
	Last         string    `json:"last,omitempty"`
	Parent       string    `json:"parent,omitempty"`
	ParentLength int       `json:"parent_length,omitempty"`
}

func newConversationJSON(i history.Info) conversationJSON {
	return conversationJSON{
		i.ID, i.Title, append([]string{}, i.Tags...), i.Owner, i.Created.UTC(), i.Changed.UTC(),
		i.Length, string(i.Last), i.Parent, i.ParentLength,
	}
}

// conversationList is what history list and history search print.
type conversationList struct {
	Conversations []conversationJSON `json:"conversations"`
}

// conversationShown is what history show prints.
type conversationShown struct {
	Conversation conversationJSON  `json:"conversation"`
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
		return usagef("--limit %d: expected a number of at least 0", filter.Limit)
	}
	list := conversationList{[]conversationJSON{}}
	paint := s.screen.results
	rows := [][]string{{"ID", "CHANGED", "CANISTERS", "TITLE"}}
	for info, err := range s.store.List(ctx, filter) {
		if err != nil {
			return err
		}
		list.Conversations = append(list.Conversations, newConversationJSON(info))
		rows = append(rows, []string{oneLine(info.ID), info.Changed.Local().Format("2006-01-02 15:04"), strconv.Itoa(info.Length), about(info)})
	}
	switch {
	case s.json:
		return s.document(list)
	case len(rows) == 1:
		s.screen.note("%s", s.screen.notes.faint("There are no such conversations."))
		return nil
	}
	s.screen.result(table(rows, func(row, column int, cell string) string {
		switch {
		case row == 0:
			return paint.faint(cell)
		case column == 0:
			return paint.name(cell)
		}
		return cell
	}))
	return s.screen.failure()
}

// about is the title of a conversation, its tags, and whether it is open.
func about(info history.Info) string {
	parts := []string{oneLine(info.Title)}
	for _, tag := range info.Tags {
		parts = append(parts, "#"+oneLine(tag))
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
	paint := s.screen.results
	s.screen.result(paint.bold(oneLine(info.ID)+"  "+about(info)) + "\n" + paint.faint(strings.Join(facts(info), "\n")) + "\n")
	return s.canisters(ctx, info, func(place int, c canister.Canister) error {
		part := newPart(place, c)
		head := fmt.Sprintf("%s  %s", paint.name(fmt.Sprintf("%d %s", place, part.heading())), paint.faint(part.time()))
		s.screen.result("\n" + strings.TrimRight(head, " ") + "\n")
		if text := printable(part.text); text != "" {
			s.screen.result(strings.TrimRight(text, "\n") + "\n")
		}
		return s.screen.failure()
	})
}

func (s *shelf) showJSON(ctx context.Context, info history.Info) error {
	shown := conversationShown{newConversationJSON(info), []json.RawMessage{}}
	err := s.canisters(ctx, info, func(_ int, c canister.Canister) error {
		line, err := canister.Marshal(c)
		shown.Canisters = append(shown.Canisters, line)
		return err
	})
	if err != nil {
		return err
	}
	return s.document(shown)
}
