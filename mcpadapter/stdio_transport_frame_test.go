// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"bytes"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/subprocess"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
)

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

func TestDecodeLine(t *testing.T) {
	if _, noise := wire.DecodeLine([]byte(ping + " [INFO] ready")); string(noise) != "[INFO] ready" {
		t.Errorf("noise in the line of a message = %q", noise)
	}
	half := `{"jsonrpc":"2.0","id":7,"result":3,"error":4}`
	if got, noise := wire.DecodeLine([]byte("[" + ping + "," + half + "]")); len(got) != 1 || string(noise) != half {
		t.Errorf("of a batch with an unreadable answer: %d messages, and %q", len(got), noise)
	}
	for line, want := range map[string]int{
		ping:                                     1,
		`{"jsonrpc":"2.0","id":"a","result":{}}`: 1,
		`[` + ping + `,{"jsonrpc":"2.0","method":"n"}]`: 2,
		`[` + ping + `,"junk"]`:                         1,
		`[]`:                                            0,
		`{}`:                                            0,
		`{"level":30,"msg":"listening"}`:                0,
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`: 0,
		ping + " " + ping:                          2,
		ping + ping[:9]:                            1,
		ping + " [INFO] ready":                     1,
		"Server running on stdio":                  0,
		"null":                                     0,
		"[INFO] ready":                             0,
		`{"jsonrpc":"2.0","id":1,"result":` + deep(1e6) + `}`: 0,
	} {
		if got, _ := wire.DecodeLine([]byte(line)); len(got) != want {
			t.Errorf("DecodeLine(%.60s) = %d messages, want %d", line, len(got), want)
		}
	}
}

func deep(levels int) string {
	return strings.Repeat("[", levels) + strings.Repeat("]", levels)
}

func FuzzStdout(f *testing.F) {
	f.Add([]byte(ping + "\n\xef\xbb\xbf" + ping + "\n[" + ping + "]\n{\nnoise\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":` + deep(2000) + "}\n"))
	f.Fuzz(func(t *testing.T, input []byte) {
		const max = 100
		lines := subprocess.NewLineReader(bytes.NewReader(input), max)
		for range len(input) + 1 {
			line, err := lines.Next()
			if err != nil {
				return
			}
			if len(line) == 0 {
				t.Fatal("a blank line was returned")
			}
			if subprocess.LooksLikeMessage(line) && len(line) > max {
				t.Fatalf("a message of %d bytes was returned", len(line))
			}
			wire.DecodeLine(line)
		}
		t.Fatal("more lines than bytes")
	})
}
