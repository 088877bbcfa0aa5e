// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/foldername"
)

// kept makes a store with a conversation of two appends, one canister and
// three, and returns the bytes of its lines and where the second begins.
func kept(t testing.TB, dir string) (text []byte, second int) {
	t.Helper()
	s := open(t, dir)
	if err := s.Append(t.Context(), "talk", 0, says("first", "the first")); err != nil {
		t.Fatal(err)
	}
	before := text0(t, dir)
	if err := s.Append(t.Context(), "talk", 1, three(0)...); err != nil {
		t.Fatal(err)
	}
	return text0(t, dir), len(before)
}

func text0(t testing.TB, dir string) []byte {
	t.Helper()
	text, err := os.ReadFile(linesOf(filepath.Join(dir, "talk")))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func put(t testing.TB, dir string, text []byte) {
	t.Helper()
	if err := os.WriteFile(linesOf(filepath.Join(dir, "talk")), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A crash leaves the second append cut off anywhere, or with zeros where its
// end should be. It counts for nothing until it is all there.
func TestTornAtEachByte(t *testing.T) {
	dir := t.TempDir()
	text, second := kept(t, dir)
	for cut := second; cut <= len(text); cut++ {
		want := "first"
		if cut >= len(text)-1 { // complete except for the newline
			want = "first c0 c1 c2"
		}
		for _, zeros := range []int{0, 4096} {
			if zeros > 0 && (cut%8 != 0 || cut == len(text)-1) {
				continue // enough of them; and zeros instead of the newline make a line that is not JSON
			}
			put(t, dir, append(slices.Clip(text[:cut]), make([]byte, zeros)...))
			s := open(t, dir)
			if got := ids(read(t, s, "talk")); got != want {
				t.Fatalf("cut off at %d of %d, with %d zeros, there is %q, want %q", cut, len(text), zeros, got, want)
			}
			if info, err := s.Info(t.Context(), "talk"); err != nil || info.Length != len(strings.Fields(want)) {
				t.Fatalf("cut off at %d the info is %+v, %v", cut, info, err)
			}
			if err := s.Append(t.Context(), "talk", 1, three(0)...); err != nil {
				t.Fatalf("cut off at %d: %v", cut, err)
			}
			if err := s.Append(t.Context(), "talk", 4, says("on", "on we go")); err != nil {
				t.Fatal(err)
			}
			if got := ids(read(t, open(t, dir), "talk")); got != "first c0 c1 c2 on" {
				t.Fatalf("cut off at %d, and repaired, there is %q", cut, got)
			}
			if !bytes.HasPrefix(text0(t, dir), text) {
				t.Fatalf("cut off at %d, and repaired, the file is\n%s", cut, text0(t, dir))
			}
		}
	}
}

// A crash leaves zeros up to the end of a page within the second append, where a disk had not
// written yet. It counts for nothing, unless something follows it: then it is damage, and so are
// zeros that end elsewhere.
func TestTornWithin(t *testing.T) {
	dir := t.TempDir()
	text, second := kept(t, dir)
	after := append(bytes.Clone(text), appendLine(nil, []byte(`{"kind":"user","id":"after","content":[{"type":"text","text":"x"}]}`), 0)...)
	for end := second + 2; end < len(text); end++ {
		before := append(bytes.Repeat([]byte(" "), pageSize-1-end), '\n') // a blank line, so that a page ends there
		for _, from := range []int{second, max(second, end-40), end - 2} {
			torn := func(before, whole []byte) []byte {
				torn := bytes.Clone(whole)
				clear(torn[from:end])
				return append(bytes.Clone(before), torn...)
			}
			for _, damaged := range [][]byte{torn(append([]byte(" "), before...), text), torn(before, after)} {
				put(t, dir, damaged)
				s := open(t, dir)
				if err := readError(t, s); !isCorrupt(err) {
					t.Fatalf("zeros from %d to %d of %d, not at the end of a page or before another append: %v", from, end, len(text), err)
				}
				if err := s.Append(t.Context(), "talk", 1, three(0)...); err == nil || !bytes.Equal(text0(t, dir), damaged) {
					t.Fatalf("zeros from %d to %d of %d are repaired: %v", from, end, len(text), err)
				}
			}
			left, _, _ := bytes.Cut(text[end:], []byte("\n"))
			put(t, dir, torn(before, text))
			s := open(t, dir)
			if len(left) <= len(`2"}`) && end < len(text)-len(`2"}`)-1 { // whether the line is the last of its append is lost
				if err := readError(t, s); !isCorrupt(err) {
					t.Fatalf("zeros from %d to %d of %d: %v", from, end, len(text), err)
				}
				continue
			}
			if got := ids(read(t, s, "talk")); got != "first" {
				t.Fatalf("with zeros from %d to %d of %d there is %q", from, end, len(text), got)
			}
			if err := s.Append(t.Context(), "talk", 1, three(0)...); err != nil {
				t.Fatalf("zeros from %d to %d of %d: %v", from, end, len(text), err)
			}
			if want := append(before, text...); !bytes.Equal(text0(t, dir), want) {
				t.Fatalf("zeros from %d to %d, and repaired, the file is\n%s", from, end, text0(t, dir))
			}
		}
	}
}

// A space of which a bit has changed is a zero, and not torn.
func TestSpaceFlipped(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for i := range 2 {
		if err := s.Append(t.Context(), "talk", i, says(fmt.Sprint("c", i), "a text")); err != nil {
			t.Fatal(err)
		}
	}
	text := text0(t, dir)
	text[bytes.LastIndexByte(text, ' ')] = 0
	put(t, dir, text)
	if err := readError(t, open(t, dir)); !isCorrupt(err) {
		t.Errorf("the last append is damaged: %v", err)
	}
}

// readError returns the error of reading the conversation.
func readError(t *testing.T, s *Store) (last error) {
	t.Helper()
	for _, err := range s.Read(t.Context(), "talk", 0) {
		last = err
	}
	return last
}

func isCorrupt(err error) bool {
	_, ok := errors.AsType[*history.CorruptError](err)
	return ok
}

// The rest of an interrupted append may be longer than the next one.
func TestTornAndShorter(t *testing.T) {
	dir := t.TempDir()
	text, _ := kept(t, dir)
	put(t, dir, append(text, (`{"kind":"user","id":"torn","content":[{"type":"text","text":"`+large+large)...))
	s := open(t, dir)
	if err := s.Append(t.Context(), "talk", 4, says("on", "on we go")); err != nil {
		t.Fatal(err)
	}
	if got := ids(read(t, s, "talk")); got != "first c0 c1 c2 on" {
		t.Errorf("there is %q", got)
	}
	if after := text0(t, dir); !bytes.HasPrefix(after, text) || bytes.Contains(after, []byte("long")) {
		t.Errorf("the file is %.300s", after)
	}
}

// A store that remembers where the lines are notices that the file is another.
func TestEditedWhileRemembered(t *testing.T) {
	dir := t.TempDir()
	text, _ := kept(t, dir)
	s := open(t, dir)
	want := ids(read(t, s, "talk"))
	longer := []byte(`{"kind":"document","id":"new","title":"` + strings.Repeat("x", 100) + `"}` + "\n")
	put(t, dir, append(longer, text...))
	if got := ids(read(t, s, "talk")); got != "new "+want {
		t.Errorf("there is %q", got)
	}
	put(t, dir, text)
	if got := ids(read(t, s, "talk")); got != want {
		t.Errorf("there is %q", got)
	}
}

// An append that has returned has synced its data, even if another writer wrote it; one
// that could not sync has changed nothing.
func TestSynced(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	dirty, syncs := map[string]bool{}, 0
	broken := errors.New("the disk is broken")
	var fail error
	s.write = func(file *os.File, data []byte, offset int64) (int, error) {
		dirty[file.Name()] = true
		return file.WriteAt(data, offset)
	}
	s.sync = func(file *os.File) error {
		if fail != nil {
			return fail
		}
		delete(dirty, file.Name())
		syncs++
		return file.Sync()
	}
	appends := func(length int, want error) {
		t.Helper()
		before := syncs
		if err := s.Append(t.Context(), "talk", length, three(length)...); !errors.Is(err, want) {
			t.Fatalf("Append at %d: %v, want %v", length, err, want)
		}
		if want == nil && (len(dirty) > 0 || syncs == before) {
			t.Errorf("Append at %d has returned after %d syncs, with %v not on the disk", length, syncs-before, dirty)
		}
	}
	appends(0, nil)
	appends(3, nil)
	appends(3, nil) // is there, and may not have been on the disk
	fail = broken
	appends(6, broken)
	fail = nil
	if got := ids(read(t, open(t, dir), "talk")); got != "c0 c1 c2 c3 c4 c5" {
		t.Errorf("after a sync that failed there is %q", got)
	}
	appends(6, nil)
}

// A conversation behind a symbolic link is listed and found like others. Delete removes the link
// and the conversation, and nothing else, also after a crash.
func TestConversationBehindLink(t *testing.T) {
	for _, relative := range []bool{false, true} {
		for _, crash := range []bool{false, true} {
			disk := t.TempDir()
			dir, target := filepath.Join(disk, "store"), filepath.Join(disk, "other", "talk")
			s := open(t, dir)
			if err := errors.Join(s.Append(t.Context(), "talk", 0, three(0)...), os.MkdirAll(target, 0o700), os.Remove(target),
				os.Rename(filepath.Join(dir, "talk"), target), os.WriteFile(filepath.Join(target, "other"), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			link := target
			if relative {
				link = "../other/talk"
			}
			if err := errors.Join(os.Symlink(link, filepath.Join(dir, "talk")), os.Symlink("nowhere", filepath.Join(dir, "lost")),
				os.Symlink(filepath.Join(target, "other"), filepath.Join(dir, "file")), s.Append(t.Context(), "talk", 3, three(3)...)); err != nil {
				t.Fatal(err)
			}
			conversations := 0
			for info, err := range s.List(t.Context(), history.Filter{Text: "short"}) {
				if err != nil || info.ID != "talk" || info.Length != 6 {
					t.Errorf("there is %+v, %v", info, err)
				}
				conversations++
			}
			if conversations != 1 {
				t.Errorf("%d conversations are listed", conversations)
			}
			if crash {
				if err := os.Mkdir(filepath.Join(dir, removing+"1"), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(filepath.Join(dir, "talk"), filepath.Join(dir, removing+"1", gone)); err != nil {
					t.Fatal(err)
				}
				s = open(t, dir)
			} else if err := s.Delete(t.Context(), "talk", 6); err != nil {
				t.Fatal(err)
			}
			if left, err := os.ReadDir(target); err != nil || len(left) != 1 || left[0].Name() != "other" {
				t.Errorf("there is left %v, %v", left, err)
			}
			if left, err := filepath.Glob(filepath.Join(dir, removing+"*")); err != nil || len(left) > 0 {
				t.Errorf("there is left %v, %v", left, err)
			}
			if err := s.Append(t.Context(), "talk", 0, three(0)...); err != nil {
				t.Error(err)
			}
		}
	}
}

// A link to a conversation of the same store is another name for it. Delete removes only the link.
func TestLinkWithinStore(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := errors.Join(s.Append(t.Context(), "talk", 0, three(0)...), os.Symlink("talk", filepath.Join(dir, "again"))); err != nil {
		t.Fatal(err)
	}
	for info, err := range s.List(t.Context(), history.Filter{}) {
		if err != nil || info.ID != "talk" {
			t.Errorf("the list has %q, %v", info.ID, err)
		}
	}
	if err := s.Delete(t.Context(), "again", history.AnyLength); err != nil {
		t.Fatal(err)
	}
	if got := ids(read(t, s, "talk")); got != "c0 c1 c2" {
		t.Errorf("there is %q", got)
	}
	if _, err := os.Lstat(filepath.Join(dir, "again")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the link is there: %v", err)
	}
}

// A process may have crashed between the removal of a name and its sync. Deleting again syncs it.
func TestDeleteAgainSyncs(t *testing.T) {
	s := open(t, t.TempDir())
	broken := errors.New("the disk is broken")
	s.sync = func(*os.File) error { return broken }
	if err := s.Delete(t.Context(), "talk", history.AnyLength); !errors.Is(err, broken) {
		t.Errorf("Delete: %v", err)
	}
	s.sync = (*os.File).Sync
	if err := s.Delete(t.Context(), "talk", history.AnyLength); err != nil {
		t.Errorf("Delete: %v", err)
	}
}

// Some file systems cannot sync folders: that is not an error. Other errors are.
func TestFoldersThatCannotSync(t *testing.T) {
	for fail, want := range map[error]error{syscall.EINVAL: nil, syscall.EIO: syscall.EIO} {
		s := open(t, t.TempDir())
		s.sync = func(file *os.File) error {
			if info, err := file.Stat(); err != nil || info.IsDir() {
				return errors.Join(err, &os.PathError{Op: "sync", Path: file.Name(), Err: fail})
			}
			return file.Sync()
		}
		if err := s.Append(t.Context(), "talk", 0, three(0)...); !errors.Is(err, want) {
			t.Errorf("Append with %v: %v, want %v", fail, err, want)
		}
		if want != nil {
			continue
		}
		if err := errors.Join(s.Fork(t.Context(), "talk", 2, "fork"), s.Delete(t.Context(), "talk", history.AnyLength), spends(t, s, "r")); err != nil {
			t.Error(err)
		}
	}
}

// A writer that waits for a conversation that is deleted meanwhile does not write to
// deleted files.
func TestDeletedWhileWaiting(t *testing.T) {
	for range 20 {
		dir := t.TempDir()
		kept(t, dir)
		here, there := open(t, dir), open(t, dir)
		if err := there.Append(t.Context(), "talk", 4, says("before", "before")); err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(dir, "talk")
		held, err := here.lock(t.Context(), folder)
		if err != nil {
			t.Fatal(err)
		}
		waited := make(chan error)
		go func() { waited <- there.Append(t.Context(), "talk", 5, says("on", "on we go")) }()
		for waiting := false; !waiting; runtime.Gosched() {
			there.mu.Lock()
			waiting = len(there.gates) > 0
			there.mu.Unlock()
		}
		if err := os.Rename(folder, filepath.Join(t.TempDir(), "gone")); err != nil {
			t.Fatal(err)
		}
		held.unlock()
		var conflict *history.ConflictError
		if err := <-waited; !errors.As(err, &conflict) || conflict.Length != 0 {
			t.Fatalf("Append: %v", err)
		}
	}
}

// A bit that is another makes an error, or no difference, or an append at the
// end that is not whole; never another text.
func TestEachBitFlipped(t *testing.T) {
	dir := t.TempDir()
	text, _ := kept(t, dir)
	want := read(t, open(t, dir), "talk")
	errs := 0
	for at := range text {
		for bit := range 8 {
			flipped := bytes.Clone(text)
			flipped[at] ^= 1 << bit
			put(t, dir, flipped)
			var got []canister.Canister
			var failed error
			for c, err := range open(t, dir).Read(t.Context(), "talk", 0) {
				if failed = err; err == nil {
					got = append(got, c)
				}
			}
			if failed == nil && len(got) != len(want) {
				t.Fatalf("bit %d of byte %d: there are %d canisters, and no error: %s", bit, at, len(got), flipped)
			}
			var corrupt *history.CorruptError
			if failed != nil && (!errors.As(failed, &corrupt) || !strings.Contains(corrupt.Location, "history.jsonl: line ") ||
				corrupt.Conversation != "talk") {
				t.Fatalf("bit %d of byte %d: %v", bit, at, failed)
			}
			if failed != nil {
				errs++
			}
			for i, c := range got {
				is, _ := canister.Marshal(c)
				was, _ := canister.Marshal(want[i])
				if !bytes.Equal(is, was) {
					t.Fatalf("bit %d of byte %d: canister %d is %s", bit, at, i, is)
				}
			}
		}
	}
	if errs < 8*len(text)*9/10 {
		t.Errorf("of %d flips only %d are errors", 8*len(text), errs)
	}
}

func TestContentDamaged(t *testing.T) {
	dir := t.TempDir()
	kept(t, dir)
	contents, err := filepath.Glob(filepath.Join(dir, "talk", "contents", "*"))
	if err != nil || len(contents) != 1 {
		t.Fatal(contents, err)
	}
	good, err := os.ReadFile(contents[0])
	if err != nil {
		t.Fatal(err)
	}
	damage := func(data []byte) {
		_ = os.Remove(contents[0])
		if data != nil {
			if err := os.WriteFile(contents[0], data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	for _, data := range [][]byte{flipped, good[:100], {}, nil} {
		damage(data)
		count := 0
		var failed error
		for _, failed = range open(t, dir).Read(t.Context(), "talk", 0) {
			count++
		}
		var corrupt *history.CorruptError
		if count != 3 || !errors.As(failed, &corrupt) || !strings.HasSuffix(corrupt.Location, "history.jsonl: line 3") ||
			!strings.Contains(failed.Error(), filepath.Base(contents[0])) {
			t.Errorf("with %d bytes of it: %d, %v", len(data), count, failed)
		}
	}
	// The same content, appended again, heals it.
	if err := open(t, dir).Append(t.Context(), "talk", 4, says("again", large+"0")); err != nil {
		t.Fatal(err)
	}
	if got := ids(read(t, open(t, dir), "talk")); got != "first c0 c1 c2 again" {
		t.Errorf("there is %q", got)
	}
}

func TestNewer(t *testing.T) {
	for name, make := range map[string]func(dir string) error{
		"line": func(dir string) error {
			return os.WriteFile(linesOf(dir), []byte(`{"kind":"user","v":4,"id":"x"}`+"\n"), 0o600)
		},
		"layout": func(dir string) error {
			return os.WriteFile(infoOf(dir), []byte(`{"v":2,"id":{"now":"an object"}}`), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			kept(t, dir)
			s := open(t, dir)
			if err := s.Append(t.Context(), "other", 0, says("x", "fine")); err != nil {
				t.Fatal(err)
			}
			if err := make(filepath.Join(dir, "talk")); err != nil {
				t.Fatal(err)
			}
			var corrupt *history.CorruptError
			if _, err := s.Info(t.Context(), "talk"); !errors.Is(err, canister.ErrNewer) || errors.As(err, &corrupt) {
				t.Errorf("Info: %v", err)
			}
			var got []string
			var failed error
			for info, err := range s.List(t.Context(), history.Filter{}) {
				if failed = err; err == nil {
					got = append(got, info.ID)
				}
			}
			if !slices.Equal(got, []string{"other"}) || !errors.Is(failed, canister.ErrNewer) {
				t.Errorf("List: %q, %v", got, failed)
			}
		})
	}
}

// Each error of a list comes with what is known of its conversation. A list of another owner has only
// errors about conversations whose owner is not known.
func TestListNextToDamage(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	owner := "ada"
	for _, id := range []string{"fine", "no-info", "no-lines"} {
		if err := s.Append(t.Context(), id, 0, says("x", "fine")); err != nil {
			t.Fatal(err)
		}
		if err := s.Describe(t.Context(), id, history.Change{Owner: &owner}); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{infoOf(filepath.Join(dir, "no-info")), linesOf(filepath.Join(dir, "no-lines"))} {
		if err := os.WriteFile(path, []byte("{]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for owner, want := range map[string][]string{
		"":    {"fine of ada", "no-info of  damaged", "no-lines of ada damaged"},
		"ada": {"fine of ada", "no-info of  damaged", "no-lines of ada damaged"},
		"ben": {"no-info of  damaged"},
	} {
		var got []string
		for info, err := range s.List(t.Context(), history.Filter{Owner: owner}) {
			what := info.ID + " of " + info.Owner
			if err != nil {
				what += " damaged"
			}
			got = append(got, what)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("listed for %q are %q, want %q", owner, got, want)
		}
	}
}

// A list of what has changed since a time does not read the info of older conversations. The clock of the file
// system may be late, or that of the process that wrote them fast.
func TestListSinceReadsLittle(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	since := time.Now().Add(-time.Second)
	for id, age := range map[string]time.Duration{"old": 2 * time.Hour, "coarse": 3 * time.Second, "fast": 30 * time.Minute, "new": 0} {
		if err := s.Append(t.Context(), id, 0, says("x", "fine")); err != nil {
			t.Fatal(err)
		}
		if at := time.Now().Add(-age); age > 0 {
			if err := os.Chtimes(linesOf(filepath.Join(dir, id)), at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(infoOf(filepath.Join(dir, "old")), []byte("{]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		since  time.Time
		ids    []string
		isRead bool
	}{{since, []string{"coarse", "fast", "new"}, false}, {time.Time{}, []string{"coarse", "fast", "new"}, true}} {
		var ids []string
		var failed error
		for info, err := range s.List(t.Context(), history.Filter{Since: test.since}) {
			if failed = errors.Join(failed, err); err == nil {
				ids = append(ids, info.ID)
			}
		}
		if slices.Sort(ids); !slices.Equal(ids, test.ids) || (failed != nil) != test.isRead {
			t.Errorf("since %v: %q, %v", test.since, ids, failed)
		}
	}
}

// What people do to the files is taken as it stands, or is an error that says
// what to do.
func TestEditedByHand(t *testing.T) {
	dir := t.TempDir()
	kept(t, dir)
	s := open(t, dir)
	read(t, s, "talk") // remembers where the lines are
	lines := strings.SplitAfter(string(text0(t, dir)), "\n")
	edited := strings.Replace(lines[0], "the first", "the very first", 1)
	put(t, dir, []byte(edited+strings.Join(lines[1:], "")))
	for _, s := range []*Store{s, open(t, dir)} {
		for _, err := range s.Read(t.Context(), "talk", 0) {
			if err == nil || !strings.Contains(err.Error(), `remove its member "sum"`) {
				t.Errorf("with its sum: %v", err)
			}
		}
	}
	form, _, _ := strings.Cut(edited, `,"sum"`)
	put(t, dir, []byte("\n"+form+"} \r\n\n \n"+lines[1]+lines[2]+lines[3]+`{"kind":"user","id":"added","content":[{"type":"text","text":"by hand"}]}`))
	for _, s := range []*Store{s, open(t, dir)} {
		list := read(t, s, "talk")
		if ids(list) != "first c0 c1 c2 added" || history.TextOf(list[0]) != "the very first" {
			t.Errorf("there is %q", ids(list))
		}
	}
	if err := s.Append(t.Context(), "talk", 5, says("on", "on we go")); err != nil {
		t.Fatal(err)
	}
	if got := ids(read(t, s, "talk")); got != "first c0 c1 c2 added on" {
		t.Errorf("there is %q", got)
	}
}

func TestMadeByHand(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "talk"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	if err := s.Append(t.Context(), "talk", 0, says("x", "in the way")); err == nil {
		t.Error("a folder without lines is taken for nothing")
	}
	put(t, dir, []byte(`{"kind":"assistant","id":"a"}`+"\n"))
	info, err := s.Info(t.Context(), "talk")
	if err != nil || info.ID != "talk" || info.Length != 1 || info.Last != canister.KindAssistant || info.Created.IsZero() {
		t.Errorf("the info is %+v, %v", info, err)
	}
	title := "by hand"
	if err := s.Describe(t.Context(), "talk", history.Change{Title: &title}); err != nil {
		t.Error(err)
	}
	if again, err := s.Info(t.Context(), "talk"); err != nil || again.Title != title || !again.Created.Equal(info.Created) {
		t.Errorf("the info is %+v, %v", again, err)
	}
}

// A conversation without info.json is available under its ID. If this is not the name of its folder, a list has
// it once it is described.
func TestInfoRemoved(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer s.Close()
	if err := s.Append(t.Context(), "Talk", 0, three(1)...); err != nil {
		t.Fatal(err)
	}
	path := infoOf(filepath.Join(dir, foldername.Of("Talk")))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if info, err := s.Info(t.Context(), "Talk"); err != nil || info.ID != "Talk" || info.Length != 3 || info.Created.IsZero() {
		t.Errorf("%+v, %v", info, err)
	}
	if info, err := s.Info(t.Context(), "talk"); !errors.Is(err, history.ErrNotFound) {
		t.Errorf("another conversation: %+v, %v", info, err)
	}
	if err := s.Fork(t.Context(), "Talk", 2, "fork"); err != nil {
		t.Error(err)
	}
	for info, err := range s.List(t.Context(), history.Filter{}) {
		_, isPermanent := errors.AsType[*history.CorruptError](err) // no search is repeated for it
		if info.ID != "fork" && (!isPermanent || !strings.Contains(err.Error(), "consort history rename ID TITLE")) {
			t.Errorf("the list has %+v, %v", info, err)
		}
	}
	title := "again"
	if err := s.Describe(t.Context(), "Talk", history.Change{Title: &title}); err != nil {
		t.Fatal(err)
	}
	listed := 0
	for info, err := range s.List(t.Context(), history.Filter{}) {
		if err != nil || info.ID == "Talk" && info.Title != title {
			t.Errorf("the list has %+v, %v", info, err)
		}
		listed++
	}
	if listed != 2 {
		t.Errorf("the list has %d conversations, want 2", listed)
	}
}

// A folder that cannot be read is no error of a list if no conversation can have its name. Others are reported.
func TestListBesideAForeignFolder(t *testing.T) {
	for name, isReported := range map[string]bool{"lost+found": false, "Folder": false, "talk2": true, foldername.Of("Talk"): true} {
		dir := t.TempDir()
		s := open(t, dir)
		defer s.Close()
		if err := s.Append(t.Context(), "talk", 0, three(1)...); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(name, filepath.Join(dir, name)); err != nil { // it cannot be read, also by root
			t.Skip(err)
		}
		var ids []string
		var failed error
		for info, err := range s.List(t.Context(), history.Filter{}) {
			if err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			ids = append(ids, info.ID)
		}
		if !slices.Equal(ids, []string{"talk"}) || (failed != nil) != isReported {
			t.Errorf("beside %q the list is %q: %v", name, ids, failed)
		}
	}
}

// A link named info.json stays, and its target is written.
func TestInfoBehindLink(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer s.Close()
	if err := s.Append(t.Context(), "c", 0, three(1)...); err != nil {
		t.Fatal(err)
	}
	path, other := filepath.Join(dir, "c", "info.json"), filepath.Join(t.TempDir(), "info.json")
	if err := os.Rename(path, other); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, path); err != nil {
		t.Skip(err)
	}
	title := "behind a link"
	if err := s.Describe(t.Context(), "c", history.Change{Title: &title}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link has become %v, %v", info, err)
	}
	if text, err := os.ReadFile(other); err != nil || !bytes.Contains(text, []byte(title)) {
		t.Errorf("the link leads to %s, %v", text, err)
	}
}

func TestInfoDamaged(t *testing.T) {
	dir := t.TempDir()
	kept(t, dir)
	s := open(t, dir)
	path := infoOf(filepath.Join(dir, "talk"))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "{", `{"v":1,"id":"other"}`, `{"v":1,"id":""}`, `{"v":1,"id":"talk","title":7}`, "[]"} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		var corrupt *history.CorruptError
		if _, err := s.Info(t.Context(), "talk"); !errors.As(err, &corrupt) || corrupt.Location != path {
			t.Errorf("with %q Info is %v", bad, err)
		}
		if got := ids(read(t, s, "talk")); got != "first c0 c1 c2" { // the canisters need no info
			t.Errorf("with %q there is %q", bad, got)
		}
	}
	// Members of other programs are kept, and a text without a sum is accepted as it is.
	sum := bytes.Index(text, []byte(",\n  \"sum\""))
	own := bytes.Replace(append(bytes.Clone(text[:sum]), "\n}"...), []byte("{\n"), []byte("{\n  \"mood\": [1, 2],\n"), 1)
	if err := os.WriteFile(path, own, 0o600); err != nil {
		t.Fatal(err)
	}
	title := "new"
	if err := s.Describe(t.Context(), "talk", history.Change{Title: &title}); err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if _, err := s.Info(t.Context(), "talk"); err != nil {
		t.Error(err)
	}
	if text, err = os.ReadFile(path); err != nil || json.Unmarshal(text, &members) != nil ||
		fmt.Sprint(members["mood"]) != "[1 2]" || members["title"] != "new" {
		t.Errorf("info.json is %s, %v", text, err)
	}
}

// A bit of info.json that is another is an error, or makes no difference.
func TestEachBitOfInfoFlipped(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer s.Close()
	title, owner, tags := "A title", "ann", []string{"one", "two"}
	if err := errors.Join(s.Append(t.Context(), "talk", 0, three(0)...), s.Fork(t.Context(), "talk", 2, "fork"),
		s.Describe(t.Context(), "fork", history.Change{Title: &title, Owner: &owner, Tags: &tags})); err != nil {
		t.Fatal(err)
	}
	path := infoOf(filepath.Join(dir, "fork"))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := s.Info(t.Context(), "fork")
	if err != nil {
		t.Fatal(err)
	}
	for at := range text {
		for bit := range 8 {
			flipped := bytes.Clone(text)
			flipped[at] ^= 1 << bit
			if err := os.WriteFile(path, flipped, 0o600); err != nil {
				t.Fatal(err)
			}
			info, err := s.Info(t.Context(), "fork")
			corrupt := new(history.CorruptError)
			switch {
			case err == nil && !reflect.DeepEqual(info, want):
				t.Fatalf("bit %d of byte %d: %+v, and no error: %s", bit, at, info, flipped)
			case err != nil && !errors.As(err, &corrupt) && !errors.Is(err, canister.ErrNewer):
				t.Fatalf("bit %d of byte %d: %v", bit, at, err)
			}
		}
	}
}

// Contents stand once in a conversation and its forks, and go with the last.
func TestContentsAreShared(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := s.Append(t.Context(), "talk", 0, says("1", large), says("2", large), says("3", large+"3"), says("4", strings.Repeat("x", inline))); err != nil {
		t.Fatal(err)
	}
	if err := s.Fork(t.Context(), "talk", 2, "fork"); err != nil {
		t.Fatal(err)
	}
	contents := func(conversation string) []string {
		found, err := filepath.Glob(filepath.Join(dir, conversation, "contents", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	of, in := contents("talk"), contents("fork")
	if len(of) != 2 || len(in) != 1 {
		t.Fatalf("the contents are %q and %q", of, in)
	}
	inFork, err := os.Stat(in[0])
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(of, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && os.SameFile(info, inFork)
	}) {
		t.Error("the fork has a copy")
	}
	if len(text0(t, dir)) > 3*inline {
		t.Errorf("the lines have %d bytes", len(text0(t, dir)))
	}
	if _, err := canister.Unmarshal(bytes.SplitN(text0(t, dir), []byte("\n"), 2)[0]); err != nil {
		t.Errorf("a line is not in the form of canisters: %v", err)
	}
	for _, conversation := range []string{"talk", "fork"} {
		if err := s.Delete(t.Context(), conversation, history.AnyLength); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || slices.ContainsFunc(left, func(e fs.DirEntry) bool { return e.Name() != ".lock" && e.Name() != ".rename.lock" }) {
		t.Errorf("there is left %v, %v", left, err)
	}
}

// Idle conversations cost neither memory nor files.
func TestIdleConversationsCostNothing(t *testing.T) {
	s := open(t, t.TempDir())
	for i := range 2 * indexes {
		if err := s.Append(t.Context(), fmt.Sprint("n", i), 0, says("x", "x")); err != nil {
			t.Fatal(err)
		}
		read(t, s, fmt.Sprint("n", i))
	}
	if len(s.indexes) > indexes || len(s.settled) > indexes || len(s.gates) != 0 {
		t.Errorf("of %d conversations %d indexes, %d folders and %d gates are remembered", 2*indexes, len(s.indexes), len(s.settled), len(s.gates))
	}
}

func FuzzLine(f *testing.F) {
	f.Add([]byte(`{"kind":"user"}`), 0)
	f.Add([]byte(`{"kind":"user","sum":"crc32c:00000000"}`), 12)
	f.Add([]byte(`{}`), 999_999_999)
	f.Fuzz(func(t *testing.T, form []byte, more int) {
		_, _, _ = splitLine(form) // whatever it is
		if !bytes.HasSuffix(form, []byte("}")) || more < 0 || more > 999_999_999 {
			return
		}
		line := appendLine(nil, form, more)
		got, m, err := splitLine(line)
		if err != nil || !bytes.Equal(got, form) || m != more || waits(line) != (more > 0) {
			t.Errorf("%q with %d comes back as %q with %d: %v", form, more, got, m, err)
		}
	})
}

// Whatever is in the files, reading ends, and an append does no harm to what
// could be read.
func FuzzFile(f *testing.F) {
	dir := f.TempDir()
	text, _ := kept(f, dir)
	f.Add(text)
	f.Add([]byte("\n\n{\"kind\":\"user\"}"))
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		damaged := bytes.Clone(text)
		damaged[r.IntN(len(damaged))] = byte(r.IntN(256))
		f.Add(damaged[:r.IntN(len(damaged))])
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		put(t, dir, text)
		s := open(t, dir)
		readable := func() (list []canister.Canister, failed error) {
			for c, err := range s.Read(t.Context(), "talk", 0) {
				if err != nil {
					return list, err
				}
				list = append(list, c)
			}
			return list, nil
		}
		before, failed := readable()
		if failed != nil {
			return
		}
		if err := s.Append(t.Context(), "talk", len(before), says("appended", "appended")); err != nil {
			t.Fatalf("Append to what can be read: %v", err)
		}
		after, failed := readable()
		if failed != nil || ids(after) != ids(append(before, says("appended", ""))) {
			t.Fatalf("before %q, after %q: %v", ids(before), ids(after), failed)
		}
	})
}
