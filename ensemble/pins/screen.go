// SPDX-License-Identifier: Apache-2.0

package pins

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
)

// Policy determines what happens to a tool whose definition differs from the pinned
// one, or that is new since its ensemble was pinned. [Warn] and [Allow] pin a new tool
// at once.
type Policy string

// The policies.
const (
	SetAside Policy = "set_aside" // not offered until the change is accepted; the default
	Warn     Policy = "warn"      // offered, with a warning in the log until the change is accepted
	Allow    Policy = "allow"     // offered, and pinned with its current definition
)

// Screen returns a function for Options.Screen of the ensemble with this name. An empty
// policy means [SetAside]; logger may be nil. The function may be called concurrently;
// it waits at most 2 s for another process that writes the file.
func (f *File) Screen(ensemble string, policy Policy, logger *zap.Logger) func([]*invoker.Definition) map[string]error {
	s := &screen{file: f, ensemble: validUTF8(ensemble), policy: policy, log: logevent.Logger(logger).With(zap.String("ensemble", ensemble))}
	return s.check
}

// screen checks the lists of tools of one ensemble.
type screen struct {
	file     *File
	ensemble string
	policy   Policy
	log      *zap.Logger
}

// listedTool is a tool of a list.
type listedTool struct {
	name    string   // as listed
	entry   Entry    // the entry after this list
	first   bool     // it has no entry, and gets one
	changed bool     // its definition differs from the pinned one
	changes []Change // the differences
	dirty   bool     // the entry must be written
}

func (s *screen) check(definitions []*invoker.Definition) map[string]error {
	seen := s.fingerprints(definitions)
	var compared []listedTool
	err := s.file.update(listPatience, func(entries []Entry) (next []Entry, changed bool) {
		compared, next, changed = s.compare(seen, entries)
		return next, changed
	})
	if err != nil {
		err = s.file.wrap(err)
		s.log.Warn("the tools could not be compared with their pins, or could not be pinned", logevent.PinsFailed, zap.Error(err))
	}
	if compared == nil && err != nil { // the file could not be read
		return s.asideAll(seen, err)
	}
	return s.decide(compared, err)
}

// fingerprints computes the fingerprints of a list; of tools with the same name, only the
// first counts.
func (s *screen) fingerprints(definitions []*invoker.Definition) []listedTool {
	seen := make([]listedTool, 0, len(definitions))
	names := make(map[string]bool, len(definitions))
	for _, d := range definitions {
		name := validUTF8(d.Name)
		if names[name] {
			continue
		}
		names[name] = true
		pin := newDefinition(d)
		seen = append(seen, listedTool{name: d.Name, entry: Entry{
			Ensemble: s.ensemble, Tool: name, Fingerprint: pin.fingerprint(name), Definition: pin,
		}})
	}
	return seen
}

// compare compares a list with the pinned entries, and returns the new entries.
func (s *screen) compare(seen []listedTool, entries []Entry) (compared []listedTool, next []Entry, changed bool) {
	compared = slices.Clone(seen)
	next = slices.Clone(entries)
	at := now()
	isPinned := slices.ContainsFunc(entries, func(e Entry) bool { return e.Ensemble == s.ensemble })
	for i := range compared {
		c := &compared[i]
		index, known := slices.BinarySearchFunc(entries, c.entry, compareEntries)
		switch {
		case known && (s.strict() || !entries[index].IsNew()):
			c.compareWith(entries[index], s.policy, at)
		case isPinned && s.strict():
			c.compareWith(Entry{Ensemble: c.entry.Ensemble, Tool: c.entry.Tool}, s.policy, at)
		default:
			c.entry.Pinned, c.first, c.dirty = at, true, true
		}
		switch {
		case known && c.dirty:
			next[index] = c.entry
		case c.dirty:
			next = append(next, c.entry)
		}
		changed = changed || c.dirty
	}
	slices.SortFunc(next, compareEntries)
	return compared, next, changed
}

// compareWith compares a tool with its pin.
func (c *listedTool) compareWith(pinned Entry, policy Policy, at time.Time) {
	listed := c.entry
	c.entry = pinned
	if listed.Fingerprint == pinned.Fingerprint {
		c.entry.Pending, c.dirty = nil, pinned.Pending != nil
		return
	}
	c.changed, c.changes = true, pinned.Definition.changes(listed.Definition)
	switch {
	case policy == Allow:
		listed.Pinned = at
		c.entry, c.dirty = listed, true
	case pinned.Pending == nil || pinned.Pending.Fingerprint != listed.Fingerprint:
		c.entry.Pending, c.dirty = &Pending{at, listed.Fingerprint, listed.Definition}, true
	}
}

// decide returns the tools to set aside, with reasons. If err is not nil, the changes
// could not be written.
func (s *screen) decide(compared []listedTool, err error) map[string]error {
	aside := map[string]error{}
	fresh := 0
	for _, c := range compared {
		tool := zap.String("tool", c.entry.Tool)
		switch {
		case c.first && err == nil:
			fresh++
		case c.first && s.strict():
			aside[c.name] = fmt.Errorf("it is new and cannot be pinned: %w", err)
		case !c.changed:
		case s.policy == Allow && err == nil:
			s.log.Info("a tool has changed, and was pinned again", logevent.PinChanged, tool, zap.String("changed", whatChanged(c.changes)))
		case s.strict() && c.entry.IsNew():
			aside[c.name] = c.reason(err)
			s.log.Warn("a tool is new since the tools of its server were pinned, and was set aside", logevent.PinChanged, tool)
		case s.strict():
			aside[c.name] = c.reason(err)
			s.log.Warn("a tool has changed since it was pinned, and was set aside", logevent.PinChanged, tool, zap.String("changed", whatChanged(c.changes)))
		default:
			s.log.Warn("a tool has changed since it was pinned", logevent.PinChanged, tool, zap.String("changed", whatChanged(c.changes)), zap.String("accept", c.command()))
		}
	}
	if fresh > 0 {
		s.log.Info("tools were pinned", logevent.Pinned, zap.Int("tools", fresh))
	}
	return aside
}

// asideAll returns the tools to set aside when the file cannot be read.
func (s *screen) asideAll(seen []listedTool, err error) map[string]error {
	if !s.strict() {
		return nil
	}
	aside := make(map[string]error, len(seen))
	for _, c := range seen {
		aside[c.name] = fmt.Errorf("it cannot be compared with its pin: %w", err)
	}
	return aside
}

// strict reports whether the policy is [SetAside], as which an unknown policy counts.
func (s *screen) strict() bool { return s.policy != Warn && s.policy != Allow }

// reason returns why a changed tool is set aside.
func (c *listedTool) reason(err error) error {
	if c.entry.IsNew() && err == nil {
		return fmt.Errorf("it is new since the tools of its server were pinned; see consort pins, and accept it with: %s", c.command())
	}
	if c.entry.IsNew() {
		return fmt.Errorf("it is new since the tools of its server were pinned, and this cannot be recorded: %w", err)
	}
	since := fmt.Sprintf("%s changed since it was pinned on %s", whatChanged(c.changes), c.entry.Pinned.Format(time.DateOnly))
	if err != nil {
		return fmt.Errorf("%s, and the change cannot be recorded: %w", since, err)
	}
	return fmt.Errorf("%s; see consort pins, and accept it with: %s", since, c.command())
}

// command returns the command that accepts the tool.
func (c *listedTool) command() string {
	if strings.HasPrefix(c.entry.Ensemble, "-") || strings.HasPrefix(c.entry.Tool, "-") {
		return "consort pins accept -- " + word(c.entry.Ensemble) + " " + word(c.entry.Tool)
	}
	return "consort pins accept " + word(c.entry.Ensemble) + " " + word(c.entry.Tool)
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,][A-Za-z0-9_./:@%+,-]*$`)

// word quotes a name for a shell if needed: the server chose the name, and a user may
// paste the command.
func word(name string) string {
	if plainWord.MatchString(name) {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
