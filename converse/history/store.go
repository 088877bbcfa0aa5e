// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/consort-go/consort/canister"
)

// Store is a [Log] with functions to manage its conversations. All methods may be
// called concurrently, and respect their context as the methods of Log do.
type Store interface {
	Log
	// List yields the conversations that match the filter, the most recently changed
	// first, and by ID if they changed at the same time. A conversation that
	// cannot be read is skipped; an error about it is yielded last, with its Info, which
	// has only the ID if nothing else can be read. Any other error is about the whole
	// list, and comes with a zero Info.
	List(ctx context.Context, filter Filter) iter.Seq2[Info, error]
	// Info returns the metadata of a conversation, or ErrNotFound.
	Info(ctx context.Context, conversation string) (Info, error)
	// Describe changes the title, the tags and the owner of a conversation, or returns
	// ErrNotFound. It does not update Changed. If [Change.Apply] refuses the change,
	// its error is returned.
	Describe(ctx context.Context, conversation string, change Change) error
	// Fork creates a conversation named to that begins with the first length canisters
	// of the given conversation and shares their contents. The cut may be anywhere: a
	// conversation resumes work that is unfinished. The title, the tags and the owner
	// are copied. The error is ErrNotFound or ErrExists.
	Fork(ctx context.Context, conversation string, length int, to string) error
	// Delete removes a conversation that has the expected number of canisters, or any
	// number if expected is [AnyLength], and all data that only it uses. If the length
	// differs the error is a [*ConflictError], and nothing is removed: if a delete and an append
	// expect the same length, one succeeds and the other gets the error. Deleting a
	// conversation that does not exist is not an error.
	Delete(ctx context.Context, conversation string, expected int) error
	// Close waits for running operations and closes the store. The methods of a closed
	// store return ErrClosed; closing it again does nothing.
	Close() error
}

// AnyLength tells [Store.Delete] to remove a conversation whatever its length. Every
// negative length does the same.
const AnyLength = -1

// Info is the metadata of a conversation.
type Info struct {
	ID      string
	Title   string   // may be empty
	Tags    []string // sorted; no two are the same
	Owner   string   // the user it belongs to, as the program names users; may be empty
	Created time.Time
	Changed time.Time // when canisters were last appended
	Length  int       // number of canisters
	// Last is the kind of the last canister, or empty if the conversation has none. If
	// it is not an Assistant, the conversation is unfinished or was ended by a limit.
	Last canister.Kind
	// Parent and ParentLength say where the conversation was forked from; they are
	// empty and 0 if it is not a fork.
	Parent       string
	ParentLength int
}

// Change lists the changes that Describe makes; a nil field leaves its value as it is.
type Change struct {
	Title *string
	Tags  *[]string
	Owner *string
	// Retag returns the new tags, given a copy of the current ones, so that concurrent changes of
	// other tags are kept. It is called after Tags is applied, maybe several times, and must
	// not use the store.
	Retag func(tags []string) []string
}

// Apply returns info with the changes applied and the tags sorted and deduplicated.
// Text that is not UTF-8 or contains a NUL, or an owner longer than [MaxID] bytes, is
// an error, because not every store could keep it.
func (c Change) Apply(info Info) (Info, error) {
	if c.Title != nil {
		info.Title = *c.Title
	}
	if c.Tags != nil {
		info.Tags = slices.Clone(*c.Tags)
	}
	if c.Retag != nil {
		info.Tags = slices.Clone(c.Retag(slices.Clone(info.Tags)))
	}
	if c.Tags != nil || c.Retag != nil {
		slices.Sort(info.Tags)
		info.Tags = slices.Compact(info.Tags)
	}
	if c.Owner != nil {
		if info.Owner = *c.Owner; len(info.Owner) > MaxID {
			return Info{}, fmt.Errorf("history: conversation %q: its owner has %d bytes; at most %d are allowed", info.ID, len(info.Owner), MaxID)
		}
	}
	for _, text := range append([]string{info.Title, info.Owner}, info.Tags...) {
		if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			return Info{}, fmt.Errorf("history: conversation %q: %q is not valid UTF-8, or has a NUL", info.ID, text)
		}
	}
	return info, nil
}

// Filter selects the conversations to list. Its zero value matches all.
type Filter struct {
	// Text must occur in the title or in the texts of the conversation, see [TextOf]:
	// each of its words, in any order, case and canister. Each store decides whether
	// part of a word is enough.
	Text string
	// Tags must all be set.
	Tags []string
	// Owner, if not empty, must be equal.
	Owner string
	// Open selects only conversations whose last canister exists and is not an
	// Assistant.
	Open bool
	// Since and Until bound Changed: Since is inclusive, Until is exclusive. Zero means
	// unbounded.
	Since, Until time.Time
	// Limit is the maximum number of conversations listed; 0 means all.
	Limit int
}
