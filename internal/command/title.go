// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"iter"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/shown"
)

// titled is a store whose conversations all have titles: one that nobody gave a
// title has the first words of its user.
type titled struct{ history.Store }

// Info implements [history.Store].
func (s titled) Info(ctx context.Context, id string) (history.Info, error) {
	info, err := s.Store.Info(ctx, id)
	return s.entitled(ctx, info), err
}

// List implements [history.Store].
func (s titled) List(ctx context.Context, filter history.Filter) iter.Seq2[history.Info, error] {
	return func(yield func(history.Info, error) bool) {
		for info, err := range s.Store.List(ctx, filter) {
			if !yield(s.entitled(ctx, info), err) {
				return
			}
		}
	}
}

// entitled gives a conversation a title. What cannot be read has none, which is
// not worth an error.
func (s titled) entitled(ctx context.Context, info history.Info) history.Info {
	if info.Title != "" || info.Length == 0 {
		return info
	}
	for c, err := range s.Read(ctx, info.ID, 0) {
		if err != nil {
			break
		}
		if user, ok := c.(canister.User); ok {
			if info.Title = titleOf(user); info.Title != "" {
				break
			}
		}
	}
	return info
}

// maxTitle bounds a title that nobody gave, in columns.
const maxTitle = 60

// titleOf is the beginning of what a user said; empty if that is nothing.
func titleOf(said canister.User) string {
	title := fit(shown.Line(shown.Contents(said.Content)), maxTitle)
	if cut, isCut := strings.CutSuffix(title, "…"); isCut {
		if at := strings.LastIndexByte(cut, ' '); at > 0 {
			return cut[:at] + "…"
		}
	}
	return title
}
