// SPDX-License-Identifier: Apache-2.0

//go:build linux

package reliability_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/ensemble"
	. "github.com/consort-go/consort/ensemble/ensembletest/faultserver"
)

// moment is when in a conversation a fault strikes.
type moment string

const (
	// connecting: the first connection is being made; the call is one of that
	// same turn.
	connecting moment = "connecting"
	// idle: connected, and no call runs; the call is the next one.
	idle moment = "idle"
	// inCall: the call runs, and nothing else does on that server.
	inCall moment = "in a call"
	// parallel: the call runs at the same time as one whose effect has happened and which
	// is not answered yet.
	parallel moment = "in parallel calls"
)

// transport is how the client reaches the server.
type transport string

const (
	overStdio transport = "stdio"
	overHTTP  transport = "http"
)

// cell is one fault at one moment over one transport, and what must come of it.
type cell struct {
	Fault Fault
	Via   transport
	When  moment
	At    Place
	outcome
}

// outcome is the expected result of a cell. In addition, every cell checks that the
// history is valid after each turn, that calls of another ensemble succeed in the same
// messages, that no effect happens twice, and that nothing is left.
type outcome struct {
	// Call is the code of the call that meets the fault, OK if it succeeds.
	// Where the truth allows two codes they are joined by " or ".
	Call string
	// Effects is how often that call took effect: "0", "1", or "0 or 1".
	Effects string
	// Sibling is the code of the concurrent call; empty for none. Its effect happened
	// once.
	Sibling string
	// Connection is kept or fresh: whether the next calls went over the same.
	Connection string
	// Back is when calls succeed again.
	Back string
}

// What outcomes say.
const (
	ok    = "OK"
	kept  = "kept"
	fresh = "fresh"

	atOnce = "at once"        // the very next call
	soon   = "within 30 s"    // one of the next
	bound  = 30 * time.Second // of soon, and of everything that is waited for
)

func (c cell) name() string {
	return strings.ReplaceAll(fmt.Sprintf("%s/%s/%s/%s", c.Fault, c.Via, c.When, c.At), " ", "-")
}

// allows reports whether the observed code is one of the alternatives of want.
func allows(want, seen string) bool { return slices.Contains(strings.Split(want, " or "), seen) }

// timesOut reports whether the cell waits for a call to run out of time: the
// one that is struck, its sibling, or one after it on a server gone deaf.
func (c cell) timesOut() bool {
	deaf := c.Via == overStdio && c.When != connecting && c.Back == soon
	return deaf || strings.Contains(c.Call+c.Sibling, "TIMEOUT")
}

// before is the code of the call before the fault. Over HTTP an endless line follows the
// answer in the same response, and can spoil it.
func (c cell) before() string {
	if c.Fault == "endless-line" && c.Via == overHTTP && c.When == idle {
		return ok + " or RESULT_TOO_LARGE"
	}
	return ok
}

// rules are the script of the server.
func (c cell) rules() []Rule {
	rule := Rule{Fault: c.Fault, At: c.At, Text: "last words", Status: 7}
	switch c.Fault {
	case "flood-stderr", "flood-stdout":
		rule.Size = maxMessage / 2
	case "deep-schema", "list-changed-storm", "progress-storm", "log-storm":
		rule.Count = 200
	case "many-tools":
		rule.Count = 1200
	case "huge-schema":
		rule.Size = 128 << 10
	case "endless-line", "huge-result":
		rule.Size = 2 * maxMessage
	}
	switch c.When {
	case idle:
		rule.Tool = "echo"
	case inCall, parallel:
		rule.Tool = "effect"
	}
	if c.When != parallel {
		return []Rule{rule}
	}
	held := Rule{Fault: "slow", At: "after-effect", Tool: "idempotent_effect", Delay: 500 * time.Millisecond}
	if c.Sibling != ok {
		held.Fault = "silence" // so that it surely runs when the fault strikes
	}
	return []Rule{rule, held}
}

// computes reports whether the client computes for seconds under the race detector, before it is connected: such
// cells run alone. Sixteen cells at once took longer than the time of a connection for 1,200 tools.
func (c cell) computes() bool {
	return c.When == connecting && (c.Fault == "many-tools" || c.Fault == "huge-schema")
}

// options are those of the ensemble. Limits that the cell does not test are long, so that
// a slow machine changes no outcome.
func (c cell) options() *ensemble.Options {
	o := &ensemble.Options{ConnectTimeout: bound, CallTimeout: bound}
	if c.When == connecting && c.Call != ok {
		o.ConnectTimeout = 4 * time.Second
	}
	if c.timesOut() || c.When == idle && c.Connection == fresh {
		o.ConnectTimeout, o.KeepAlive = 4*time.Second, time.Second
	}
	if c.timesOut() {
		o.CallTimeout = 3 * time.Second
	}
	return o
}

// moments are the moments at which a fault can occur over a transport, and its places.
func moments(info Info, via transport) map[moment][]Place {
	places := info.Stdio
	if via == overHTTP {
		places = info.HTTP
	}
	first := func(wanted ...Place) []Place {
		for _, place := range wanted {
			if slices.Contains(places, place) {
				return []Place{place}
			}
		}
		return nil
	}
	found := map[moment][]Place{
		connecting: first("initialize", "list", "start"),
		idle:       first("between-calls"),
		inCall:     slices.Concat(first("before-effect"), first("after-effect")),
		parallel:   first("after-effect", "before-effect"),
	}
	return found
}
