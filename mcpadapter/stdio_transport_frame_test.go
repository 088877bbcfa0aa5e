// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

func TestLineReader(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, test := range map[string]struct {
		input string
		want  []string
		end   error
	}{
		"messages":             {ping + "\n" + ping + "\r\n", []string{ping, ping}, errStdoutClosed},
		"blank lines":          {"\n \t\r\n" + ping + "\n\n", []string{ping}, errStdoutClosed},
		"spaces around":        {"  " + ping + "  \n", []string{ping}, errStdoutClosed},
		"byte order mark":      {"\xef\xbb\xbf" + ping + "\n", []string{ping}, errStdoutClosed},
		"no last newline":      {ping, []string{ping}, errStdoutClosed},
		"half message":         {ping + "\n" + ping[:20], []string{ping}, errHalfMessage},
		"half a stray line":    {"good b", []string{"good b"}, errStdoutClosed},
		"long message":         {ping + "\n" + `{"a":"` + long + `"}` + "\n", []string{ping}, errMessageTooLarge},
		"long batch":           {`[` + long + "\n", nil, errMessageTooLarge},
		"long, without end":    {`{"a":"` + long, nil, errMessageTooLarge},
		"as long as allowed":   {"{" + long[:198] + "\n", []string{"{" + long[:198]}, errStdoutClosed},
		"one byte longer":      {"{" + long[:200] + "\n", nil, errMessageTooLarge},
		"message after spaces": {strings.Repeat(" ", 150) + "{" + long + "\n", nil, errMessageTooLarge},
		"nothing":              {"", nil, errStdoutClosed},
	} {
		for kind, r := range map[string]io.Reader{
			"whole":      strings.NewReader(test.input),
			"bit by bit": iotest.OneByteReader(strings.NewReader(test.input)),
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				lines := newLineReader(r, 200)
				var got []string
				line, err := lines.next()
				for ; err == nil; line, err = lines.next() {
					got = append(got, string(line))
				}
				if fmt.Sprint(got) != fmt.Sprint(test.want) || !errors.Is(err, test.end) {
					t.Errorf("lines %q, end %v; want %q, %v", got, err, test.want, test.end)
				}
			})
		}
	}
}

// A line that cannot be a message is cut, not kept, and what follows is read.
func TestLineReaderLongNoise(t *testing.T) {
	noise := strings.Repeat("progress… ", 1<<20)
	lines := newLineReader(strings.NewReader(noise+"\n"+ping+"\n"), 1<<20)
	line, err := lines.next()
	if err != nil || !strings.HasPrefix(string(line), "progress… progress…") {
		t.Fatalf("next = %.40q, %v; want the beginning of the noise", line, err)
	}
	if cap(lines.buf) > 256<<10 {
		t.Errorf("%d bytes are held of a line that is no message", cap(lines.buf))
	}
	if line, err = lines.next(); string(line) != ping || err != nil {
		t.Errorf("after the noise: %.40q, %v; want the message", line, err)
	}
}

func TestDecodeLine(t *testing.T) {
	if _, noise := decodeLine([]byte(ping + " [INFO] ready")); string(noise) != "[INFO] ready" {
		t.Errorf("noise in the line of a message = %q", noise)
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
		if got, _ := decodeLine([]byte(line)); len(got) != want {
			t.Errorf("decodeLine(%.60s) = %d messages, want %d", line, len(got), want)
		}
	}
}

func deep(levels int) string {
	return strings.Repeat("[", levels) + strings.Repeat("]", levels)
}

func TestNoiseMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		m := &noiseMeter{report: func(line string) { got = append(got, line) }}
		for range 1000 {
			m.add([]byte("tick"))
		}
		if len(got) != maxNoise {
			t.Errorf("%d of 1000 lines of one second were reported, want %d", len(got), maxNoise)
		}
		time.Sleep(time.Second)
		m.add([]byte("tock"))
		m.flush()
		tail := got[len(got)-2:]
		if tail[0] != "(990 more lines)" || tail[1] != "tock" {
			t.Errorf("a second later: %q, want the count and the line", tail)
		}
	})
}

func FuzzStdout(f *testing.F) {
	f.Add([]byte(ping + "\n\xef\xbb\xbf" + ping + "\n[" + ping + "]\n{\nnoise\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":` + deep(2000) + "}\n"))
	f.Fuzz(func(t *testing.T, input []byte) {
		const max = 100
		lines := newLineReader(bytes.NewReader(input), max)
		for range len(input) + 1 {
			line, err := lines.next()
			if err != nil {
				return
			}
			if len(line) == 0 {
				t.Fatal("a blank line was returned")
			}
			if looksLikeMessage(line) && len(line) > max {
				t.Fatalf("a message of %d bytes was returned", len(line))
			}
			decodeLine(line)
		}
		t.Fatal("more lines than bytes")
	})
}
