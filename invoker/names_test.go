// SPDX-License-Identifier: Apache-2.0

package invoker

import "testing"

func TestSnakeCase(t *testing.T) {
	for name, want := range map[string]string{
		"Add": "add", "AddTask": "add_task", "GetURL": "get_url", "HTTPServer": "http_server", "ID": "id",
		"UserID": "user_id", "ListTaskIDs": "list_task_ids", "IDsOf": "ids_of", "GetHTTPHeader": "get_http_header",
		"V2Tasks": "v2_tasks", "Task2": "task2", "Add_Task": "add_task", "As": "as", "ParseJSON5": "parse_json5", "ÄndereÖl": "ändere_öl",
	} {
		if got := snakeCase(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
