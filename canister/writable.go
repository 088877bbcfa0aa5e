// SPDX-License-Identifier: Apache-2.0

package canister

import (
	"encoding/json"
	"fmt"
	"sync"
	"unicode/utf8"
)

// Writable returns the error that [Marshal] would return for c, or nil. It is
// cheaper: it skips texts and data, which always have a JSON form.
func Writable(c Canister) error {
	if isPlain(c) {
		return nil
	}
	if contents := ContentOf(c); len(contents) > 0 {
		light := make([]Content, len(contents))
		for i, content := range contents {
			p := PayloadOf(content)
			light[i] = WithPayload(content, Payload{JSON: p.JSON, Extra: p.Extra})
		}
		c = WithContent(c, light)
	}
	form := forms.Get().(*[]byte)
	defer forms.Put(form)
	written, err := appendCanister((*form)[:0], c)
	if cap(written) <= maxForm {
		*form = written
	}
	if err != nil {
		return fmt.Errorf("canister: %w", err)
	}
	return nil
}

// isPlain reports whether c has texts and short metadata, as most
// canisters do.
func isPlain(c Canister) bool {
	switch c := c.(type) {
	case User, Assistant, Supervisor, Document, Invocation, Result:
	case Intent:
		if !c.Approved.IsZero() {
			return false
		}
	default:
		return false
	}
	head := c.Header()
	if year := head.Time.UTC().Year(); year < 0 || year > 9999 || !head.isPlain() {
		return false
	}
	for _, content := range ContentOf(c) {
		if text, ok := content.(TextContent); !ok || !text.isPlain() {
			return false
		}
	}
	return true
}

// isShort reports whether the form of a plain canister is surely shorter than [MaxLine]. A
// byte of a text has at most six bytes in the form.
func isShort(c Canister) bool {
	head := c.Header()
	size := len(head.ID) + head.size()
	switch c := c.(type) {
	case User, Supervisor:
	case Assistant:
		size += len(c.Model) + len(c.Finish)
	case Document:
		size += len(c.Title) + len(c.URI)
	case Invocation:
		size += len(c.Message) + len(c.CallID) + len(c.Name) + len(c.Arguments) + len(c.Parent)
	case Result:
		size += len(c.Invocation) + len(c.Parent) + len(c.Code)
	case Intent:
		size += len(c.Invocation) + len(c.Key) + len(c.Wait) + len(c.Arguments) + len(c.Identity) + len(c.Fingerprint)
	default:
		return false // not plain
	}
	for _, content := range ContentOf(c) {
		if text, ok := content.(TextContent); ok {
			size += perEntry + len(text.Text) + text.size()
		}
	}
	return size < MaxLine/8
}

// perEntry bounds the bytes that the form of a piece of content or of metadata has in
// addition to its texts.
const perEntry = 64

// size returns the number of bytes of the metadata of plain content, and perEntry for each.
func (e *Extra) size() int {
	size := 0
	for name, value := range e.Metadata {
		size += perEntry + len(name) + len(value)
	}
	return size
}

// isPlain reports whether there are only metadata, and all of them are short and valid.
func (e *Extra) isPlain() bool {
	for name, value := range e.Metadata {
		if !utf8.ValidString(name) || len(value) > 2*maxNesting || !utf8.Valid(value) || !json.Valid(value) {
			return false
		}
	}
	return len(e.Unknown) == 0
}

// forms has buffers for forms that nothing keeps.
var forms = sync.Pool{New: func() any { return new([]byte) }}

// maxForm bounds the buffers that are kept, in bytes.
const maxForm = 16 << 10
