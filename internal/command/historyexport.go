// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/bundle"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/writefile"
	"github.com/spf13/cobra"
)

// export holds the options of history export.
type export struct {
	all    bool
	tags   []string
	format string
	to     string
}

func (p *program) historyExportCommand() *cobra.Command {
	var e export
	cmd := p.withHistory(&cobra.Command{
		Use:     "export [ID]...",
		Short:   "Write conversations down, for another store or to read",
		Example: "  consort history export 20261121-k3f9ab2c --format html -o talk.html\n  consort history export --all -o talks.jsonl",
		RunE:    p.onShelf(func(s *shelf, ctx context.Context, args []string) error { return s.export(ctx, e, args) }),
	})
	flags := cmd.Flags()
	flags.BoolVar(&e.all, "all", false, "write all conversations")
	flags.StringArrayVar(&e.tags, "tag", nil, "write those that have the `TAG`; may be repeated")
	flags.StringVar(&e.format, "format", "jsonl", "write `FORMAT`: jsonl, which history import takes, or markdown or html, to read")
	flags.StringVarP(&e.to, "output", "o", "", "write to `FILE`, which may be a link or a device (default: standard output)")
	return cmd
}

func (s *shelf) export(ctx context.Context, e export, ids []string) error {
	format := bundle.Format(e.format)
	if format.Check() != nil {
		return exit.Usagef("--format %s: expected jsonl, markdown or html", e.format)
	}
	ids, unread := s.chosen(ctx, e, ids)
	if len(ids) == 0 {
		return unread
	}
	return errors.Join(s.write(ctx, e, ids), unread)
}

// write exports the given conversations, which must be readable.
func (s *shelf) write(ctx context.Context, e export, ids []string) error {
	format := bundle.Format(e.format)
	if e.to == "" {
		put := s.screen.PrintSafe
		if format == bundle.JSONL {
			put = s.screen.PrintJSON
		}
		return bundle.Export(ctx, writer(func(text string) error { put(text); return s.screen.Err() }), s.store, format, ids...)
	}
	var unread error
	_, err := writefile.Replace(e.to, &writefile.Options{Temporary: ".export-*"}, func(file *os.File) error {
		buffered := bufio.NewWriter(file)
		unread = bundle.Export(ctx, writer(func(text string) error {
			_, err := buffered.WriteString(s.clean(text))
			return err
		}), s.store, format, ids...)
		return errors.Join(unread, buffered.Flush())
	})
	if err != nil && unread == nil {
		return exit.Usagef("--output: %w", err)
	}
	return err
}

// chosen returns the IDs of the conversations to export. The error reports the
// conversations that cannot be read, which are not in the list. If the list is empty, the
// error is not nil.
func (s *shelf) chosen(ctx context.Context, e export, ids []string) (readable []string, unread error) {
	choosing := e.all || len(e.tags) > 0
	if choosing == (len(ids) > 0) {
		return nil, exit.Usagef("name the conversations to export, or say --all or --tag TAG")
	}
	if choosing {
		for info, err := range s.store.List(ctx, history.Filter{Tags: e.tags}) {
			if unread = errors.Join(unread, err); err == nil {
				ids = append(ids, info.ID)
			}
		}
		if len(ids) == 0 {
			return nil, cmp.Or(unread, exit.Usagef("there are no such conversations"))
		}
	}
	for _, id := range ids {
		info, err := known(ctx, s.store, id)
		if errors.Is(err, history.ErrNotFound) && !choosing {
			return nil, err
		}
		if err == nil {
			err = s.readThrough(ctx, info)
		}
		if err != nil {
			unread = errors.Join(unread, fmt.Errorf("%s is left out: %w", word(id), err))
			continue
		}
		readable = append(readable, id)
	}
	return readable, unread
}

// readThrough reads a whole conversation to see whether it can be exported. Half a
// conversation would corrupt the output.
func (s *shelf) readThrough(ctx context.Context, info history.Info) error {
	for _, err := range bundle.Canisters(ctx, s.store, info) {
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

func (p *program) historyImportCommand() *cobra.Command {
	var id string
	cmd := p.withHistory(&cobra.Command{
		Use:   "import FILE",
		Short: "Take up conversations that were exported as jsonl",
		Long: "Import takes up conversations with their titles, tags and owners, and prints their\n" +
			"identities. FILE is what history export has written; - is standard input. Those that\n" +
			"there are already stay as they are.",
		Args: cobra.ExactArgs(1),
		RunE: p.withShelf(true, func(s *shelf, ctx context.Context, args []string) error { return s.importFile(ctx, args[0], id) }),
	})
	cmd.Flags().StringVar(&id, "id", "", "the identity `NEW` of the conversation, if there is one (default: that of the file)")
	return cmd
}

func (s *shelf) importFile(ctx context.Context, path, id string) error {
	file := s.stdin
	if path != "-" {
		var err error
		if file, err = os.Open(path); err != nil {
			return exit.Usagef("%w", err)
		}
		defer file.Close()
	}
	var there error
	names := renaming{to: id}
	for info, err := range bundle.Import(ctx, s.store, file, &bundle.ImportOptions{ID: names.id}) {
		_, bad := errors.AsType[*bundle.Error](err)
		switch {
		case errors.Is(err, history.ErrExists):
			there = errors.Join(there, taken(err, info.ID))
			continue
		case bad && id != "" && names.seen > 1:
			return errors.Join(there, exit.Usagef("--id is for a file with one conversation, and %s has more: nothing behind the first was taken up. Import it without --id", path))
		case bad:
			return errors.Join(there, exit.Usagef("%s: %w", path, err))
		case err != nil:
			return errors.Join(there, err)
		}
		s.screen.PrintSafe(info.ID + "\n")
	}
	return errors.Join(there, s.screen.Err())
}

// renaming gives the only conversation of a file another ID, if one is set.
type renaming struct {
	to   string
	seen int // conversations so far
}

// id returns the new ID of a conversation. It is empty for a second one, which is then
// refused.
func (r *renaming) id(was string) string {
	r.seen++
	switch {
	case r.to == "":
		return was
	case r.seen == 1:
		return r.to
	}
	return ""
}
