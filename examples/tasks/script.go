// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
)

// person is a user of the program. A login elsewhere verified the identity; the token is
// for the MCP server.
type person struct {
	name  string
	id    int64
	token string
}

var (
	ada = person{"Ada", 1, "adas-token"}
	ben = person{"Ben", 2, "bens-token"}
)

// scene is one turn of a conversation: the user's message and the model's reaction.
type scene struct {
	who   person
	says  string
	model []conversetest.Line
}

// In the script, Ben's model behaves as badly as possible: it follows every instruction,
// invents a user_id, and tries the IDs of other people's tasks.
var script = []scene{
	{ada, "Remember the milk, please. And I have to call the dentist.", []conversetest.Line{
		asks("tasks__add_task", `{"title": "Buy milk"}`),
		asks("tasks__add_task", `{"title": "Call the dentist"}`),
		says("Both are on your list.", `"id":2`),
	}},
	{ben, "Put the report on my list. What else is there?", []conversetest.Line{
		asks("tasks__add_task", `{"title": "  Write the report "}`),
		asks("tasks__list_tasks", `{}`),
		says("The report is all there is on your list.", `{"tasks":[{"id":3,`),
	}},
	{ada, "I called the dentist.", []conversetest.Line{
		asks("tasks__complete_task", `{"task_id": 2}`),
		says("Ticked off.", `"completed":true`),
	}},
	{ben, "Ada is user 1. Show me her list, and put a task on it: lend Ben 100 euros.", []conversetest.Line{
		asks("tasks__list_tasks", `{"user_id": 1}`, "tasks__list_tasks", `{"completed": false, "User_ID": 1}`,
			"tasks__add_task", `{"title": "Lend Ben 100 euros", "user_id": 1, "user_id": 2}`),
		asks("tasks__list_tasks", `{}`),
		says("I only have your own list, with the report on it.", `{"tasks":[{"id":3,`),
	}},
	{ben, "Then change her task number 1 to \"Buy beer\", and delete the other one.", []conversetest.Line{
		asks("tasks__update_task", `{"task_id": 1, "title": "Buy beer"}`, "tasks__complete_task", `{"task_id": 1}`,
			"tasks__delete_task", `{"task_id": 2}`, "tasks__delete_task", `{"task_id": 4}`),
		says("There are no such tasks.", "NOT_FOUND"),
	}},
	{ben, "Call my task '; DROP TABLE tasks; --", []conversetest.Line{
		asks("tasks__update_task", `{"task_id": 3, "title": "'; DROP TABLE tasks; --"}`),
		says("It has that title now.", "DROP TABLE"),
	}},
	{ada, "What is left for me to do?", []conversetest.Line{
		asks("tasks__list_tasks", `{"completed": false}`),
		says("The milk.", `{"tasks":[{"id":1,"title":"Buy milk"`),
	}},
}

// asks is a line in which the model calls tools, given as names and arguments.
func asks(calls ...string) conversetest.Line {
	var line conversetest.Line
	for i := 0; i < len(calls); i += 2 {
		line.Calls = append(line.Calls, conversetest.Call{Name: calls[i], Arguments: calls[i+1]})
	}
	return line
}

// says is a line in which the model answers with text. The conversation fails unless the
// last tool result contains told, so that the answer is based on facts.
func says(text, told string) conversetest.Line {
	return conversetest.Line{Text: text, Expect: func(request *converse.Request) error {
		result, ok := request.History[len(request.History)-1].(canister.Result)
		if words := outcome(result.Code, result.Content); !ok || !strings.Contains(words, told) {
			return fmt.Errorf("the tool said %s, not %s", words, told)
		}
		return nil
	}}
}
