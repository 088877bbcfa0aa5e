// SPDX-License-Identifier: Apache-2.0

package grpctooltest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/suggest"
	"google.golang.org/grpc/codes"
)

// Always, as [Rule.Times], means every occasion from the nth on.
const Always = -1

// Place is the name of a point where a fault may occur. Each time the server reaches that
// point is an occasion.
//
//	connect        a connection was accepted, and nothing has been read from it
//	list           a ListTools request arrived and is not yet answered
//	before-effect  a call arrived, and its tool has not run
//	after-effect   the tool ran, and the call is not yet answered
type Place string

// Rule says which fault occurs and when.
type Rule struct {
	Fault Fault
	At    Place
	// Tool restricts the rule to calls of this tool; empty means all.
	Tool string
	// Nth is the first matching occasion of the fault, counted from 1. Zero means 1.
	Nth int
	// Times is the number of consecutive occasions of the fault. Zero means 1; see
	// [Always].
	Times int

	// The remaining fields are parameters of the faults that mention them in
	// Info.About; zero means the default given there.

	// Code is a gRPC status code, and Text its message.
	Code codes.Code
	Text string
	// Reason is an HTTP/2 error code (RFC 9113, § 7).
	Reason uint32
	// Delay is how long to wait.
	Delay time.Duration
	// Count is the number of tools.
	Count int
	// Size is the number of bytes.
	Size int
}

func (r *Rule) check(withTLS bool) error {
	kind, ok := findKind(r.Fault)
	switch {
	case !ok:
		return fmt.Errorf("grpctooltest: unknown fault %q%s", r.Fault, hint(string(r.Fault)))
	case !slices.Contains(kind.Places, r.At):
		return fmt.Errorf("grpctooltest: the fault %q occurs at %q, not at %q", r.Fault, kind.Places, r.At)
	case kind.tls && !withTLS:
		return fmt.Errorf("grpctooltest: the fault %q needs Options.TLS", r.Fault)
	case r.Tool != "" && r.At != "before-effect" && r.At != "after-effect":
		return fmt.Errorf("grpctooltest: no tool is called at %q", r.At)
	case r.Nth < 0 || r.Times < Always || r.Delay < 0 || r.Count < 0 || r.Size < 0:
		return fmt.Errorf("grpctooltest: the rule for %q has a negative number", r.Fault)
	}
	return nil
}

// hint suggests the fault whose name is most like name.
func hint(name string) string {
	var known []string
	for _, k := range kinds() {
		known = append(known, string(k.Fault))
	}
	if meant := suggest.Name(name, known); meant != "" {
		return fmt.Sprintf("; did you mean %q?", meant)
	}
	return ""
}

// script holds rules and counts the occasions of each.
type script struct {
	mu     sync.Mutex
	rules  []Rule
	seen   []int
	struck int
}

func (s *script) set(rules []Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules, s.seen = slices.Clone(rules), make([]int, len(rules))
}

// at counts an occasion, and returns the rules that apply to it.
func (s *script) at(place Place, tool string) (striking []Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range s.rules {
		if r.At != place || r.Tool != "" && r.Tool != tool {
			continue
		}
		s.seen[i]++
		since := s.seen[i] - max(r.Nth, 1)
		if since >= 0 && (r.Times == Always || since < max(r.Times, 1)) {
			striking = append(striking, r)
		}
	}
	s.struck += len(striking)
	return striking
}
