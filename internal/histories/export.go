// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/bundle"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/readable"
	"github.com/consort-go/consort/internal/transcript"
	"github.com/consort-go/consort/internal/writefile"
)

// Export chooses the conversations to export, and how.
type Export struct {
	All    bool
	Tags   []string // with all of these tags
	Format string   // jsonl, markdown or html
	To     string   // a file; empty means standard output
	Force  bool     // replaces the file if it exists
	Full   bool     // for people: also intents, waits and answers
}

// Lines is the format that history import reads; package readable has the others.
const Lines = "jsonl"

var errNoMatch = exit.Usagef("no conversation matches")

// chooses reports whether e selects the conversations, and not their IDs.
func (e Export) chooses() bool { return e.All || len(e.Tags) > 0 }

// Export writes the chosen conversations, which are those with the given IDs unless e
// chooses others. If e chooses, one that is deleted before its turn does not match any longer.
func (m *Manager) Export(ctx context.Context, e Export, ids []string) error {
	if !slices.Contains([]string{Lines, string(readable.Markdown), string(readable.HTML)}, e.Format) {
		return exit.Usagef("--format %s: expected jsonl, markdown or html", e.Format)
	}
	if info, err := os.Lstat(e.To); err == nil && info.Mode().IsRegular() && !e.Force {
		return exit.Usagef("%s exists already; to replace it, add --force, or name another file with --output FILE", e.To)
	}
	ids, unread := m.chosen(ctx, e, ids)
	if len(ids) == 0 {
		return cmp.Or(unread, errNoMatch)
	}
	deleted, err := m.write(ctx, e, ids)
	switch {
	case e.chooses() && len(deleted) == len(ids):
		return cmp.Or(unread, errNoMatch)
	case !e.chooses() && len(deleted) < len(ids):
		for _, missing := range deleted {
			unread = errors.Join(unread, fmt.Errorf("a conversation is omitted: %w", missing))
		}
	}
	return errors.Join(err, unread)
}

// write writes the given conversations, which must be readable. It returns the same as [Write].
func (m *Manager) write(ctx context.Context, e Export, ids []string) (deleted []error, err error) {
	options := readable.Options{Zone: m.zone, Full: e.Full, Redact: m.redact}
	if e.To == "" {
		put := m.to.Screen.PrintSafe
		if e.Format == Lines {
			put = m.to.Screen.PrintJSON
		}
		return Write(ctx, writer(func(text string) error { put(text); return m.to.Screen.Err() }), m.raw, e.Format, options, ids...)
	}
	var failed error
	_, err = writefile.Replace(e.To, &writefile.Options{Temporary: ".export-*", Sync: true}, func(file *os.File) error {
		buffered := bufio.NewWriter(file)
		deleted, failed = Write(ctx, writer(func(text string) error {
			_, err := buffered.WriteString(m.redact(text))
			return err
		}), m.raw, e.Format, options, ids...)
		return errors.Join(failed, buffered.Flush())
	})
	if err != nil && failed == nil {
		err = exit.Usagef("--output: %w", err)
	}
	return deleted, err
}

// Write writes conversations in a format: [Lines], or one of package readable. Only the latter
// has default titles: history import would store them. It omits conversations that do not exist, and
// returns an error about each, unless none of them exists: then Write fails.
func Write(ctx context.Context, w io.Writer, store history.Store, format string, options readable.Options, ids ...string) (missing []error, err error) {
	options.Missing = func(err error) { missing = append(missing, err) }
	if format == Lines {
		err = writeLines(ctx, w, store, options.Missing, ids)
	} else {
		err = readable.Export(ctx, w, Titled{Store: store}, readable.Format(format), options, ids...)
	}
	if err == nil && len(missing) == len(ids) {
		err = errors.Join(missing...)
	}
	return missing, err
}

// writeLines writes conversations as [Lines], and calls missing for each that does not exist.
func writeLines(ctx context.Context, w io.Writer, store history.Store, missing func(error), ids []string) error {
	for _, id := range ids {
		begun := false
		err := bundle.Export(ctx, writer(func(text string) error {
			begun = true
			_, err := io.WriteString(w, text)
			return err
		}), store, id)
		if !begun && errors.Is(err, history.ErrNotFound) {
			missing(err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// chosen returns the IDs of the conversations to export. The error reports the
// conversations that cannot be read, which are not in the list.
func (m *Manager) chosen(ctx context.Context, e Export, ids []string) (readable []string, unread error) {
	if e.chooses() == (len(ids) > 0) {
		return nil, exit.Usagef("name the conversations to export, or give --all or --tag TAG")
	}
	if e.chooses() {
		for info, err := range m.store.List(ctx, history.Filter{Tags: e.Tags}) {
			if unread = errors.Join(unread, err); err == nil {
				ids = append(ids, info.ID)
			}
		}
	}
	for _, id := range ids {
		info, err := m.at.Known(ctx, m.store, id)
		if errors.Is(err, history.ErrNotFound) && !e.chooses() {
			return nil, err
		}
		if err == nil {
			err = m.readThrough(ctx, info)
		}
		if err != nil && e.chooses() {
			if _, now := m.store.Info(ctx, id); errors.Is(now, history.ErrNotFound) {
				continue // deleted since the list
			}
		}
		if err != nil {
			unread = errors.Join(unread, fmt.Errorf("%s is omitted: %w", display.Word(id), err))
			continue
		}
		readable = append(readable, id)
	}
	return readable, unread
}

// readThrough reads a whole conversation to see whether it can be exported. Half a
// conversation would corrupt the output.
func (m *Manager) readThrough(ctx context.Context, info history.Info) error {
	for _, err := range transcript.Canisters(ctx, m.store, info) {
		if err != nil {
			return err
		}
	}
	return nil
}

// writer is a function that implements io.Writer.
type writer func(text string) error

func (w writer) Write(text []byte) (int, error) {
	if err := w(string(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}
