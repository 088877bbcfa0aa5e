// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// document writes v to standard output as one indented JSON document.
func (p *program) document(v any) error {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("writing the JSON document: %w", err)
	}
	p.screen.resultJSON(b.String())
	return p.screen.failure()
}

// milliseconds converts a duration to its JSON form.
func milliseconds(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}

// asideJSON is a tool that is not offered.
type asideJSON struct {
	Ensemble string `json:"ensemble"`
	Tool     string `json:"tool"`
	Reason   string `json:"reason"`
}

// awayJSON is an ensemble that could not be reached.
type awayJSON struct {
	Ensemble string `json:"ensemble"`
	Error    string `json:"error"`
}
