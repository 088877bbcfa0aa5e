// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/consort-go/consort/internal/textcut"
)

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

func TestLineReader(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, test := range map[string]struct {
		input string
		want  []string
		end   error
	}{
		"messages":             {ping + "\n" + ping + "\r\n", []string{ping, ping}, ErrStdoutClosed},
		"blank lines":          {"\n \t\r\n" + ping + "\n\n", []string{ping}, ErrStdoutClosed},
		"spaces around":        {"  " + ping + "  \n", []string{ping}, ErrStdoutClosed},
		"byte order mark":      {"\xef\xbb\xbf" + ping + "\n", []string{ping}, ErrStdoutClosed},
		"no last newline":      {ping, []string{ping}, ErrStdoutClosed},
		"half message":         {ping + "\n" + ping[:20], []string{ping}, ErrHalfMessage},
		"half a stray line":    {"good b", []string{"good b"}, ErrStdoutClosed},
		"long message":         {ping + "\n" + `{"a":"` + long + `"}` + "\n", []string{ping}, ErrMessageTooLarge},
		"half batch":           {`[ {"jsonrpc"`, nil, ErrHalfMessage},
		"begin of a batch":     {"[", nil, ErrHalfMessage},
		"begin of a message":   {"{", nil, ErrHalfMessage},
		"a last log line":      {"[ERROR] API_KEY is not set", []string{"[ERROR] API_KEY is not set"}, ErrStdoutClosed},
		"a time":               {"[12:00:01] no key", []string{"[12:00:01] no key"}, ErrStdoutClosed},
		"long batch":           {`[{"a":"` + long + "\n", nil, ErrMessageTooLarge},
		"long, without end":    {`{"a":"` + long, nil, ErrMessageTooLarge},
		"as long as allowed":   {"{" + long[:198] + "\n", []string{"{" + long[:198]}, ErrStdoutClosed},
		"one byte longer":      {"{" + long[:200] + "\n", nil, ErrMessageTooLarge},
		"message after spaces": {strings.Repeat(" ", 150) + "{" + long + "\n", nil, ErrMessageTooLarge},
		"nothing":              {"", nil, ErrStdoutClosed},
	} {
		for kind, r := range map[string]io.Reader{
			"whole":      strings.NewReader(test.input),
			"bit by bit": iotest.OneByteReader(strings.NewReader(test.input)),
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				lines := NewLineReader(r, 200)
				var got []string
				line, err := lines.Next()
				for ; err == nil; line, err = lines.Next() {
					got = append(got, string(line))
				}
				if fmt.Sprint(got) != fmt.Sprint(test.want) || !errors.Is(err, test.end) {
					t.Errorf("lines %q, end %v; want %q, %v", got, err, test.want, test.end)
				}
			})
		}
	}
}

// A line that cannot be a message is cut and not kept, and the next lines are read.
func TestLineReaderLongNoise(t *testing.T) {
	testLineReaderLongNoise(t, "progress… ")
}

// The same with a line in the usual form of logs, which is not a batch.
func TestLineReaderLongLogLine(t *testing.T) { testLineReaderLongNoise(t, "[INFO] progress… ") }

func testLineReaderLongNoise(t *testing.T, begin string) {
	noise := begin + strings.Repeat("progress… ", 1<<20)
	lines := NewLineReader(strings.NewReader(noise+"\n"+ping+"\n"), 1<<20)
	line, err := lines.Next()
	if err != nil || !strings.HasPrefix(string(line), begin+"progress…") {
		t.Fatalf("next = %.40q, %v; want the beginning of the noise", line, err)
	}
	var logged string
	(&lineLimiter{report: func(line string) { logged = line }}).add(line)
	if len(logged) > maxTextLine || !strings.HasSuffix(logged, textcut.Mark) {
		t.Errorf("%d bytes are logged, which end in %q; want the mark of a cut", len(logged), logged[len(logged)-10:])
	}
	if cap(lines.buf) > 256<<10 {
		t.Errorf("%d bytes are held of a line that is no message", cap(lines.buf))
	}
	if line, err = lines.Next(); string(line) != ping || err != nil {
		t.Errorf("after the noise: %.40q, %v; want the message", line, err)
	}
}
