// SPDX-License-Identifier: Apache-2.0

package pins

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/consort-go/consort/invoker"
)

// Definition is what is pinned of a tool, beside its name.
type Definition struct {
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// InputSchema and OutputSchema are in canonical form: members sorted, no
	// white space. OutputSchema is nil if there is none.
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Hints        Hints           `json:"hints"`
}

// Hints are an [invoker.Hints]. Nil is what the tool did not say.
type Hints struct {
	ReadOnly    bool  `json:"read_only,omitempty"`
	Idempotent  bool  `json:"idempotent,omitempty"`
	Destructive *bool `json:"destructive,omitempty"`
	OpenWorld   *bool `json:"open_world,omitempty"`
}

// Fingerprint returns what a tool is known by when it is pinned: "sha256:" and
// the hexadecimal digits of the hash of its name and all that a [Definition] has.
func Fingerprint(d *invoker.Definition) string { return newDefinition(d).fingerprint(valid(d.Name)) }

func newDefinition(d *invoker.Definition) Definition {
	return Definition{
		Title: valid(d.Title), Description: valid(d.Description),
		InputSchema: canonical(d.InputSchema), OutputSchema: canonical(d.OutputSchema),
		Hints: Hints(d.Hints),
	}
}

// fingerprint is the SHA-256 of the canonical JSON of a definition with its
// name.
func (d Definition) fingerprint(name string) string {
	sum := sha256.Sum256(encode(struct {
		Name string `json:"name"`
		Definition
	}{name, d}))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// valid returns text as it can stand in JSON, and so come back from it.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// canonical returns a JSON text as all that say the same have it. Numbers stay
// as they are written. What is no JSON becomes a JSON string of it.
func canonical(text json.RawMessage) json.RawMessage {
	if len(text) == 0 {
		return nil
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil || !json.Valid(text) {
		value = valid(string(text))
	}
	return encode(value)
}

// encode writes compact JSON with sorted members. The values are ours, or came
// from JSON: there is nothing that cannot be written.
func encode(value any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
