// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/filelock"
	"github.com/consort-go/consort/internal/foldername"
	"github.com/consort-go/consort/internal/renamelock"
)

// version is the version of the layout, stored in info.json.
const version = 1

// description is the content of info.json.
type description struct {
	V            int       `json:"v"`
	ID           string    `json:"id"`
	Title        string    `json:"title,omitempty"`
	Tags         []string  `json:"tags,omitempty"`
	Owner        string    `json:"owner,omitempty"`
	Created      time.Time `json:"created"`
	Parent       string    `json:"parent,omitempty"`
	ParentLength int       `json:"parent_length,omitempty"`
}

// readInfo returns the content of info.json, and the members that this version does not
// know. A missing file is an error only if the conversation is not known: it is empty in a
// list, and the name of the folder may be no ID.
func (s *Store) readInfo(folder, conversation string) (info history.Info, unknown map[string]json.RawMessage, err error) {
	path, isKnown := infoOf(folder), conversation != "" || foldername.IsPlain(filepath.Base(folder))
	conversation = cmp.Or(conversation, filepath.Base(folder)) // as far as is known here
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && isKnown {
		return history.Info{ID: conversation}, nil, nil // created manually, or removed because it was damaged
	}
	if err != nil {
		return history.Info{}, nil, err
	}
	var d description
	if err := checkInfo(text); err != nil {
		return history.Info{}, nil, corrupt(conversation, path, 0, err)
	}
	if err := json.Unmarshal(text, &struct{ V *int }{&d.V}); err == nil && d.V > version {
		return history.Info{}, nil, fmt.Errorf("files: %s: %w, in version %d; this one knows version %d", path, canister.ErrNewer, d.V, version)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		if isKnown {
			err = fmt.Errorf("%w; repair or remove the file: without it the conversation keeps all of its canisters, and its title, owner and tags are lost", err)
		}
		return history.Info{}, nil, corrupt(conversation, path, 0, err)
	}
	if err := json.Unmarshal(text, &unknown); err != nil { // for example null
		return history.Info{}, nil, corrupt(conversation, path, 0, err)
	}
	if history.CheckID(d.ID) != nil || foldername.Of(d.ID) != filepath.Base(folder) {
		return history.Info{}, nil, corrupt(conversation, path, 0, fmt.Errorf("the id %q does not belong to this folder", d.ID))
	}
	change := history.Change{Title: &d.Title, Tags: &d.Tags, Owner: &d.Owner}
	if info, err = change.Apply(history.Info{ID: d.ID, Created: d.Created, Parent: d.Parent, ParentLength: d.ParentLength}); err != nil {
		return history.Info{}, nil, corrupt(conversation, path, 0, err)
	}
	maps.DeleteFunc(unknown, func(name string, _ json.RawMessage) bool { return slices.Contains(known, name) })
	return info, unknown, nil
}

var known = []string{"v", "id", "title", "tags", "owner", "created", "parent", "parent_length", "sum"}

// checkInfo verifies the sum of info.json, which is computed as for a line: white space
// is ignored, and a text without a sum is accepted as it is.
func checkInfo(text []byte) error {
	var compact bytes.Buffer
	if json.Compact(&compact, text) != nil {
		return nil // the decoder returns the error
	}
	if _, _, err := splitLine(compact.Bytes()); err != nil {
		return errors.New(`it has changed since it was written; if you edited it by hand, remove its member "sum"`)
	}
	return nil
}

// withSum adds the sum as the last member.
func withSum(text []byte) ([]byte, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, err
	}
	return fmt.Appendf(bytes.TrimSuffix(text, []byte("\n}")), ",\n  \"sum\": \"crc32c:%08x\"\n}", sumOf(compact.Bytes(), 0)), nil
}

// writeInfo writes info.json.
func (s *Store) writeInfo(folder string, info history.Info, unknown map[string]json.RawMessage) error {
	text, err := json.MarshalIndent(description{version, info.ID, info.Title, info.Tags, info.Owner, info.Created.UTC(), info.Parent, info.ParentLength}, "", "  ")
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		quoted, err := json.Marshal(name)
		if err != nil {
			return err
		}
		text = fmt.Appendf(bytes.TrimSuffix(text, []byte("\n}")), ",\n  %s: %s\n}", quoted, unknown[name])
	}
	if text, err = withSum(text); err != nil {
		return err
	}
	return s.replace(infoOf(folder), append(text, '\n'), 0o600)
}

// count completes an info with the facts from the lines, or returns fs.ErrNotExist.
func (s *Store) count(info history.Info, folder string) (history.Info, error) {
	file, err := os.Open(linesOf(folder))
	if err != nil {
		return history.Info{}, err
	}
	defer file.Close()
	x, err := s.index(folder, file)
	if err != nil {
		return history.Info{}, err
	}
	info.Length = x.length
	if info = changed(info, x.file); x.length == 0 {
		return info, nil
	}
	r := newReader(info.ID, folder, file, &x, x.length-1)
	defer r.lines.release()
	form, _, err := r.next()
	if err != nil {
		return history.Info{}, err
	}
	c, err := canister.Unmarshal(form)
	if err != nil {
		return history.Info{}, r.corrupt(err)
	}
	info.Last = c.Kind()
	return info, nil
}

// changed sets Changed to the modification time of the file.
func changed(info history.Info, lines os.FileInfo) history.Info {
	info.Changed = lines.ModTime()
	if info.Created.IsZero() {
		info.Created = info.Changed
	}
	if info.Changed.Before(info.Created) { // the file system's clock is coarser
		info.Changed = info.Created
	}
	return info
}

// Info implements [history.Store].
func (s *Store) Info(ctx context.Context, conversation string) (history.Info, error) {
	if err := s.usable(ctx); err != nil {
		return history.Info{}, err
	}
	folder, err := s.folder(conversation)
	if err != nil {
		return history.Info{}, err
	}
	info, _, err := s.readInfo(folder, conversation)
	if err == nil {
		info, err = s.count(info, folder)
	}
	return info, failed("read", conversation, err)
}

// Describe implements [history.Store].
func (s *Store) Describe(ctx context.Context, conversation string, change history.Change) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.running.Done()
	folder, err := s.folder(conversation)
	if err != nil {
		return err
	}
	l, err := s.lock(ctx, folder)
	if err != nil {
		return failed("describe", conversation, err)
	}
	defer l.unlock()
	info, unknown, err := s.readInfo(folder, conversation)
	if err != nil {
		return failed("describe", conversation, err)
	}
	if info.Created.IsZero() {
		if info, err = s.count(info, folder); err != nil {
			return failed("describe", conversation, err)
		}
	}
	if info, err = change.Apply(info); err != nil {
		return err
	}
	return failed("describe", conversation, errors.Join(s.writeInfo(folder, info, unknown), s.syncFolder(folder)))
}

// List implements [history.Store].
func (s *Store) List(ctx context.Context, filter history.Filter) iter.Seq2[history.Info, error] {
	return func(yield func(history.Info, error) bool) {
		if err := s.usable(ctx); err != nil {
			yield(history.Info{}, err)
			return
		}
		infos, bad, err := s.all(filter.Since)
		if err != nil {
			yield(history.Info{}, err)
			return
		}
		listed := 0
		for _, info := range infos {
			if filter.Limit > 0 && listed == filter.Limit {
				break
			}
			full, passes, err := s.passes(ctx, info, filter)
			if unusable := s.usable(ctx); unusable != nil {
				yield(history.Info{}, unusable)
				return
			}
			if err != nil && !errors.Is(err, history.ErrNotFound) { // it may have been deleted just now
				bad = append(bad, unread{info, err})
			}
			if passes {
				listed++
				if !yield(full, nil) {
					return
				}
			}
		}
		for _, one := range bad {
			if !yield(one.info, one.err) {
				return
			}
		}
	}
}

// errNoInfo is permanent: a folder gets its name with the file in it.
var errNoInfo = errors.New("info.json is missing, and the conversation's ID cannot be told from the name of the folder; if you know the ID, write the file again with: consort history rename ID TITLE")

// unread is a conversation that cannot be read. Its info may have the name of the folder only.
type unread struct {
	info history.Info
	err  error
}

// clockTolerance is how much earlier than Created the modification time of the lines may be: the clocks of
// processes and of file servers differ by at most an hour, see engine.Skew, which this package must not import.
const clockTolerance = time.Hour

// all returns the conversations in the order of a list, with everything except the
// facts from their lines, and those whose info cannot be read. It does not read the info of most
// conversations that have not changed since a time.
func (s *Store) all(since time.Time) (infos []history.Info, bad []unread, err error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, nil, fmt.Errorf("files: list: %w", err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") || !entry.IsDir() && entry.Type()&fs.ModeSymlink == 0 {
			continue
		}
		folder := filepath.Join(s.dir, entry.Name())
		if entry.Type()&fs.ModeSymlink != 0 && leadsInto(s.dir, folder) {
			continue // another name of a conversation
		}
		lines, err := os.Stat(linesOf(folder))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err != nil && !foldername.IsPossible(entry.Name()) {
			continue // not a conversation, such as the lost+found of a file system
		}
		if err == nil && lines.ModTime().Add(clockTolerance).Before(since) {
			continue
		}
		info, _, infoErr := s.readInfo(folder, "")
		if errors.Is(infoErr, fs.ErrNotExist) {
			if _, gone := os.Stat(linesOf(folder)); errors.Is(gone, fs.ErrNotExist) {
				continue // deleted just now
			}
			infoErr = corrupt(entry.Name(), infoOf(folder), 0, errNoInfo)
		}
		if err = errors.Join(err, infoErr); err != nil {
			bad = append(bad, unread{history.Info{ID: entry.Name()}, err})
			continue
		}
		infos = append(infos, changed(info, lines))
	}
	slices.SortFunc(infos, history.Info.Compare)
	return infos, bad, nil
}

// passes returns the complete info, and whether the conversation matches a filter.
func (s *Store) passes(ctx context.Context, info history.Info, filter history.Filter) (history.Info, bool, error) {
	quick := filter
	quick.Open = false
	if !quick.Match(info) {
		return info, false, nil
	}
	folder := filepath.Join(s.dir, foldername.Of(info.ID))
	info, err := s.count(info, folder)
	if err != nil || !filter.Match(info) {
		return info, false, failed("list", info.ID, err)
	}
	says, err := filter.MatchText(info.Title, s.Read(ctx, info.ID, 0))
	return info, says, err
}

// Fork implements [history.Store]. The contents are shared by hard links, or copied if
// the file system does not support them.
func (s *Store) Fork(ctx context.Context, conversation string, length int, to string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.running.Done()
	folder, err := s.folder(conversation)
	if err != nil {
		return err
	}
	target, err := s.folder(to)
	if err != nil {
		return err
	}
	return failed("fork", conversation, s.fork(ctx, conversation, folder, length, to, target))
}

func (s *Store) fork(ctx context.Context, conversation, folder string, length int, to, target string) error {
	info, _, err := s.readInfo(folder, conversation)
	if err != nil {
		return err
	}
	file, err := os.Open(linesOf(folder))
	if err != nil {
		return err
	}
	defer file.Close()
	x, err := s.index(folder, file)
	if err != nil {
		return err
	}
	if length < 0 || length > x.length {
		return fmt.Errorf("%w: %q cannot be forked after %d canisters, it has %d", history.ErrNotFound, conversation, length, x.length)
	}
	if _, err := os.Lstat(target); err == nil {
		return fmt.Errorf("%w: %q", history.ErrExists, to)
	}
	now := s.clock()
	info.ID, info.Parent, info.ParentLength, info.Created, info.Changed = to, conversation, length, now, now
	return s.make(ctx, to, target, info, func(fresh string, lines *os.File) error {
		r := newReader(conversation, folder, file, &x, 0)
		defer r.lines.release()
		return s.copy(ctx, r, length, fresh, lines)
	})
}

// copy writes the next canisters of a reader into a new folder.
func (s *Store) copy(ctx context.Context, r *reader, length int, fresh string, lines *os.File) error {
	var end int64
	var chunk []byte
	linked := map[string]bool{}
	for i := range length {
		form, _, err := r.next()
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if err := r.share(form, fresh, linked); err != nil {
			return err
		}
		chunk = appendLine(chunk, form, 0)
		if len(chunk) < 64<<10 && i < length-1 {
			continue
		}
		if _, err := s.write(lines, chunk, end); err != nil {
			return err
		}
		end, chunk = end+int64(len(chunk)), chunk[:0]
	}
	if len(linked) == 0 {
		return nil
	}
	return s.syncFolder(filepath.Join(fresh, "contents"))
}

// share gives a new folder the contents that a line refers to.
func (r *reader) share(form []byte, fresh string, linked map[string]bool) error {
	c, err := canister.Unmarshal(form)
	if err != nil {
		return r.corrupt(err)
	}
	for _, content := range canister.ContentOf(c) {
		s, err := storedIn(content)
		if err != nil {
			return r.corrupt(err)
		}
		if s == nil || s.SHA256 == "" || linked[s.SHA256] {
			continue
		}
		if err := os.Mkdir(filepath.Join(fresh, "contents"), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := link(filepath.Join(r.folder, "contents", s.SHA256), filepath.Join(fresh, "contents", s.SHA256)); err != nil {
			if errors.Is(err, fs.ErrNotExist) && renamelock.IsAt(r.file, linesOf(r.folder)) {
				return r.corrupt(err)
			}
			return err
		}
		linked[s.SHA256] = true
	}
	return nil
}

// link creates a hard link, or copies the file if that is impossible.
func link(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	if err == nil {
		err = target.Sync()
	}
	return errors.Join(err, target.Close())
}

// Delete implements [history.Store]. It renames the folder first, and then removes its
// contents. If the folder is a symbolic link, it removes the link, and the files of the
// conversation in the folder that the link leads to.
func (s *Store) Delete(ctx context.Context, conversation string, expected int) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.running.Done()
	folder, err := s.folder(conversation)
	if err != nil {
		return err
	}
	err = s.remove(ctx, conversation, folder, expected)
	if errors.Is(err, fs.ErrNotExist) { // a process may have crashed before it synced the folder
		if err = s.syncFolder(s.dir); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	return failed("delete", conversation, err)
}

func (s *Store) remove(ctx context.Context, conversation, folder string, expected int) error {
	l, err := s.lock(ctx, folder)
	if err != nil {
		return err
	}
	defer l.unlock()
	if expected >= 0 { // with AnyLength, unreadable conversations can be removed too
		x, err := s.index(folder, l.file)
		if err == nil {
			err = history.CheckDelete(conversation, x.length, expected)
		}
		if err != nil {
			return err
		}
	}
	guard, err := s.openGuard()
	if err != nil {
		return err
	}
	defer guard.Close()
	if err := filelock.Wait(ctx, guard, false); err != nil {
		return err
	}
	// The name inside is free: only this function creates such folders.
	old, err := os.MkdirTemp(s.dir, removing)
	if err != nil {
		return err
	}
	s.forget(folder)
	done, err := s.renames().Release(ctx, l.file)
	if err == nil {
		s.step("released")
		err = os.Rename(folder, filepath.Join(old, gone))
		done()
	}
	if err == nil {
		s.step("unnamed")
		err = s.syncFolder(s.dir)
	}
	return errors.Join(err, s.discard(old))
}

// gone is the name of a conversation's folder in one with the prefix [removing].
const gone = "gone"

// discard removes a folder with the prefix [removing], and all that is left of its conversation.
func (s *Store) discard(old string) error {
	if link, err := os.Readlink(filepath.Join(old, gone)); err == nil {
		if err := s.discardLinked(link); err != nil {
			return err // the link stays, so that Open tries again
		}
	}
	return os.RemoveAll(old)
}

// leadsInto reports whether a path, or the target of a link, is in a folder.
func leadsInto(dir, path string) bool {
	target, err := filepath.EvalSymlinks(path)
	dir, failed := filepath.EvalSymlinks(dir)
	return err == nil && failed == nil && filepath.Dir(target) == dir
}

// discardLinked removes the files of a conversation whose folder was a symbolic link, and the
// folder that the link led to unless it has other files. It removes nothing of another folder of
// this store.
func (s *Store) discardLinked(link string) error {
	if !filepath.IsAbs(link) {
		link = s.dir + string(filepath.Separator) + link // not cleaned: s.dir may be a link, too
	}
	target, err := filepath.EvalSymlinks(link)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if leadsInto(s.dir, target) {
		return nil
	}
	for _, name := range []string{linesOf(target), infoOf(target), filepath.Join(target, "contents")} {
		if err := os.RemoveAll(name); err != nil {
			return err
		}
	}
	_ = os.Remove(target)
	return s.syncFolder(filepath.Dir(target))
}
