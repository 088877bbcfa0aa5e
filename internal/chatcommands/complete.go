// SPDX-License-Identifier: Apache-2.0

package chatcommands

import (
	"context"
	"strconv"
	"strings"

	"github.com/consort-go/consort/converse/history"
)

// maxCandidates bounds the completions of an argument.
const maxCandidates = 100

// Candidates returns the values of a source that begin with a prefix, at most 100; none
// for [Files].
func (c *Chat) Candidates(ctx context.Context, source Source, prefix string) []string {
	var found []string
	add := func(candidate string) {
		if strings.HasPrefix(candidate, prefix) && len(found) < maxCandidates {
			found = append(found, candidate)
		}
	}
	switch source {
	case Conversations:
		if store := c.Session.Store(); store != nil {
			for info, err := range store.List(ctx, history.Filter{}) {
				if err != nil || len(found) == maxCandidates {
					break
				}
				if info.Owner == "" {
					add(info.ID)
				}
			}
		}
	case Entries:
		for n := range c.Session.Conversation().Length() {
			add(strconv.Itoa(n + 1))
		}
	case Models:
		for _, name := range c.configured() {
			add(name)
		}
	case Nothing, Files:
	}
	return found
}
