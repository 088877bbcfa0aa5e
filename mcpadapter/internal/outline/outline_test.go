// SPDX-License-Identifier: Apache-2.0

package outline

import (
	"maps"
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	deep := strings.Repeat(`[`, 20_000)
	for text, want := range map[string]map[string]string{
		`{"jsonrpc":"2.0","id":7,"result":` + deep: {"jsonrpc": `"2.0"`, "id": "7", "result": ""},
		`{"result":{"id":1,"x":"{"},"id" : "a" ,`:  {"result": "", "id": `"a"`},
		`{"level":"info","id":7,"error`:            {"id": "7"},
		`["id",7]`:                                 {},
		``:                                         {},
	} {
		got := make(map[string]string)
		for name, value := range Of([]byte(text)) {
			got[name] = string(value)
		}
		if !maps.Equal(got, want) {
			t.Errorf("%.60s: %q, want %q", text, got, want)
		}
	}
}
