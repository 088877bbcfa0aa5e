// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"iter"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/terminal"
)

// Titled is a store whose conversations all have titles: the default is the first words
// of the user.
type Titled struct {
	history.Store
	Redact func(string) string // removes secrets from these words, before they are cut; may be nil
}

// Unwrap returns the store without default titles, for what only some stores have.
func (s Titled) Unwrap() history.Store { return s.Store }

// Info implements [history.Store].
func (s Titled) Info(ctx context.Context, id string) (history.Info, error) {
	info, err := s.Store.Info(ctx, id)
	return s.Entitled(ctx, info), err
}

// List implements [history.Store].
func (s Titled) List(ctx context.Context, filter history.Filter) iter.Seq2[history.Info, error] {
	return func(yield func(history.Info, error) bool) {
		for info, err := range s.Store.List(ctx, filter) {
			if !yield(s.Entitled(ctx, info), err) {
				return
			}
		}
	}
}

// Entitled gives a conversation its default title. A conversation that cannot be read has
// none, which is not reported as an error.
func (s Titled) Entitled(ctx context.Context, info history.Info) history.Info {
	if info.Title != "" || info.Length == 0 {
		return info
	}
	for c, err := range s.Read(ctx, info.ID, 0) {
		if err != nil {
			break
		}
		if user, ok := c.(canister.User); ok {
			if s.Redact != nil {
				user.Content = redact.Contents(user.Content, s.Redact)
			}
			if info.Title = TitleOf(user); info.Title != "" {
				break
			}
		}
	}
	return info
}

// maxTitle bounds a default title, in columns.
const maxTitle = 60

// TitleOf returns the beginning of a user's message; empty if the message is empty.
func TitleOf(said canister.User) string {
	title := terminal.Fit(display.Line(display.Contents(said.Content)), maxTitle)
	if cut, isCut := strings.CutSuffix(title, "…"); isCut {
		if at := strings.LastIndexByte(cut, ' '); at > 0 {
			return cut[:at] + "…"
		}
	}
	return title
}
