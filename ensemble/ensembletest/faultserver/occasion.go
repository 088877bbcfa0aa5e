// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"fmt"
	"io"
	"time"
)

// occasion is a moment when faults may strike.
type occasion struct {
	server *server
	place  Place
	rule   *Rule // the rule that strikes now
	link   link

	// The rest is nil between requests.

	request   *request
	cancelled <-chan struct{} // closed when the client cancels the request
	answer    *answer         // nil for a call before its effect
	listing   *listing        // of an answer to tools/list
}

// strike applies the rules in order. It reports false when one of them ends the
// request.
func (o *occasion) strike(rules []Rule) bool {
	for i := range rules {
		o.rule = &rules[i]
		e := Entry{Kind: KindStruck, Fault: o.rule.Fault, Place: o.place}
		if o.request != nil {
			e.Request, e.Tool, e.Key = o.request.ID, o.request.Params.Name, o.request.Params.Meta.Key
		}
		if !o.server.record(e) {
			return false
		}
		if o.server.struck != nil {
			o.server.struck(e)
		}
		k, _ := findKind(o.rule.Fault) // the script was checked
		if !k.strike(o) {
			return false
		}
	}
	return !o.server.hasEnded()
}

// pause waits. It reports false when the server ended or the client cancelled in the
// meantime. A client that only disconnects does not cancel (MCP 2025-11-25, transports,
// "disconnection should not be interpreted as cancelling").
func (o *occasion) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-o.cancelled:
	case <-o.server.ctx.Done():
	}
	return false
}

// hang waits until the client no longer waits for an answer.
func (o *occasion) hang() bool {
	select {
	case <-o.link.done():
	case <-o.server.ctx.Done():
	}
	return false
}

// die ends the server.
func (o *occasion) die() bool {
	if o.rule.Text != "" {
		fmt.Fprintln(o.server.stderr, o.rule.Text)
	}
	o.server.end(o.rule.Status)
	o.link.cut()
	return false
}

// junk writes lines that are not messages.
func junk(size int64) writer {
	const line = "INFO this line is a log message on the wrong stream\n"
	return func(w io.Writer) error {
		for ; size > 0; size -= int64(len(line)) {
			if _, err := io.WriteString(w, line); err != nil {
				return err
			}
		}
		return nil
	}
}
