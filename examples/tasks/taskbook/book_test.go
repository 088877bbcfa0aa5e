// SPDX-License-Identifier: Apache-2.0

package taskbook

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/invoker"
)

// open returns a book in a new file, and its path.
func open(t testing.TB) (*Book, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tasks.db")
	return openAt(t, path), path
}

func openAt(t testing.TB, path string) *Book {
	t.Helper()
	book, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := book.Close(); err != nil {
			t.Error(err)
		}
	})
	return book
}

// as returns a context of a user.
func as(t testing.TB, user int64) context.Context {
	return invoker.WithTrusted(t.Context(), User.Value(user))
}

// code returns the code of a failure, "" for nil.
func code(err error) invoker.Code {
	if err == nil {
		return ""
	}
	return invoker.AsFailure(err).Code
}

// add adds a task, which must work.
func add(t testing.TB, book *Book, user int64, title string) Task {
	t.Helper()
	one, err := book.AddTask(as(t, user), NewTask{title})
	if err != nil {
		t.Fatalf("adding %q: %v", title, err)
	}
	return one.Task
}

// list returns the tasks of a user.
func list(t testing.TB, book *Book, user int64) []Task {
	t.Helper()
	page, err := book.ListTasks(as(t, user), Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return page.Tasks
}

func TestALifeOfATask(t *testing.T) {
	book, path := open(t)
	began := time.Now().Truncate(time.Second)
	task := add(t, book, 1, "  Buy milk ")
	if task.Title != "Buy milk" || task.Completed || task.CreatedAt.Before(began) || time.Since(task.CreatedAt) > time.Minute {
		t.Errorf("added %+v", task)
	}
	want := task
	want.Title = "Buy oat milk"
	if one, err := book.UpdateTask(as(t, 1), Retitle{task.ID, "Buy oat milk"}); err != nil || one.Task != want {
		t.Errorf("updated: %+v, %v", one, err)
	}
	want.Completed = true
	for range 2 {
		if one, err := book.CompleteTask(as(t, 1), Which{task.ID}); err != nil || one.Task != want {
			t.Errorf("completed: %+v, %v", one, err)
		}
	}
	if got := list(t, openAt(t, path), 1); !slices.Equal(got, []Task{want}) {
		t.Errorf("another book over the same file has %+v", got)
	}
	if one, err := book.DeleteTask(as(t, 1), Which{task.ID}); err != nil || one.Task != want {
		t.Errorf("deleted: %+v, %v", one, err)
	}
	if _, err := book.DeleteTask(as(t, 1), Which{task.ID}); code(err) != invoker.NotFound {
		t.Errorf("deleted twice: %v", err)
	}
	if next := add(t, book, 1, "Buy tea"); next.ID <= task.ID {
		t.Errorf("the id %d of a deleted task was given again", next.ID)
	}
}

func TestListing(t *testing.T) {
	book, _ := open(t)
	if page, err := book.ListTasks(as(t, 1), Filter{}); err != nil || page.Tasks == nil || len(page.Tasks) != 0 || page.More {
		t.Errorf("an empty list is %+v, %v", page, err)
	}
	open, done := add(t, book, 1, "open"), add(t, book, 1, "done")
	add(t, book, 2, "of somebody else")
	one, err := book.CompleteTask(as(t, 1), Which{done.ID})
	if err != nil {
		t.Fatal(err)
	}
	done = one.Task
	for _, test := range []struct {
		filter Filter
		want   []Task
	}{
		{Filter{}, []Task{open, done}},
		{Filter{Completed: new(true)}, []Task{done}},
		{Filter{Completed: new(false)}, []Task{open}},
		{Filter{After: open.ID}, []Task{done}},
		{Filter{After: open.ID, Completed: new(false)}, nil},
	} {
		if page, err := book.ListTasks(as(t, 1), test.filter); err != nil || !slices.Equal(page.Tasks, test.want) || page.More {
			t.Errorf("%+v: %+v, %v", test.filter, page, err)
		}
	}
}

// A list of any length fits into answers of bounded length.
func TestALongListComesInPages(t *testing.T) {
	book, _ := open(t)
	for range 2*PageSize + 1 {
		add(t, book, 1, "one of many")
	}
	var lengths []int
	seen := map[int64]bool{}
	for filter, more := (Filter{}), true; more; {
		page, err := book.ListTasks(as(t, 1), filter)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range page.Tasks {
			seen[task.ID] = true
		}
		lengths = append(lengths, len(page.Tasks))
		filter.After, more = page.Tasks[len(page.Tasks)-1].ID, page.More
	}
	if !slices.Equal(lengths, []int{PageSize, PageSize, 1}) || len(seen) != 2*PageSize+1 {
		t.Errorf("pages of %v, %d tasks", lengths, len(seen))
	}
}

func TestTitles(t *testing.T) {
	book, _ := open(t)
	for name, test := range map[string]struct{ title, want string }{
		"as it is":                  {"Buy milk", "Buy milk"},
		"trimmed":                   {"\t\n\u00a0 Buy  milk\u2003\r\n", "Buy  milk"},
		"one character":             {"x", "x"},
		"the longest":               {strings.Repeat("x", 500), strings.Repeat("x", 500)},
		"the longest, and spaces":   {"  " + strings.Repeat("x", 500) + "  ", strings.Repeat("x", 500)},
		"the longest, 4 bytes each": {strings.Repeat("🦉", 500), strings.Repeat("🦉", 500)},
		"combining characters":      {strings.Repeat("e\u0301", 250), strings.Repeat("e\u0301", 250)},
		"several lines":             {"milk\nbread", "milk\nbread"},
		"a NUL":                     {"milk\x00bread", "milk\x00bread"},
		"a joined emoji":            {"👩‍🌾", "👩‍🌾"},
		"an escape sequence":        {"\x1b[31mred", "\x1b[31mred"},
	} {
		if got := add(t, book, 1, test.title); got.Title != test.want {
			t.Errorf("%s: %q became %q", name, test.title, got.Title)
		}
	}
	before := list(t, book, 1)
	for name, test := range map[string]struct{ title, want string }{
		"none":                    {"", "empty"},
		"only spaces":             {" \t\r\n\u00a0\u2003\u3000", "empty"},
		"one too long":            {strings.Repeat("x", 501), "501 characters; at most 500"},
		"one too long, combining": {strings.Repeat("e\u0301", 250) + "!", "501 characters"},
		"ten thousand":            {strings.Repeat("x", 10_000), "10000 characters"},
		"only zero-width":         {"\u200b\u200d\ufeff", "no visible character"},
		"only controls":           {"\x00\x01\x1b", "no visible character"},
		"zero-width and spaces":   {"\u200b \u200b", "no visible character"},
		"only directions":         {"\u202e\u2066", "no visible character"},
		"not UTF-8":               {"caf\xe9", "UTF-8"},
		"only invalid UTF-8":      {"\xff\xfe", "UTF-8"},
	} {
		_, err := book.AddTask(as(t, 1), NewTask{test.title})
		_, update := book.UpdateTask(as(t, 1), Retitle{before[0].ID, test.title})
		for _, err := range []error{err, update} {
			if code(err) != invoker.InvalidArguments || invoker.AsFailure(err).Pointer != "/title" ||
				!strings.Contains(err.Error(), test.want) || len(err.Error()) > 200 {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if !slices.Equal(list(t, book, 1), before) {
		t.Error("a refused title left something behind")
	}
}

// A title is a value to the database, whatever it says.
func TestSQLInTitles(t *testing.T) {
	book, _ := open(t)
	theirs := add(t, book, 2, "theirs")
	titles := []string{
		`'; DROP TABLE tasks; --`,
		`'); DELETE FROM tasks WHERE ('1'='1`,
		`' || (SELECT title FROM tasks WHERE user_id = 2) || '`,
		`x', 1, '2020-01-01'), (2, 'planted`,
		`" OR "1"="1`, `:user`, `?1`, `$title`, `%s %d %!`, `\'; --`, `/* */`,
	}
	for _, title := range titles {
		task := add(t, book, 1, "before")
		if one, err := book.UpdateTask(as(t, 1), Retitle{task.ID, title}); err != nil || one.Task.Title != title {
			t.Errorf("updated to %q: %+v, %v", title, one, err)
		}
		if task := add(t, book, 1, title); task.Title != title {
			t.Errorf("added %q, got %q", title, task.Title)
		}
	}
	if got := list(t, book, 1); len(got) != 2*len(titles) {
		t.Errorf("%d tasks, want %d", len(got), 2*len(titles))
	}
	if got := list(t, book, 2); !slices.Equal(got, []Task{theirs}) {
		t.Errorf("the other user has %+v", got)
	}
}

// Another user's task is answered like one that does not exist, and stays.
func TestAnotherUsersTask(t *testing.T) {
	book, _ := open(t)
	theirs := add(t, book, 2, "theirs")
	for name, try := range map[string]func(id int64) error{
		"update":   func(id int64) error { _, err := book.UpdateTask(as(t, 1), Retitle{id, "mine"}); return err },
		"complete": func(id int64) error { _, err := book.CompleteTask(as(t, 1), Which{id}); return err },
		"delete":   func(id int64) error { _, err := book.DeleteTask(as(t, 1), Which{id}); return err },
	} {
		there, missing := try(theirs.ID), try(theirs.ID+1000)
		if code(there) != invoker.NotFound || code(missing) != invoker.NotFound {
			t.Errorf("%s: %v, %v", name, there, missing)
			continue
		}
		if a, b := strings.ReplaceAll(there.Error(), "1001", "1"), strings.ReplaceAll(missing.Error(), "1001", "1"); a != b {
			t.Errorf("%s tells a task of somebody else, %q, from none, %q", name, a, b)
		}
	}
	if got := list(t, book, 1); len(got) != 0 {
		t.Errorf("the first user sees %+v", got)
	}
	if got := list(t, book, 2); !slices.Equal(got, []Task{theirs}) {
		t.Errorf("the task became %+v", got)
	}
}

func TestIDsThatAreNone(t *testing.T) {
	book, _ := open(t)
	add(t, book, 1, "mine")
	for _, id := range []int64{0, -1, 1 << 62, -1 << 63} {
		if _, err := book.CompleteTask(as(t, 1), Which{id}); code(err) != invoker.NotFound {
			t.Errorf("%d: %v", id, err)
		}
	}
}

// Without a user nothing happens, also where no invoker stands before the book.
func TestWithoutAUser(t *testing.T) {
	book, _ := open(t)
	for _, ctx := range []context.Context{
		t.Context(),
		invoker.WithTrusted(t.Context(), invoker.NewTrusted[string]("user_id").Value("1")),
		invoker.WithTrusted(t.Context(), invoker.NewTrusted[int64]("USER_ID").Value(1)),
	} {
		_, added := book.AddTask(ctx, NewTask{"x"})
		_, listed := book.ListTasks(ctx, Filter{})
		_, deleted := book.DeleteTask(ctx, Which{1})
		for _, err := range []error{added, listed, deleted} {
			if code(err) != invoker.Unauthorized {
				t.Errorf("%v", err)
			}
		}
	}
}
