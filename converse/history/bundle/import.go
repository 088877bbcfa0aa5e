// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/forked"
	"github.com/consort-go/consort/internal/transcript"
)

// ImportOptions configure [Import]. Nil, and the zero value of each field, mean the
// default that the field documents.
type ImportOptions struct {
	// ID maps the ID of a conversation in the bundle to its ID in the
	// store; the default keeps it.
	ID func(was string) string
}

// Error reports that the input is not a bundle of lines, or is damaged.
type Error struct {
	Line int // from 1
	Err  error
}

// Error implements error. It names the line.
func (e *Error) Error() string { return fmt.Sprintf("bundle: line %d: %v", e.Line, e.Err) }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Import adds the conversations of a bundle of lines to a store, with their titles,
// tags and owners, and yields the Info of each one added. Created and Changed are the
// time of the import, and the parent of a fork is not kept: Parent is empty, or the ID of a
// conversation that is deleted at once.
//
// A conversation in the middle of a turn goes on in the store, with two exceptions: a fork
// that has no canister of its own yet, and a conversation that gets another ID. They are added
// as forks of a conversation that is deleted at once, so that an engine continues them only
// after a message. Its ID begins with "import-". If the process dies it may be left; an error
// after which it may be left has its ID.
//
// Each conversation is added as a whole or not at all. One that is truncated or is not
// a valid history ([sequence.Check]) is an [*Error], which ends the sequence. An error
// that has [history.ErrExists] in its chain says that the store already has a
// conversation of that ID, which is left as it is; the loop may continue with the
// next. Import holds one conversation in memory at a time. It skips conversations
// without canisters, for example a fork at 0, because no append creates one.
//
// The title, the tags and the owner are written after the canisters. If one of the two fails
// the conversation is deleted again, unless it has grown since, or another import of the same
// bundle may have added it; if the process dies in between, the conversation lacks them. If it
// is not deleted, the error says that it may be there.
func Import(ctx context.Context, store history.Store, r io.Reader, options *ImportOptions) iter.Seq2[history.Info, error] {
	id := func(was string) string { return was }
	if options != nil && options.ID != nil {
		id = options.ID
	}
	return func(yield func(history.Info, error) bool) {
		b := newReader(r)
		for {
			about, canisters, err := b.conversation()
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil && len(canisters) == 0 {
				continue
			}
			var info history.Info
			if err == nil {
				info, err = b.add(ctx, store, id(about.ID), about, canisters)
			}
			if !yield(info, err) || err != nil && !errors.Is(err, history.ErrExists) {
				return
			}
		}
	}
}

// reader reads a bundle of lines.
type reader struct {
	lines  *bufio.Scanner
	number int
	began  int // the line of the conversation's head; 0 before the first
}

func newReader(r io.Reader) *reader {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, canister.MaxLine+2)
	return &reader{lines: lines}
}

// next moves to the next line that is not blank. It returns io.EOF after the last one.
func (b *reader) next() error {
	for b.lines.Scan() {
		b.number++
		if len(bytes.TrimSpace(b.lines.Bytes())) > 0 {
			return nil
		}
	}
	switch err := b.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		b.number++
		return b.wrong(fmt.Errorf("the line is longer than %d bytes", canister.MaxLine))
	case err != nil:
		return fmt.Errorf("bundle: %w", err)
	}
	return io.EOF
}

func (b *reader) wrong(err error) error { return &Error{b.number, err} }

// conversation reads the next conversation. The error is io.EOF at the end.
func (b *reader) conversation() (transcript.About, []canister.Canister, error) {
	switch err := b.next(); {
	case errors.Is(err, io.EOF) && b.began == 0:
		return transcript.About{}, nil, &Error{1, errNone}
	case err != nil:
		return transcript.About{}, nil, err
	}
	var h head
	err := json.Unmarshal(b.lines.Bytes(), &h)
	switch {
	case h.Version > version:
		return transcript.About{}, nil, b.wrong(fmt.Errorf("the bundle has the format %d, but this program knows formats up to %d: %w", h.Version, version, canister.ErrNewer))
	case err != nil || h.Version < 1:
		return transcript.About{}, nil, b.wrong(errNone)
	}
	b.began = b.number
	canisters, err := b.canisters(h.Length)
	if err == nil {
		err = b.check(h.About, canisters)
	}
	return h.About, canisters, err
}

var errNone = errors.New("this line does not begin a conversation that was exported as JSON Lines")

// canisters reads up to count canisters.
func (b *reader) canisters(count int) ([]canister.Canister, error) {
	var canisters []canister.Canister
	for len(canisters) < count {
		if err := b.next(); errors.Is(err, io.EOF) {
			return canisters, nil
		} else if err != nil {
			return nil, err
		}
		c, err := canister.Unmarshal(b.lines.Bytes())
		if err != nil {
			return nil, b.wrong(fmt.Errorf("canister %d of the %d that line %d announces: %w", len(canisters)+1, count, b.began, err))
		}
		canisters = append(canisters, c)
	}
	return canisters, nil
}

// check validates the canisters against the conversation's head.
func (b *reader) check(about transcript.About, canisters []canister.Canister) error {
	wrong := func(err error) error { return &Error{b.began, err} }
	if len(canisters) != about.Length {
		return wrong(fmt.Errorf("the conversation has %d canisters, but this line says %d", len(canisters), about.Length))
	}
	for _, problem := range sequence.Check(canisters) {
		if problem.Rule != sequence.RuleOpen {
			return wrong(fmt.Errorf("the canisters are not a valid history: %v", problem))
		}
	}
	if _, err := change(about).Apply(history.Info{ID: about.ID}); err != nil {
		return wrong(err)
	}
	return nil
}

func change(about transcript.About) history.Change {
	return history.Change{Title: &about.Title, Tags: &about.Tags, Owner: &about.Owner}
}

// add creates a conversation, which must not exist.
func (b *reader) add(ctx context.Context, store history.Store, id string, about transcript.About, canisters []canister.Canister) (history.Info, error) {
	if err := history.CheckID(id); err != nil {
		return history.Info{}, &Error{b.began, err}
	}
	switch info, err := store.Info(ctx, id); {
	case err == nil:
		return info, fmt.Errorf("bundle: conversation %q: %w", id, history.ErrExists)
	case !errors.Is(err, history.ErrNotFound):
		return history.Info{}, err
	}
	if rests(id, about, canisters) {
		return addFork(ctx, store, id, about, canisters)
	}
	err := store.Append(ctx, id, 0, canisters...)
	if _, taken := errors.AsType[*history.ConflictError](err); taken { // by another writer, just now
		return history.Info{}, fmt.Errorf("bundle: conversation %q: %w", id, history.ErrExists)
	}
	if err == nil {
		err = store.Describe(ctx, id, change(about))
	}
	if err != nil {
		return history.Info{}, errors.Join(err, withdraw(ctx, store, id, about, canisters))
	}
	return store.Info(ctx, id)
}

// rests reports whether an engine must not continue a conversation by itself: it ends in the middle
// of a turn, and is a fork without canisters of its own, or a copy under another ID, whose calls
// would not carry the keys of the original's.
func rests(id string, about transcript.About, canisters []canister.Canister) bool {
	isOpen := history.Filter{Open: true}.Match(history.Info{Last: canisters[len(canisters)-1].Kind()})
	isUntouched := forked.IsUntouched(history.Info{Length: about.Length, Parent: about.Parent, ParentLength: about.ParentLength})
	return isOpen && (isUntouched || id != about.ID)
}

// addFork creates a conversation as a fork of a temporary one, which is deleted. That ends with an
// answer, so that no engine continues it if the process dies.
func addFork(ctx context.Context, store history.Store, id string, about transcript.About, canisters []canister.Canister) (history.Info, error) {
	temporary := forked.Imported + rand.Text()
	answer := canister.Assistant{
		Head: canister.Head{ID: rand.Text(), Time: time.Now()}, Finish: canister.FinishStop,
		Content: canister.Texts("An import of this conversation was interrupted. Delete this copy."),
	}
	ended := append(slices.Clip(canisters), answer)
	appended := store.Append(ctx, temporary, 0, ended...)
	err := appended
	if err == nil {
		err = store.Describe(ctx, temporary, change(about))
	}
	if err == nil {
		err = store.Fork(ctx, temporary, len(canisters), id)
	}
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTimeout)
	defer cancel()
	info, unread := store.Info(lasting, id)
	if unread == nil && info.Parent == temporary { // also if an error came after the fork
		err = nil
	}
	var left error
	if appended != nil { // it may take effect yet, and this one waits for it
		left = store.Append(lasting, temporary, 0, ended...)
	}
	if deleted := store.Delete(lasting, temporary, history.AnyLength); deleted != nil && !errors.Is(deleted, history.ErrNotFound) {
		left = deleted
	}
	if left != nil {
		err = errors.Join(err, fmt.Errorf("bundle: the temporary conversation %q may be in the store, delete it: %w", temporary, left))
	}
	switch {
	case err == nil:
		return info, unread
	case errors.Is(err, history.ErrExists):
		return info, fmt.Errorf("bundle: conversation %q: %w", id, err)
	}
	return history.Info{}, err
}

// withdrawTimeout bounds withdraw and the end of addFork, which the context of the caller does not end.
const withdrawTimeout = 10 * time.Second

// withdraw deletes a conversation that could not be added as a whole, because an append that
// failed may have taken effect, or may do so yet. The error says that the conversation may be
// there. One whose bundle has no title, tags and owner is left: it lacks nothing, and may be the
// work of another import.
func withdraw(ctx context.Context, store history.Store, id string, about transcript.About, canisters []canister.Canister) error {
	err := errOther
	if about.Title != "" || about.Owner != "" || len(about.Tags) > 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTimeout)
		defer cancel()
		err = remove(ctx, store, id, canisters)
	}
	if err == nil || errors.Is(err, history.ErrNotFound) {
		return nil
	}
	return fmt.Errorf("bundle: conversation %q may be in the store, perhaps without its title, tags and owner: %w", id, err)
}

// remove deletes a conversation if it has these canisters, and no others, and is not described.
// It appends them first: that waits for an append that is still under way, and does nothing if
// they are there.
func remove(ctx context.Context, store history.Store, id string, canisters []canister.Canister) error {
	err := store.Append(ctx, id, 0, canisters...)
	if _, other := errors.AsType[*history.ConflictError](err); other {
		return nil
	}
	if err != nil {
		return err
	}
	info, err := store.Info(ctx, id)
	if err != nil {
		return err
	}
	if info.Title != "" || info.Owner != "" || len(info.Tags) > 0 {
		return errOther
	}
	return store.Delete(ctx, id, len(canisters))
}

var errOther = errors.New("another import may have added it")
