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

// The limits for recorded texts, in bytes. maxName is for the names of spans and
// the attributes of measurements, some of which servers and models make up;
// maxMessage is for descriptions, messages and addresses.
const (
	maxName    = 256
	maxMessage = 1024
)

// maxList is the maximum number of elements in a list attribute.
const maxList = 16

// bound limits all texts and lists of texts in attributes and makes them valid
// UTF-8. OTLP does not transmit anything if there is invalid UTF-8.
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

// usual returns a code in the form used for measurements. Numbers are kept if
// they are codes of JSON-RPC (§ Error object; -32099 to -32000 are for servers)
// or HTTP statuses; other numbers become _OTHER.
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

// bounded returns text as valid UTF-8 with at most most bytes, cut between two
// characters.
func bounded(text string, most int) string {
	return textcut.Prefix(valid(text), most)
}

// valid replaces invalid UTF-8.
func valid(text string) string {
	return strings.ToValidUTF8(text, string(utf8.RuneError))
}

// clean returns a function that removes secrets from a text; nil if there are
// none.
func (o *operation) clean() func(text string) string {
	return redact.Trusted(o.ctx, o.telemetry.options.Redact)
}

// text returns the recordable form of a text. It is redacted before it is cut,
// because otherwise half of a secret could remain.
func (o *operation) text(text string) string {
	text = valid(text)
	if clean := o.clean(); clean != nil {
		text = clean(text)
	}
	return bounded(text, maxMessage)
}
