// SPDX-License-Identifier: Apache-2.0

// Package suite helps to write test suites for implementers of an interface, and to test
// that such a suite finds faults.
package suite

import (
	"context"
	"iter"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/textcut"
)

// Finds checks that each case of a suite can fail. The keys of breaks are names of cases,
// followed by a space and a word if a case is broken in several ways. Finds runs test in
// a process of its own for each key. There, test must run the suite over an
// implementation that breaks the rule whose key is in the environment variable.
func Finds[B any](t *testing.T, test, variable string, breaks map[string]B) {
	places := make(chan struct{}, processes)
	outcomes := make(map[string]chan outcome)
	for name := range breaks {
		done := make(chan outcome, 1)
		outcomes[name] = done
		go func() {
			places <- struct{}{}
			defer func() { <-places }()
			rule, _, _ := strings.Cut(name, " ")
			pattern := "^" + test + "$/^" + strings.ReplaceAll(regexp.QuoteMeta(rule), "/", "$/^") + "$"
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run", pattern, "-test.v")
			command.Env = append(os.Environ(), variable+"="+name)
			output, err := command.CombinedOutput()
			done <- outcome{output, err}
		}()
	}
	for _, name := range slices.Sorted(maps.Keys(breaks)) {
		t.Run(name, func(t *testing.T) {
			found := <-outcomes[name]
			if found.err == nil || !strings.Contains(string(found.output), "the rule: ") {
				t.Errorf("the case did not find it: %v\n%s", found.err, found.output)
			}
		})
	}
}

// processes are how many Finds runs at once: most of them wait until a limit of time.
const processes = 24

// outcome is the outcome of a process.
type outcome struct {
	output []byte
	err    error
}

// BrokenRule returns the key of the rule to break, in a process that [Finds] started. In
// other processes it skips the test.
func BrokenRule(t *testing.T, variable string) string {
	t.Helper()
	name := os.Getenv(variable)
	if name == "" {
		t.Skip("run by a test that the suite finds what is broken")
	}
	return name
}

// Rule logs the rule that a case checks if the case has failed. It must be deferred.
func Rule(t *testing.T, rule string) {
	if t.Failed() {
		t.Log("the rule: " + rule)
	}
}

// Context returns a context that ends after patience, and with the test.
func Context(t *testing.T, patience time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// Collect returns the items of a sequence, up to its first error.
func Collect[T any](sequence iter.Seq2[T, error]) ([]T, error) {
	var list []T
	for item, err := range sequence {
		if err != nil {
			return list, err
		}
		list = append(list, item)
	}
	return list, nil
}

// Quote quotes the beginning of a text for a message.
func Quote(text string) string { return strconv.Quote(textcut.Bytes(text, 200)) }

// Pieces yields s in pieces of a few bytes that end between characters.
func Pieces(s string) iter.Seq[string] {
	const few = 8
	return func(yield func(string) bool) {
		begin := 0
		for i := range s {
			if i-begin >= few {
				if !yield(s[begin:i]) {
					return
				}
				begin = i
			}
		}
		if begin < len(s) {
			yield(s[begin:])
		}
	}
}
