// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"regexp"
	"strings"

	"github.com/consort-go/consort/internal/textcut"
)

const (
	maxLastLines = 8       // lines of stderr in an error
	maxLastBytes = 1 << 10 // and the bytes of these lines
)

// errorLine matches the line in which a runtime names the error that ended the program:
// Node, Deno and Bun ("TypeError: x", "Error [ERR_X]: x"), Python ("KeyError: 'x'"), Go
// ("panic: x", "fatal error: x"), Java ("Exception in thread "main" x"), .NET
// ("Unhandled exception. x"), Rust ("thread 'main' panicked at x"), Ruby ("x.rb:1:in
// 'y': z (KeyError)") and PHP.
var errorLine = regexp.MustCompile(`^(?:` +
	`(?:panic|fatal error|[Ee]rror(?:\[\w+\])?): |` +
	`[\w.$:]*(?:Error|Exception|ExceptionGroup)(?: \[[\w-]+\])?(?::|$)|` +
	`Uncaught |Unhandled exception|\[UnhandledPromiseRejection|Exception in thread |PHP Fatal error|` +
	`thread '.*' (?:\(\d+\) )?panicked at |` +
	`\S+:\d+:in .* \(\S+\)$)`)

// stackLine matches the lines near the error that say where it happened.
var stackLine = regexp.MustCompile(`^(?:` +
	`\s+at |\s+from |\s+File "|\s+\.\.\. \d+ more|\s+\d+: \S+|\s+--- End of |` +
	`stack backtrace:|note: run with |note: Some details are omitted|` +
	`Node\.js v\d|\s*[}\]],?$|\s*[\^~]+$|\s*\+[-+]+(?: \d+ -+)?$)`)

// groupMargin matches the prefix that Python adds to the lines of an exception group.
var groupMargin = regexp.MustCompile(`^\s*(?:\+ |\| |\|$|\+-\+)`)

// lastWords summarizes the end of a server's stderr in one line: everything from the
// line that names the error, without the stack, or the last lines if no line names an
// error.
func lastWords(text string) string {
	lines, found := wordsOf(text)
	if over := len(lines) - maxLastLines; over > 0 && found {
		half := maxLastLines / 2
		lines = append(append(lines[:half:half], "…"), lines[half+over:]...)
	} else if over > 0 {
		lines = lines[over:]
	}
	last := strings.Join(lines, " | ")
	over := len(last) - maxLastBytes
	switch {
	case over <= 0:
		return last
	case found:
		return textcut.Bytes(last, maxLastBytes)
	}
	return "…" + strings.ToValidUTF8(last[over:], "")
}

// wordsOf returns the informative lines of text. If found, the first one names the last
// error of the text.
func wordsOf(text string) (lines []string, found bool) {
	var all []string
	traceback, goroutines := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(groupMargin.ReplaceAllString(line, ""), " \r\n")
		words := strings.TrimSpace(line)
		if words == "" {
			continue
		}
		all = append(all, words)
		indented := line[0] == ' '
		switch {
		case strings.HasSuffix(words, "Traceback (most recent call last):"): // of Python
			traceback, goroutines = true, false
		case traceback && indented, stackLine.MatchString(line):
		case errorLine.MatchString(line), traceback:
			lines, found, traceback, goroutines = []string{words}, true, false, false
		case strings.HasPrefix(line, "goroutine "): // of Go: the stacks extend to the end
			goroutines = found
		case !goroutines:
			lines = append(lines, words)
		}
	}
	if len(lines) == 0 {
		return all, false
	}
	return lines, found
}
