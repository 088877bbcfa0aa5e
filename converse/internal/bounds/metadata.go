// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/textcut"
)

// maxMIME is the maximum length in bytes of a media type; RFC 6838 allows 255.
const maxMIME = 255

// boundMIME cuts the media type of a content to maxMIME bytes.
func boundMIME(content canister.Content) canister.Content {
	if !hasLongMIME(content) {
		return content
	}
	p := canister.PayloadOf(content)
	p.MIME = textcut.Prefix(p.MIME, maxMIME)
	return canister.WithPayload(content, p)
}

func hasLongMIME(content canister.Content) bool {
	return len(canister.PayloadOf(content).MIME) > maxMIME
}

// fieldsSize returns the size of fields in bytes.
func fieldsSize(fields canister.Fields) (bytes int) {
	for name, value := range fields {
		bytes += len(name) + len(value)
	}
	return bytes
}

// Writable returns contents and metadata of a result without metadata that cannot be
// encoded. A line names the omitted metadata. If all can be encoded, it returns its arguments.
func Writable(contents []canister.Content, metadata canister.Fields) ([]canister.Content, canister.Fields) {
	whole := canister.User{Head: canister.Head{Extra: canister.Extra{Metadata: metadata}}, Content: contents}
	if canister.Writable(whole) == nil && !slices.ContainsFunc(contents, hasLongMIME) {
		return contents, metadata
	}
	contents = slices.Clone(contents)
	var out []string
	for i, c := range contents {
		if c = boundMIME(c); !hasForm(c) {
			p := canister.PayloadOf(c)
			p.Metadata, out = writableFields(p.Metadata, out)
			p.Unknown, out = writableFields(p.Unknown, out)
			if c = canister.WithPayload(c, p); !hasForm(c) { // names that the JSON form itself uses
				out = append(out, slices.Sorted(maps.Keys(p.Unknown))...)
				p.Unknown = nil
				c = canister.WithPayload(c, p)
			}
		}
		contents[i] = c
	}
	metadata, out = writableFields(metadata, out)
	if len(out) > 0 {
		more := ""
		if n := len(out) - maxCutLines; n > 0 {
			out, more = out[:maxCutLines], fmt.Sprintf(" and %d more", n)
		}
		for i := range out {
			out[i] = fmt.Sprintf("%q", textcut.Bytes(out[i], MaxQuoted))
		}
		contents = append(contents, canister.Text("[omitted: metadata that has no JSON form: "+strings.Join(out, ", ")+more+"]"))
	}
	return contents, metadata
}

// hasForm reports whether a content can be encoded.
func hasForm(c canister.Content) bool {
	return canister.Writable(canister.User{Content: []canister.Content{c}}) == nil
}

// writableFields returns the fields that can be encoded, and appends the names of the
// others to out.
func writableFields(fields canister.Fields, out []string) (canister.Fields, []string) {
	if canister.Writable(canister.User{Head: canister.Head{Extra: canister.Extra{Metadata: fields}}}) == nil {
		return fields, out
	}
	kept := canister.Fields{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		one := canister.Fields{name: fields[name]}
		if canister.Writable(canister.User{Head: canister.Head{Extra: canister.Extra{Metadata: one}}}) == nil {
			kept[name] = fields[name]
		} else {
			out = append(out, name)
		}
	}
	return kept, out
}

// Metadata removes metadata of contents and of their result that do not fit into
// limit together with the contents. A line says how much, and the whole of the removed
// metadata is passed to keep. A negative limit means no limit. If all fits, Metadata returns
// its arguments.
func Metadata(contents []canister.Content, metadata canister.Fields, limit int, keep Keep) ([]canister.Content, canister.Fields) {
	left, size := limit, fieldsSize(metadata)
	for _, c := range contents {
		left -= Size(c)
		p := canister.PayloadOf(c)
		size += fieldsSize(p.Metadata) + fieldsSize(p.Unknown)
	}
	if limit < 0 || size <= max(0, left) {
		return contents, metadata
	}
	cut := 0
	fits := func(fields canister.Fields) bool {
		n := fieldsSize(fields)
		if n > max(0, left) {
			cut += n
			return false
		}
		left -= n
		return true
	}
	var whole []canister.Fields
	kept := slices.Clone(contents)
	for i, c := range kept {
		p := canister.PayloadOf(c)
		for _, fields := range []*canister.Fields{&p.Metadata, &p.Unknown} {
			if !fits(*fields) {
				whole = append(whole, *fields)
				*fields = nil
			}
		}
		kept[i] = canister.WithPayload(c, p)
	}
	if !fits(metadata) {
		whole, metadata = append(whole, metadata), nil
	}
	kept = append(kept, canister.Text(cutLine(fmt.Sprintf("%d bytes of metadata", cut), limit)))
	if text, err := json.Marshal(whole); err == nil {
		if link, ok := keep.piece(canister.StructuredContent{JSON: text}); ok {
			kept = append(kept, link)
		}
	}
	return kept, metadata
}
