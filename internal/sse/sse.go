// SPDX-License-Identifier: Apache-2.0

// Package sse reads and writes streams of server-sent events (WHATWG HTML, section
// 9.2).
//
// [Reader] deviates from the standard in one point: it returns an event whose blank
// line is missing at the end of the stream, and marks it as partial, because some
// servers end their streams this way.
package sse

import (
	"bytes"
	"fmt"
)

// Bytes returns the event in its wire format; nil if it has no field. Line breaks in
// the data become spaces, which is harmless for JSON.
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
