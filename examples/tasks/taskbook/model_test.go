// SPDX-License-Identifier: Apache-2.0

package taskbook

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/invoker"
)

// model is the expected content of the book: the tasks of each user, by id.
type model map[int64]map[int64]Task

// Whatever several users do in whatever order, each finds the tasks that a few
// maps would have for them, and the same failures.
func TestBookIsAMapOfMaps(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			walk(t, rand.New(rand.NewPCG(seed, 4)), 250)
		})
	}
}

func walk(t *testing.T, random *rand.Rand, steps int) {
	first, path := open(t)
	books := []kit{newKit(t, first), newKit(t, openAt(t, path))} // two programs
	model, last := model{1: {}, 2: {}, 3: {}}, int64(0)
	for range steps {
		user := 1 + random.Int64N(3)
		id := 1 + random.Int64N(last+2)
		tools := books[random.IntN(len(books))]
		do := step{t: t, tools: tools, mine: model[user], user: user}
		switch random.IntN(6) {
		case 0, 1:
			if do.add(randomTitle(random)) {
				last++
			}
		case 2:
			do.update(id, randomTitle(random))
		case 3:
			do.complete(id)
		case 4:
			do.delete(id)
		}
		do.list([]string{`{}`, `{"completed":true}`, `{"completed":false}`}[random.IntN(3)])
		if t.Failed() {
			return
		}
	}
}

func randomTitle(random *rand.Rand) string {
	letters := []rune("abc XYZ'\";-%\\\x00\n\u0301é🦉\u200b")
	title := make([]rune, []int{0, 1, 3, 20, 499, 500, 501, 502}[random.IntN(8)])
	for i := range title {
		title[i] = letters[random.IntN(len(letters))]
	}
	return string(title)
}

// step is one operation of one user on the book and on the model.
type step struct {
	t     *testing.T
	tools kit
	user  int64
	mine  map[int64]Task
}

// call calls a tool and returns the task that it tells of.
func (s step) call(tool string, arguments any) (Task, invoker.Code) {
	s.t.Helper()
	text, err := json.Marshal(arguments)
	if err != nil {
		s.t.Fatal(err)
	}
	got, err := s.tools.call(s.t, s.user, tool, string(text))
	var one One
	if err == nil {
		if err := json.Unmarshal([]byte(got), &one); err != nil {
			s.t.Fatal(err)
		}
	}
	return one.Task, code(err)
}

// same compares the result of a change with the expected one.
func (s step) same(what string, got Task, gotCode invoker.Code, want Task, wantCode invoker.Code) {
	s.t.Helper()
	if got != want || gotCode != wantCode {
		s.t.Errorf("user %d, %s: %+v %s, want %+v %s", s.user, what, got, gotCode, want, wantCode)
	}
}

func (s step) add(title string) bool {
	s.t.Helper()
	got, code := s.call("add_task", NewTask{title})
	title, err := cleanTitle(title)
	if err != nil {
		s.same("add", got, code, Task{}, invoker.InvalidArguments)
		return false
	}
	s.same("add", got, code, Task{ID: got.ID, Title: title, CreatedAt: got.CreatedAt}, "")
	s.mine[got.ID] = got
	return true
}

func (s step) update(id int64, title string) {
	s.t.Helper()
	got, code := s.call("update_task", Retitle{id, title})
	title, err := cleanTitle(title)
	task, ok := s.mine[id]
	switch {
	case err != nil:
		s.same("update", got, code, Task{}, invoker.InvalidArguments)
	case !ok:
		s.same("update", got, code, Task{}, invoker.NotFound)
	default:
		task.Title = title
		s.same("update", got, code, task, "")
		s.mine[id] = task
	}
}

func (s step) complete(id int64) {
	s.t.Helper()
	got, code := s.call("complete_task", Which{id})
	task, ok := s.mine[id]
	if !ok {
		s.same("complete", got, code, Task{}, invoker.NotFound)
		return
	}
	task.Completed = true
	s.same("complete", got, code, task, "")
	s.mine[id] = task
}

func (s step) delete(id int64) {
	s.t.Helper()
	got, code := s.call("delete_task", Which{id})
	task, ok := s.mine[id]
	if !ok {
		s.same("delete", got, code, Task{}, invoker.NotFound)
		return
	}
	s.same("delete", got, code, task, "")
	delete(s.mine, id)
}

func (s step) list(filter string) {
	s.t.Helper()
	got, err := s.tools.call(s.t, s.user, "list_tasks", filter)
	if err != nil {
		s.t.Error(err)
		return
	}
	var page Page
	if err := json.Unmarshal([]byte(got), &page); err != nil {
		s.t.Fatal(err)
	}
	var want []Task
	for _, id := range slices.Sorted(maps.Keys(s.mine)) {
		if task := s.mine[id]; filter == `{}` || strings.Contains(filter, fmt.Sprint(task.Completed)) {
			want = append(want, task)
		}
	}
	if !slices.Equal(page.Tasks, want) || page.More {
		s.t.Errorf("user %d lists %s: %+v, want %+v", s.user, filter, page, want)
	}
}
