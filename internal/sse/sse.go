// SPDX-License-Identifier: Apache-2.0

// Package sse reads and writes streams of server-sent events (WHATWG HTML, section
// 9.2).
//
// [Reader] departs from the standard in one point: it returns an event whose blank
// line is missing at the end of the stream, and says so, because some servers end
// their streams in this way.
package sse

import (
	"bytes"
	"fmt"
)

// Bytes returns the event in its form on the wire; nil if it has no field. A line
// break in the data becomes a space, which changes nothing for JSON.
func (e *Event) Bytes() []byte {
	var b bytes.Buffer
	if e.Name != "" {
		fmt.Fprintf(&b, "event: %s\n", e.Name)
	}
	if e.ID != "" {
		fmt.Fprintf(&b, "id: %s\n", e.ID)
	}
	if e.Retry > 0 {
		fmt.Fprintf(&b, "retry: %d\n", e.Retry.Milliseconds())
	}
	if len(e.Data) > 0 {
		fmt.Fprintf(&b, "data: %s\n", bytes.ReplaceAll(e.Data, []byte("\n"), []byte(" ")))
	}
	if b.Len() == 0 {
		return nil
	}
	b.WriteByte('\n')
	return b.Bytes()
}
