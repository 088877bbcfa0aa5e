// SPDX-License-Identifier: Apache-2.0

package modelapi

import "testing"

// TestShown: what only the server can read is not part of the content, at any depth; other
// members, and numbers, stay as they are.
func TestShown(t *testing.T) {
	for item, want := range map[string]string{
		`{"id":"ws_1","type":"web_search_call","n":12345678901234567890}`: `{"n":12345678901234567890,"type":"web_search_call"}`,
		`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"url":"u","encrypted_content":"x"},` +
			`{"content":{"encrypted_stdout":"y","id":"7"}}]}`: `{"content":[{"url":"u"},{"content":{"id":"7"}}],"type":"web_search_tool_result"}`,
		`[1]`: `[1]`,
	} {
		if got := string(Shown([]byte(item))); got != want {
			t.Errorf("of %s it shows %s", item, got)
		}
	}
}
