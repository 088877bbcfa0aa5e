// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/testing/realservers"
)

// The MCP inspector from npm uses the tools as Ada and as Ben.
func TestTheInspector(t *testing.T) {
	command := realservers.Need(t).Inspector()
	roster, _ := newRoster(t)
	server := newServer(roster, nil)
	web := httptest.NewServer(server.Handler())
	defer web.Close()
	defer server.Close(t.Context())
	inspect := func(token string, args ...string) (string, error) {
		args = append(append(command[1:len(command):len(command)], web.URL+"/mcp",
			"--transport", "http", "--header", "Authorization: Bearer "+token), args...)
		cmd := exec.CommandContext(t.Context(), command[0], args...)
		cmd.Dir = t.TempDir()
		cmd.Env = append(cmd.Environ(), "HOME="+cmd.Dir)
		var all bytes.Buffer
		cmd.Stdout, cmd.Stderr = &all, &all
		err := cmd.Run()
		return all.String(), err
	}
	for _, test := range []struct {
		who   person
		args  string
		wants []string
	}{
		{ada, "--method tools/list", []string{"add_task", "list_tasks", "update_task", "complete_task", "delete_task"}},
		{ben, "--method tools/call --tool-name list_tasks", []string{"of Ben", `"id": 2`}},
		{ada, "--method tools/call --tool-name add_task --tool-arg title=Inspect", []string{"Inspect", `"id": 3`}},
		{ben, "--method tools/call --tool-name complete_task --tool-arg task_id=3", []string{"there is no task 3", "NOT_FOUND"}},
		{ada, "--method tools/call --tool-name complete_task --tool-arg task_id=3", []string{`"completed": true`}},
	} {
		out, err := inspect(test.who.token, strings.Fields(test.args)...)
		for _, want := range test.wants {
			if !strings.Contains(out, want) {
				t.Errorf("%s, %s: %v\n%s", test.who.name, test.args, err, out)
				break
			}
		}
	}
	if out, err := inspect("made-up", "--method", "tools/list"); err == nil || strings.Contains(out, "add_task") {
		t.Errorf("a token that is none: %v\n%s", err, out)
	}
}
