// SPDX-License-Identifier: Apache-2.0

package references

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

// TestItemsOfReferences: only the items that a request names are encoded and kept, and their size counts as
// often as they are named.
func TestItemsOfReferences(t *testing.T) {
	items := []map[string]any{{"id": "msg_1", "text": "short"}, {"id": "mcp_1", "output": strings.Repeat("x", 10_000)}}
	known := Items{Times: map[string]int{"msg_1": 2}, Forms: map[string][]byte{}, Limit: 100}
	if err := known.Add(items); err != nil {
		t.Fatal(err)
	}
	if form := string(known.Forms["msg_1"]); len(known.Forms) != 1 || form != `{"id":"msg_1","text":"short"}` {
		t.Errorf("the items are %q", known.Forms)
	}
	for _, times := range []map[string]int{{"msg_1": 4}, {"mcp_1": 1}} {
		known := Items{Times: times, Forms: map[string][]byte{}, Limit: 100}
		if err, want := known.Add(items), new(http.MaxBytesError); !errors.As(err, &want) || want.Limit != 100 || len(known.Forms) > 0 {
			t.Errorf("%v: %v, and the items are %q", times, err, known.Forms)
		}
	}
}
