// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
)

// Choice selects the conversation of the store to continue; its zero value is a new one.
type Choice struct {
	ID   string
	Last bool // the one that was changed last
	Must bool // it must exist
}

// Find returns the stored information about the selected conversation, or only the ID of
// a new one.
func (l *Location) Find(ctx context.Context, store history.Store, want Choice) (history.Info, error) {
	switch {
	case want.Last:
		return l.latest(ctx, store)
	case want.ID == "":
		return history.Info{ID: NewID()}, nil
	}
	info, err := l.Known(ctx, store, want.ID)
	if errors.Is(err, history.ErrNotFound) && !want.Must {
		return history.Info{ID: want.ID}, nil
	}
	return info, err
}

// Known returns the stored information about a conversation that must exist.
func (l *Location) Known(ctx context.Context, store history.Store, id string) (history.Info, error) {
	if err := history.CheckID(id); err != nil {
		return history.Info{}, exit.Usagef("%w", err)
	}
	info, err := store.Info(ctx, id)
	if errors.Is(err, history.ErrNotFound) {
		return info, exit.Usagef("there is no conversation %s; %s prints all of them: %w", display.Word(id), l.CommandLine("history list"), history.ErrNotFound)
	}
	return info, err
}

// latest returns the conversation that was changed last, among conversations without an
// owner. Conversations of this command have no owner.
func (l *Location) latest(ctx context.Context, store history.Store) (history.Info, error) {
	for info, err := range store.List(ctx, history.Filter{}) {
		if err != nil || info.Owner == "" && !clientcalls.IsApproval(info) {
			return info, err
		}
	}
	return history.Info{}, exit.Usagef("there is no conversation to continue yet; start one with %s", l.CommandLine("chat"))
}

// NewID returns an ID that people can type: the date, and random letters that are
// unlikely to collide.
func NewID() string {
	return time.Now().Format("20060102") + "-" + strings.ToLower(rand.Text()[:8])
}
