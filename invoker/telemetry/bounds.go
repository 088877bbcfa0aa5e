// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/textcut"
	"go.opentelemetry.io/otel/attribute"
)

// The bounds of what is recorded, in bytes. Names are those of spans and the
// attributes of measurements, some of which servers and models make up; the
// rest are descriptions, messages and addresses.
const (
	maxName    = 256
	maxMessage = 1024
)

// maxList bounds the elements of an attribute that is a list.
const maxList = 16

// bound makes all attributes that are texts, or lists of them, short and valid
// UTF-8, without which OTLP carries nothing at all.
func bound(attributes []attribute.KeyValue, most int) {
	for i := range attributes {
		switch a := &attributes[i]; a.Value.Type() {
		case attribute.STRING:
			if text := a.Value.AsString(); len(text) > most || !utf8.ValidString(text) {
				a.Value = attribute.StringValue(bounded(text, most))
			}
		case attribute.STRINGSLICE:
			list := a.Value.AsStringSlice() // a copy
			list = list[:min(len(list), maxList)]
			for j := range list {
				list[j] = bounded(list[j], most)
			}
			a.Value = attribute.StringSliceValue(list)
		}
	}
}

// usual is a code as measurements have it. Of numbers there are those of
// JSON-RPC (§ Error object; -32099 to -32000 are for servers) and the statuses of
// HTTP; what else a server answers with is _OTHER.
func usual(code string) string {
	n, err := strconv.ParseInt(code, 10, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return code // a name
	case err == nil && (n == -32700 || -32603 <= n && n <= -32600 || -32099 <= n && n <= -32000 || 100 <= n && n < 600):
		return code
	}
	return otherError
}

// bounded is a text as valid UTF-8, cut between two characters.
func bounded(text string, most int) string {
	return textcut.Prefix(valid(text), most)
}

// valid replaces what is not UTF-8.
func valid(text string) string {
	return strings.ToValidUTF8(text, string(utf8.RuneError))
}

// clean takes out what is secret; it is nil if nothing is.
func (o *operation) clean() func(text string) string {
	return redact.Trusted(o.ctx, o.telemetry.options.Redact)
}

// text is what may be recorded of a text: first redacted and then cut, or half
// of a secret would stay.
func (o *operation) text(text string) string {
	text = valid(text)
	if clean := o.clean(); clean != nil {
		text = clean(text)
	}
	return bounded(text, maxMessage)
}
