// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/consort-go/consort/internal/suggest"
)

// Script defines the faults of a server, and when they strike. Its zero value is a
// server without faults. It has a JSON form, which [ParseScript] reads and json.Marshal
// writes: the names of the fields in lower case with underscores, and durations as
// "1m30s".
type Script struct {
	// Dir is a directory for the ledger (see [ReadLedger]) and for the count of
	// occasions; it must exist. All processes with the same Dir add to the same ledger
	// and the same count, so that "die once, then behave" also works for a process that
	// is restarted. Empty means no ledger, and a count that ends with the process, or
	// with the [Server].
	Dir string
	// Life is the time after which an abandoned process ends by itself, with the status
	// 99, even if it ignores everything else. Zero means five minutes.
	Life time.Duration
	// Rules are checked in order at each occasion. When several strike, they are
	// applied in order until one of them ends the request. Processes with the same Dir
	// must have the same rules in the same order.
	Rules []Rule
}

// Always, as [Rule.Times], means every occasion from the nth on.
const Always = -1

// Rule is a fault and when it strikes.
type Rule struct {
	Fault Fault
	At    Place
	// Tool restricts the occasions to calls of this tool; empty means all tools. It is
	// for "before-effect", "after-effect" and "between-calls".
	Tool string
	// Nth is the number of the first matching occasion that the fault strikes at, from
	// 1. Zero means 1.
	Nth int
	// Times is the number of consecutive occasions that it strikes at. Zero means 1;
	// see [Always].
	Times int

	// The remaining fields are for the faults whose Info.About names them; zero means
	// the default given there.

	// Status is the exit status of a process that dies.
	Status int
	// Text is written to stderr first.
	Text string
	// Delay is a time to wait, or a lifetime.
	Delay time.Duration
	// Count is a number of messages, tools or levels.
	Count int
	// Size is a number of bytes.
	Size int64
}

const defaultLife = 5 * time.Minute

// rulePlain and scriptPlain are the JSON forms.
type rulePlain struct {
	Fault  Fault  `json:"fault"`
	At     Place  `json:"at"`
	Tool   string `json:"tool,omitempty"`
	Nth    int    `json:"nth,omitempty"`
	Times  int    `json:"times,omitempty"`
	Status int    `json:"status,omitempty"`
	Text   string `json:"text,omitempty"`
	Delay  span   `json:"delay,omitempty"`
	Count  int    `json:"count,omitempty"`
	Size   int64  `json:"size,omitempty"`
}

type scriptPlain struct {
	Dir   string      `json:"dir,omitempty"`
	Life  span        `json:"life,omitempty"`
	Rules []rulePlain `json:"rules,omitempty"`
}

// span is a duration in text form.
type span time.Duration

func (s span) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }

func (s *span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*s = span(d)
	return err
}

// MarshalJSON writes the form that [ParseScript] reads.
func (s Script) MarshalJSON() ([]byte, error) {
	plain := scriptPlain{Dir: s.Dir, Life: span(s.Life)}
	for _, r := range s.Rules {
		plain.Rules = append(plain.Rules, rulePlain{r.Fault, r.At, r.Tool, r.Nth, r.Times, r.Status, r.Text, span(r.Delay), r.Count, r.Size})
	}
	return json.Marshal(plain)
}

// UnmarshalJSON reads the form of [ParseScript], without checking the rules.
func (s *Script) UnmarshalJSON(data []byte) error {
	var plain scriptPlain
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&plain); err != nil {
		return err
	}
	*s = Script{Dir: plain.Dir, Life: time.Duration(plain.Life)}
	for _, r := range plain.Rules {
		s.Rules = append(s.Rules, Rule{r.Fault, r.At, r.Tool, r.Nth, r.Times, r.Status, r.Text, time.Duration(r.Delay), r.Count, r.Size})
	}
	return nil
}

// ParseScript parses a script from JSON such as
//
//	{"dir": "/tmp/ledger", "rules": [
//		{"fault": "die", "at": "before-effect", "tool": "effect", "nth": 2, "status": 3, "text": "out of luck"},
//		{"fault": "slow", "at": "list", "times": -1, "delay": "150ms"}
//	]}
//
// An unknown field, fault or place is an error.
func ParseScript(data []byte) (Script, error) {
	var s Script
	if err := json.Unmarshal(data, &s); err != nil {
		return Script{}, fmt.Errorf("faultserver: the script: %w", err)
	}
	if err := s.check(viaStdio, viaHTTP); err != nil {
		return Script{}, err
	}
	return s, nil
}

// check returns an error for rules that could never strike over any of these
// transports.
func (s *Script) check(transports ...transport) error {
	var problems []error
	for i := range s.Rules {
		if err := s.Rules[i].check(transports); err != nil {
			problems = append(problems, fmt.Errorf("faultserver: rule %d: %w", i+1, err))
		}
	}
	return errors.Join(problems...)
}

func (r *Rule) check(transports []transport) error {
	k, ok := findKind(r.Fault)
	switch {
	case !ok:
		return fmt.Errorf("unknown fault %q%s", r.Fault, hint(string(r.Fault)))
	case !slices.ContainsFunc(transports, func(t transport) bool { return slices.Contains(k.places(t), r.At) }):
		return fmt.Errorf("%s cannot occur at %q: over stdio only at [%s], over HTTP only at [%s]", r.Fault, r.At, join(k.Stdio), join(k.HTTP))
	case r.Tool != "" && r.At != "before-effect" && r.At != "after-effect" && r.At != "between-calls":
		return fmt.Errorf("tool %q: no tool is called at %q", r.Tool, r.At)
	case r.Nth < 0 || r.Times < Always || r.Status < 0 || r.Count < 0 || r.Size < 0 || r.Delay < 0:
		return errors.New("a number is negative (only times may be -1)")
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

// window returns the first and the last occasion that the rule strikes at; last is 0
// for [Always].
func (r *Rule) window() (first, last int) {
	first = max(r.Nth, 1)
	if r.Times == Always {
		return first, 0
	}
	return first, first + max(r.Times, 1) - 1
}
