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

// Store is a [Log] that people look after. All methods may be called
// concurrently, and heed their context as those of Log do.
type Store interface {
	Log
	// List yields the conversations that the filter lets pass, the one that was
	// changed last first, and among those of the same time by identity. One
	// that cannot be read is passed over; an error about it comes last.
	List(ctx context.Context, filter Filter) iter.Seq2[Info, error]
	// Info returns what is known of a conversation, or ErrNotFound.
	Info(ctx context.Context, conversation string) (Info, error)
	// Describe changes the title, the tags and the owner of a conversation, or
	// says ErrNotFound. Changed stays. What [Change.Apply] refuses is an error.
	Describe(ctx context.Context, conversation string, change Change) error
	// Fork makes a conversation to, which begins with the first length
	// canisters of another one, and shares what they hold. The cut may be
	// anywhere: a conversation takes up what is open. The title, the tags and
	// the owner go along. ErrNotFound, or ErrExists.
	Fork(ctx context.Context, conversation string, length int, to string) error
	// Delete removes a conversation that has length canisters, or any number of
	// them with [AnyLength], and whatever only it holds. With another number the
	// error is a [*ConflictError], and nothing is removed: of a delete and an
	// append that name the same length one is done, and the other is told. There
	// is no error if the conversation does not exist.
	Delete(ctx context.Context, conversation string, length int) error
	// Close ends the use of the store, after what is under way. The methods of
	// a closed store return ErrClosed; to close it again does nothing.
	Close() error
}

// AnyLength has [Store.Delete] remove a conversation however long it is, as every
// negative length does.
const AnyLength = -1

// Info is what a store knows of a conversation beside its canisters.
type Info struct {
	ID      string
	Title   string   // may be empty
	Tags    []string // sorted; no two are the same
	Owner   string   // whose it is, as the program knows people; may be empty
	Created time.Time
	Changed time.Time // when canisters were last appended
	Length  int       // canisters
	// Last is the kind of the last canister, empty if there is none. A
	// conversation whose last is not an Assistant has something left to do, or
	// was ended by a limit.
	Last canister.Kind
	// Parent and ParentLength say what the conversation was forked from; empty
	// and 0 if it was not.
	Parent       string
	ParentLength int
}

// Change says what Describe changes; nil leaves a thing as it is.
type Change struct {
	Title *string
	Tags  *[]string
	Owner *string
}

// Apply returns the info as the change makes it: with its tags in order, each
// once. A text that is not UTF-8, or has a NUL, and an owner of more than [MaxID]
// bytes are errors: not every store could keep it.
func (c Change) Apply(info Info) (Info, error) {
	if c.Title != nil {
		info.Title = *c.Title
	}
	if c.Tags != nil {
		info.Tags = slices.Clone(*c.Tags)
		slices.Sort(info.Tags)
		info.Tags = slices.Compact(info.Tags)
	}
	if c.Owner != nil {
		if info.Owner = *c.Owner; len(info.Owner) > MaxID {
			return Info{}, fmt.Errorf("history: conversation %q: its owner has %d bytes; it may have %d", info.ID, len(info.Owner), MaxID)
		}
	}
	for _, text := range append([]string{info.Title, info.Owner}, info.Tags...) {
		if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			return Info{}, fmt.Errorf("history: conversation %q: %q is not UTF-8 without NUL", info.ID, text)
		}
	}
	return info, nil
}

// Filter says which conversations to list. Its zero value lets all pass.
type Filter struct {
	// Text must stand in the title or in the texts of the conversation, see
	// [TextOf]: each of its words, in any order, any case and any canister.
	// Whether a part of a word is enough is the store's choice.
	Text string
	// Tags must all be there.
	Tags []string
	// Owner, if not empty, must be the same.
	Owner string
	// Open lets only those pass that have a last canister which is not an
	// Assistant.
	Open bool
	// Since and Until bound Changed, the first included; zero is no bound.
	Since, Until time.Time
	// Limit is how many are listed at most; 0 is all.
	Limit int
}
