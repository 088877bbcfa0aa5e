// SPDX-License-Identifier: Apache-2.0

package grpctooltest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
)

// Always as [Rule.Times] means each time from the nth occasion on.
const Always = -1

// Place is a moment at which a fault may strike. Each time that the moment comes
// is an occasion.
type Place string

// The places.
const (
	// AtConnect: a connection was accepted, and nothing was read from it.
	AtConnect Place = "connect"
	// AtList: ListTools was asked, and not yet answered.
	AtList Place = "list"
	// BeforeEffect: a call arrived, and its tool did not run.
	BeforeEffect Place = "before-effect"
	// AfterEffect: the tool ran, and the call is not yet answered.
	AfterEffect Place = "after-effect"
)

// Rule is one fault and when it strikes.
type Rule struct {
	Fault Fault
	At    Place
	// Tool makes only the calls of this tool occasions; empty means all.
	Tool string
	// Nth is the first matching occasion at which the fault strikes, from 1.
	// Zero means 1.
	Nth int
	// Times is at how many occasions in a row it strikes. Zero means 1; see
	// [Always].
	Times int

	// The rest is for the faults whose Info.About names it; zero means the
	// default that is given there.

	// Code is a status of gRPC, and Text its message.
	Code codes.Code
	Text string
	// Reason is an error code of HTTP/2 (RFC 9113, § 7).
	Reason uint32
	// Delay is a time to wait.
	Delay time.Duration
	// Count is a number of tools.
	Count int
	// Size is a number of bytes.
	Size int
}

func (r *Rule) check(withTLS bool) error {
	kind, ok := findKind(r.Fault)
	switch {
	case !ok:
		return fmt.Errorf("grpctooltest: there is no fault %q", r.Fault)
	case !slices.Contains(kind.Places, r.At):
		return fmt.Errorf("grpctooltest: the fault %q strikes at %q, and never at %q", r.Fault, kind.Places, r.At)
	case kind.tls && !withTLS:
		return fmt.Errorf("grpctooltest: the fault %q needs Options.TLS", r.Fault)
	case r.Tool != "" && r.At != BeforeEffect && r.At != AfterEffect:
		return fmt.Errorf("grpctooltest: at %q there is no tool", r.At)
	case r.Nth < 0 || r.Times < Always || r.Delay < 0 || r.Count < 0 || r.Size < 0:
		return fmt.Errorf("grpctooltest: the rule for %q has a number below 0", r.Fault)
	}
	return nil
}

// script is rules, with the occasions that were seen of each.
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

// at counts an occasion, and returns the rules that strike at it.
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
