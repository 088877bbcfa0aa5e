// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"time"

	"github.com/consort-go/consort/examples/tasks/taskbook"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/invoker"
)

// Prompts are the messages of the demonstration's user.
var Prompts = []string{
	"What do Ada and Ben still have to do for the party? And somebody should buy balloons.",
	"Ben has called the landlord, and the tap is fixed.",
}

// The users of the demonstration, and their initial tasks.
const (
	ada = 1
	ben = 2
)

var initialTasks = []struct {
	user  int64
	title string
}{
	{ada, "Buy drinks"},
	{ben, "Call the landlord"},
	{ada, "Fix the tap"},
}

// writeTasks creates the database of the demonstration.
func writeTasks(ctx context.Context, file string) error {
	book, err := taskbook.Open(ctx, file)
	if err != nil {
		return err
	}
	for _, task := range initialTasks {
		ctx := invoker.WithTrusted(ctx, taskbook.User.Value(task.user))
		if _, err = book.AddTask(ctx, taskbook.NewTask{Title: task.title}); err != nil {
			break
		}
	}
	return errors.Join(err, book.Close())
}

// script returns the replies of the scripted model. Each step expects certain tool
// results, and the server refuses the request without them: the model could have learned
// the text of its next reply only from those results.
func script(paced bool) openaiserver.Script {
	says := func(text string, calls ...openaiserver.Call) openaiserver.Message {
		m := openaiserver.Message{Text: text, Calls: calls, Delta: 4}
		if paced {
			m.Pace, m.Delay = 6*time.Millisecond, 120*time.Millisecond
		}
		return m
	}
	call := func(name, arguments string) openaiserver.Call {
		return openaiserver.Call{Name: name, Arguments: arguments}
	}
	bothLists := []openaiserver.Call{call("ada__list_tasks", `{"completed": false}`), call("ben__list_tasks", `{"completed": false}`)}
	return openaiserver.Script{Steps: []openaiserver.Step{
		{
			Expect: openaiserver.Expect{Offers: []string{"ada__add_task", "ada__list_tasks", "ben__complete_task", "ben__delete_task"}},
			Reply:  says("I'll look at both lists.", bothLists...),
		}, {
			Expect: openaiserver.Expect{ToolMessages: 2, Contains: []string{"Buy drinks", "Fix the tap", "Call the landlord"}},
			Reply:  says("Ben has less to do, so the balloons are his.", call("ben__add_task", `{"title": "Buy balloons"}`)),
		}, {
			Expect: openaiserver.Expect{ToolMessages: 1, Contains: []string{"Buy balloons"}},
			Reply:  says("Ada: buy drinks, and fix the tap. Ben: call the landlord, and, new on his list, buy balloons."),
		}, {
			Expect: openaiserver.Expect{LastRole: "user", Contains: []string{"landlord"}},
			Reply: says("",
				call("ben__complete_task", `{"task_id": 2}`),
				call("ben__complete_task", `{"task_id": 3}`)),
		}, {
			Expect: openaiserver.Expect{ToolMessages: 2, Contains: []string{"Call the landlord", "there is no task 3"}},
			Reply:  says("The tap is Ada's, and Ben's server does not reach her tasks.", call("ada__complete_task", `{"task_id": 3}`)),
		}, {
			Expect: openaiserver.Expect{ToolMessages: 1, Contains: []string{"Fix the tap"}},
			Reply:  says("What is left?", bothLists...),
		}, {
			Expect: openaiserver.Expect{ToolMessages: 2, Contains: []string{"Buy drinks", "Buy balloons"}},
			Reply:  says("Both are done. Left are the drinks for Ada and the balloons for Ben."),
		},
	}}
}
