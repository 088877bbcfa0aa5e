// SPDX-License-Identifier: Apache-2.0

package pins

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/invoker"
)

// Definition is the pinned part of a tool's definition, without the name.
type Definition struct {
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// InputSchema and OutputSchema are in canonical form: members sorted, no white
	// space. OutputSchema is nil if the tool has none.
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Hints        Hints           `json:"hints"`
}

// Hints are the pinned form of [invoker.Hints]. Nil means that the tool did not declare
// the hint.
type Hints struct {
	ReadOnly    bool  `json:"read_only,omitempty"`
	Idempotent  bool  `json:"idempotent,omitempty"`
	Destructive *bool `json:"destructive,omitempty"`
	OpenWorld   *bool `json:"open_world,omitempty"`
}

// Fingerprint returns the fingerprint of a tool: "sha256:" and the hexadecimal digits
// of the hash of its name and all parts of its [Definition].
func Fingerprint(d *invoker.Definition) string {
	return newDefinition(d).fingerprint(validUTF8(d.Name))
}

func newDefinition(d *invoker.Definition) Definition {
	return Definition{
		Title: validUTF8(d.Title), Description: validUTF8(d.Description),
		InputSchema: canonical(d.InputSchema), OutputSchema: canonical(d.OutputSchema),
		Hints: Hints(d.Hints),
	}
}

// fingerprint returns the SHA-256 of the canonical JSON of a definition with its name.
func (d Definition) fingerprint(name string) string {
	sum := sha256.Sum256(encode(struct {
		Name string `json:"name"`
		Definition
	}{name, d}))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// validUTF8 returns text as valid UTF-8, so that it survives a round trip through JSON.
func validUTF8(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// canonical returns a JSON text in canonical form, so that equivalent texts become
// equal. Numbers stay as they are written. A text that is not JSON becomes a JSON
// string.
func canonical(text json.RawMessage) json.RawMessage {
	if len(text) == 0 {
		return nil
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil || !json.Valid(text) {
		value = validUTF8(string(text))
	}
	return encode(value)
}

// encode returns compact JSON with sorted members. It cannot fail, since the values
// have types of this package or came from JSON.
func encode(value any) []byte {
	text, _ := jsontext.Encode(value)
	return text
}
