// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCleanLine(t *testing.T) {
	for line, want := range map[string]string{
		"plain\r\n":                  "plain",
		"\x1b[1;31mred\x1b[0m alert": "red alert",
		"a\tb\x00c\x07d\u0085e\x7f":  "a bcd e",
		"right\u202eto\u200bleft":    "righttoleft",
		"bad \xff\xfe utf8 \xe2\x82": "bad \uFFFD utf8 \uFFFD",
		"überraschend 日本 🙂\u00a0ok":  "überraschend 日本 🙂 ok",
	} {
		if got := CleanLine(line); got != want {
			t.Errorf("CleanLine(%q) = %q, want %q", line, got, want)
		}
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	var kept tail
	for range 3000 {
		_, _ = kept.Write([]byte(strings.Repeat("y", 99) + "\n"))
		if cap(kept.kept) > 4*maxTail {
			t.Fatalf("%d bytes are held, bound is %d", cap(kept.kept), 4*maxTail)
		}
	}
	_, _ = kept.Write([]byte("panic: the end\n\n"))
	text := kept.text()
	if !strings.HasSuffix(text, "\npanic: the end") || len(text) > maxTail || len(text) < maxTail-100 {
		t.Errorf("tail has %d bytes and ends in %q", len(text), text[max(0, len(text)-30):])
	}
}

func TestLastWords(t *testing.T) {
	for name, test := range map[string]struct{ stderr, want string }{
		"nothing":          {"", ""},
		"no error":         {"1\n2\n3\n4\n5\n6\n\n \n7\n8\n9\n10", "3 | 4 | 5 | 6 | 7 | 8 | 9 | 10"},
		"a stack alone":    {"    at x (y.js:1:2)\n    at z (y.js:3:4)\n", "at x (y.js:1:2) | at z (y.js:3:4)"},
		"words afterwards": {"Error: no key\n    at x (y.js:1:2)\nbye\n", "Error: no key | bye"},
		"an old error": {"Error: retrying\n1\n2\n3\n4\n5\n6\n7\n8\n9\nout of disk space",
			"Error: retrying | 1 | 2 | 3 | … | 7 | 8 | 9 | out of disk space"},
		"npm": {"npm error code E404\nnpm error 404 Not Found - GET https://registry/x\nnpm error A complete log is in: /x.log\n",
			"npm error code E404 | npm error 404 Not Found - GET https://registry/x | npm error A complete log is in: /x.log"},
		"Node": {`/app/node_modules/bindings/bindings.js:126
  err = new Error(
        ^

Error: Could not locate the bindings file. Tried:
 → /app/build/sqlite3.node
    at bindings (/app/node_modules/bindings/bindings.js:126:9)
    at Object.<anonymous> (/app/lib/sqlite3.js:2:1)
    at Module._compile (node:internal/modules/cjs/loader:1554:14)
    at Object..js (node:internal/modules/cjs/loader:1706:10)
    at Module.load (node:internal/modules/cjs/loader:1289:32)
    at Function._load (node:internal/modules/cjs/loader:1108:12)
    at TracingChannel.traceSync (node:diagnostics_channel:322:14)
    at wrapModuleLoad (node:internal/modules/cjs/loader:220:24) {
  code: 'MODULE'
}

Node.js v22.23.3
`, "Error: Could not locate the bindings file. Tried: | → /app/build/sqlite3.node | code: 'MODULE'"},
		"Node with a code": {"node:internal:1\n    throw x\n    ^\n\nTypeError [ERR_X]: bad\n    at f (g:1)\n\nNode.js v22.1.0\n", "TypeError [ERR_X]: bad"},
		"Python": {
			"INFO start\nTraceback (most recent call last):\n  File \"x.py\", line 3, in <module>\n    os.environ[\"KEY\"]\n    ~~~~~~~~~~^^^^^^^\n" +
				"KeyError: 'KEY'\n", "KeyError: 'KEY'",
		},
		"Python, two": {
			"Traceback (most recent call last):\n  File \"x.py\", line 3\nKeyError: 1\n\n" +
				"During handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"x.py\", line 5\n" +
				"mod.NotReady: no\n more\n", "mod.NotReady: no | more",
		},
		"Python's groups": {`  + Exception Group Traceback (most recent call last):
  |   File "x.py", line 3, in <module>
  |     main()
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "x.py", line 9, in g
    | KeyError: 'KEY'
    +------------------------------------
`, "KeyError: 'KEY'"},
		"Go": {
			"start\npanic: runtime error: nil map\n\tpanic: again\n[signal SIGSEGV]\n\ngoroutine 1 [running]:\nmain.main()\n\t/x/main.go:5 +0x1d\n" +
				"exit status 2\n", "panic: runtime error: nil map | panic: again | [signal SIGSEGV]",
		},
		"Go's map": {
			"fatal error: concurrent map writes\n\ngoroutine 6 [running]:\nmain.f()\n\t/x/main.go:5\n\ngoroutine 1 [sleep]:\nmain.main()\n",
			"fatal error: concurrent map writes",
		},
		"Java": {
			"Exception in thread \"main\" java.lang.IllegalStateException: cannot start\n\tat a.Main.main(Main.java:1)\n" +
				"Caused by: java.io.IOException: no key\n\tat a.Main.x(Main.java:2)\n" +
				"\t... 1 more\n", "Exception in thread \"main\" java.lang.IllegalStateException: cannot start | Caused by: java.io.IOException: no key",
		},
		"Rust": {
			"thread 'main' panicked at src/main.rs:4:5:\nno key\nstack backtrace:\n   0: rust_begin_unwind\n   1: core::panicking::panic_fmt\n" +
				"             at /rustc/x.rs:1\n" +
				"note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n", "thread 'main' panicked at src/main.rs:4:5: | no key",
		},
		".NET": {
			"Unhandled exception. System.InvalidOperationException: no key\n ---> System.IO.IOException: gone\n   at P.X() in /x.cs:line 3\n" +
				"   --- End of inner exception stack trace ---\n" +
				"   at P.Main()\n", "Unhandled exception. System.InvalidOperationException: no key | ---> System.IO.IOException: gone",
		},
		"Ruby": {
			"x.rb:1:in 'fetch': key not found: \"KEY\" (KeyError)\n\tfrom x.rb:1:in '<main>'\n", "x.rb:1:in 'fetch': key not found: \"KEY\" (KeyError)",
		},
		"a warning":  {"(node:1) ExperimentalWarning: SQLite\nlistening\n", "(node:1) ExperimentalWarning: SQLite | listening"},
		"one colour": {"\x1b[31merror: no such option\x1b[0m\n", "error: no such option"},
	} {
		t.Run(name, func(t *testing.T) {
			var kept tail
			_, _ = kept.Write([]byte(test.stderr))
			if got := kept.lastWords(); got != test.want {
				t.Errorf("lastWords is\n     %s\nwant %s", got, test.want)
			}
		})
	}
}

// A long line is cut where it says least: an error at its end, other text at its
// beginning.
func TestLastWordsAreShort(t *testing.T) {
	long := strings.Repeat("é", 5000)
	for text, fits := range map[string]func(string) bool{
		long:              func(got string) bool { return strings.HasPrefix(got, "…é") },
		"Error: x" + long: func(got string) bool { return strings.HasPrefix(got, "Error: xé") && strings.HasSuffix(got, "é…") },
	} {
		if got := lastWords(text); len(got) > maxLastBytes+len("…") || !utf8.ValidString(got) || !fits(got) {
			t.Errorf("a long line gives %d bytes: %.20q", len(got), got)
		}
	}
}
