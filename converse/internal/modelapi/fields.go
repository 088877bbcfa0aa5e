// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"slices"

	"github.com/consort-go/consort/converse"
)

// fields are the members of a request that are neither its messages nor its tools, with
// the settings that they were encoded for.
type fields struct {
	text        string
	encoded     bool
	answers     bool
	maxTokens   int64
	temperature *float64
	stop        []string
	more        string
}

// matches reports whether a request has the same settings.
func (f *fields) matches(r *converse.Request, more string) bool {
	same := f.temperature == r.Temperature || f.temperature != nil && r.Temperature != nil && *f.temperature == *r.Temperature
	return f.encoded && same && f.answers == r.Purpose.Answers() && f.maxTokens == r.MaxTokens && f.more == more && slices.Equal(f.stop, r.Stop)
}

// Fields returns what encode returns. The transcript keeps it for the next request with
// the same settings. more describes whatever else encode depends on.
func (t *Transcript) Fields(r *converse.Request, more string, encode func() (string, error)) (string, error) {
	if t.fields.matches(r, more) {
		return t.fields.text, nil
	}
	text, err := encode()
	if err != nil {
		return "", err
	}
	t.fields = fields{text: text, encoded: true, answers: r.Purpose.Answers(), maxTokens: r.MaxTokens, stop: slices.Clone(r.Stop), more: more}
	if r.Temperature != nil {
		temperature := *r.Temperature
		t.fields.temperature = &temperature
	}
	return text, nil
}
