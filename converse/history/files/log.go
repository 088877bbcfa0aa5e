// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/renamelock"
)

// Read implements [history.Log]. It takes no lock: a concurrent append is visible once
// it is complete.
func (s *Store) Read(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
	return func(yield func(canister.Canister, error) bool) {
		if err := s.read(ctx, conversation, after, yield); err != nil {
			yield(nil, err)
		}
	}
}

func (s *Store) read(ctx context.Context, conversation string, after int, yield func(canister.Canister, error) bool) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	folder, err := s.folder(conversation)
	if err != nil {
		return err
	}
	file, err := os.Open(linesOf(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return failed("read", conversation, err)
	}
	defer file.Close()
	x, err := s.index(folder, file)
	if err != nil {
		return failed("read", conversation, err)
	}
	if after >= x.length {
		return nil
	}
	r := newReader(conversation, folder, file, &x, max(after, 0))
	defer r.lines.release()
	for index := max(after, 0); index < x.length; index++ {
		form, _, err := r.next()
		var c canister.Canister
		if err == nil {
			c, err = r.canister(form)
		}
		if err == nil {
			err = s.usable(ctx)
		}
		if err != nil {
			if damaged := new(history.CorruptError); errors.As(err, &damaged) {
				s.forget(folder) // the index may be from another file
			}
			return err
		}
		if !yield(c, nil) {
			return nil
		}
	}
	return nil
}

// reader reads the lines of a conversation sequentially.
type reader struct {
	conversation, folder string

	file  *os.File
	lines lines
	line  int // the last one read, from 1
	skip  int // canisters before the first one wanted
}

// newReader returns a reader before a canister. The caller must release its lines.
func newReader(conversation, folder string, file *os.File, x *index, at int) *reader {
	m, skip := x.last, 0
	if at < x.length-1 {
		m, skip = x.marks[at/stride], at%stride
	}
	return &reader{conversation: conversation, folder: folder, file: file, lines: newLines(file, m.offset, x.end), line: m.line - 1, skip: skip}
}

// next returns the JSON form in the next line, and the number of lines of its append
// that follow. The form is valid until the next call.
func (r *reader) next() (form []byte, more int, err error) {
	for {
		line, err := r.lines.next()
		if err == io.EOF {
			return nil, 0, r.corrupt(errors.New("the line is gone; was the file changed while it was read?"))
		}
		if err != nil {
			return nil, 0, failed("read", r.conversation, err)
		}
		r.line++
		if isBlank(line) {
			continue
		}
		if r.skip > 0 {
			r.skip--
			continue
		}
		if form, more, err = splitLine(line); err != nil {
			return nil, 0, r.corrupt(err)
		}
		return form, more, nil
	}
}

// canister decodes a form and adds its separately stored contents.
func (r *reader) canister(form []byte) (canister.Canister, error) {
	c, err := canister.Unmarshal(form)
	if err != nil {
		return nil, r.corrupt(err)
	}
	c, err = join(c, func(sum string, length int) ([]byte, error) { return readContent(r.folder, sum, length) })
	if err != nil && !renamelock.IsAt(r.file, linesOf(r.folder)) {
		return nil, fmt.Errorf("%w: %q was deleted during the read", history.ErrNotFound, r.conversation)
	}
	if err != nil {
		return nil, r.corrupt(err)
	}
	return c, nil
}

func (r *reader) corrupt(err error) error {
	return corrupt(r.conversation, linesOf(r.folder), r.line, err)
}

// Append implements [history.Log]. If the disk is full, or fails, the conversation is
// unchanged.
func (s *Store) Append(ctx context.Context, conversation string, expected int, canisters ...canister.Canister) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.running.Done()
	folder, err := s.folder(conversation)
	if err != nil {
		return err
	}
	batch, err := encode(conversation, canisters)
	if err != nil {
		return err
	}
	for {
		err = s.extend(ctx, conversation, folder, expected, batch)
		if !errors.Is(err, fs.ErrNotExist) {
			return failed("append", conversation, err)
		}
		if todo, err := history.CheckAppend(conversation, 0, expected, canisters, nil); !todo {
			return err
		}
		err = s.found(ctx, conversation, folder, batch)
		if !errors.Is(err, history.ErrExists) {
			return failed("append", conversation, err)
		}
	}
}

// batch is an encoded append.
type batch struct {
	canisters []canister.Canister
	lines     []byte
	sizes     []int             // of each line
	beside    map[string][]byte // contents by their hashes
}

func encode(conversation string, canisters []canister.Canister) (*batch, error) {
	forms, err := history.MarshalAll(conversation, canisters) // also validates separately stored contents
	if err != nil {
		return nil, err
	}
	b := &batch{canisters: canisters, beside: map[string][]byte{}}
	for i, c := range canisters {
		rest, beside, other := split(c)
		maps.Copy(b.beside, beside)
		if other {
			if forms[i], err = canister.Marshal(rest); err == nil && len(forms[i]) > canister.MaxLine { // a stored content is a little longer
				err = fmt.Errorf("the JSON form of canister %d has %d bytes, and may have %d", i, len(forms[i]), canister.MaxLine)
			}
			if err != nil {
				return nil, fmt.Errorf("files: conversation %q: %w", conversation, err)
			}
		}
		before := len(b.lines)
		b.lines = appendLine(b.lines, forms[i], len(canisters)-1-i)
		b.sizes = append(b.sizes, len(b.lines)-before)
	}
	return b, nil
}

// found creates a conversation with a first append.
func (s *Store) found(ctx context.Context, conversation, folder string, b *batch) error {
	now := s.clock()
	info := history.Info{ID: conversation, Created: now, Changed: now}
	return s.make(ctx, conversation, folder, info, func(fresh string, lines *os.File) error {
		if err := s.writeContents(fresh, b.beside); err != nil {
			return err
		}
		_, err := s.write(lines, b.lines, 0)
		s.step("lines")
		return err
	})
}

// extend appends to an existing conversation.
func (s *Store) extend(ctx context.Context, conversation, folder string, expected int, b *batch) error {
	l, err := s.lock(ctx, folder)
	if err != nil {
		return err
	}
	defer l.unlock()
	s.step("locked")
	x, err := s.index(folder, l.file)
	if err != nil {
		return fmt.Errorf("read the existing lines: %w", err)
	}
	todo, err := history.CheckAppend(conversation, x.length, expected, b.canisters, func(index int) (string, error) {
		r := newReader(conversation, folder, l.file, &x, index)
		defer r.lines.release()
		form, _, err := r.next()
		if err != nil {
			return "", err
		}
		c, err := canister.Unmarshal(form)
		if err != nil {
			return "", r.corrupt(err)
		}
		return c.Header().ID, nil
	})
	if err != nil {
		return err
	}
	if !todo { // their writer may have crashed before they were on the disk
		return errors.Join(s.sync(l.file), s.settle(folder))
	}
	if err := s.writeContents(folder, b.beside); err != nil {
		return fmt.Errorf("nothing was appended: %w", err)
	}
	if err := s.settle(folder); err != nil {
		return fmt.Errorf("nothing was appended: %w", err)
	}
	return s.put(l, &x, b)
}

// put writes the lines of an append after the existing ones.
func (s *Store) put(l *locked, x *index, b *batch) error {
	if x.file.Size() > x.end { // remains of an append that a crash interrupted
		if err := l.file.Truncate(x.end); err != nil {
			return fmt.Errorf("nothing was appended: removing an incomplete line failed: %w", err)
		}
		s.step("cut")
	}
	lines := b.lines
	if x.bare {
		lines = append([]byte{'\n'}, lines...)
	}
	_, err := s.write(l.file, lines, x.end)
	s.step("lines")
	if err == nil {
		s.stamp(l.file.Name(), s.clock())
		err = s.sync(l.file)
	}
	if err != nil {
		undone := l.file.Truncate(x.end)
		if undone == nil {
			undone = s.sync(l.file)
		}
		s.forget(l.folder)
		return errors.Join(fmt.Errorf("nothing was appended: %w", err), undone)
	}
	s.step("synced")
	if x.bare {
		s.forget(l.folder)
	} else {
		s.remember(l.folder, x.grown(b.lines, b.sizes))
	}
	return nil
}
