// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/internal/modelapi"
	"github.com/tidwall/gjson"
)

// The elements of reasoning_details are limited. An answer with more of them is an error, as a
// shorter list would be sent back.
func TestReasoningDetailsAreLimited(t *testing.T) {
	for _, element := range []string{"{}", `{"index":%d}`} {
		var all strings.Builder
		all.WriteString(`[{"index":"first","text":"So "}`)
		for i := range maxDetails + maxDetails/4 {
			all.WriteByte(',')
			if strings.Contains(element, "%") {
				fmt.Fprintf(&all, element, i)
			} else {
				all.WriteString(element)
			}
		}
		all.WriteByte(']')
		a := &accumulator{emit: func(converse.Delta) {}}
		a.details.add(gjson.Parse(all.String()), true)
		const want = "the answer holds more than 262144 reasoning_details"
		if _, err := a.reply(&modelapi.Server{Base: new(url.URL)}, &converse.Request{NewID: func() string { return "a" }}); len(a.details.list) != maxDetails || maxDetails != 262144 || err == nil || err.Error() != want {
			t.Errorf("%s: %d details, want %d; error %v", element, len(a.details.list), maxDetails, err)
		}
	}
}

// A piece continues one of the last details only, so that the search costs little.
func TestReasoningDetailsAreContinued(t *testing.T) {
	for _, after := range []int{maxOpen - 1, maxOpen} {
		var d details
		d.add(gjson.Parse(`[{"index":0,"text":"So "}]`), true)
		for i := range after {
			d.add(gjson.Parse(fmt.Sprintf(`[{"index":%d,"text":"other"}]`, i+1)), true)
		}
		d.add(gjson.Parse(`[{"index":0,"text":"then."}]`), true)
		want := after + 1
		if after == maxOpen {
			want++
		}
		if text := string(d.text()); len(d.list) != want || strings.HasPrefix(text, `[{"index":0,"text":"So then."},`) != (after < maxOpen) {
			t.Errorf("after %d others: %d details, want %d; they begin %.80s", after, len(d.list), want, text)
		}
	}
}

// Members stay as they are.
func TestReasoningDetailsAreUnchanged(t *testing.T) {
	const sent = `[{"data":"","index":0,"summary":null,"text":"a\u0000\"<é"},{"text":7},{"text":["a"]}]`
	var d details
	d.add(gjson.Parse(sent), true)
	if got := string(d.text()); got != sent {
		t.Errorf("%s, want %s", got, sent)
	}
}

// The cost of a text in pieces grows with its length, and not with its square.
func TestManyPieces(t *testing.T) {
	const n, size = 20_000, 10
	piece := strings.Repeat("o", size)
	parts := strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"`+piece+`"},`, n), ",")
	thinking := `{"type":"thinking","thinking":[` + parts + `]}`
	for name, delta := range map[string]string{
		"reasoning_details": `{"reasoning_details":[` + strings.TrimSuffix(strings.Repeat(`{"index":0,"text":"`+piece+`"},`, n), ",") + `]}`,
		"content":           `{"content":[` + parts + `]}`,
		"thinking":          `{"content":[` + thinking + `]}`,
	} {
		chunk := gjson.Parse(`{"choices":[{"delta":` + delta + `}]}`)
		said := 0
		a := &accumulator{emit: func(d converse.Delta) { said += len(d.Text) + len(d.Reasoning) }}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a.Add("", chunk)
		runtime.ReadMemStats(&after)
		if name == "reasoning_details" {
			said = strings.Count(string(a.details.text()), "o")
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; said != n*size || allocated > 100<<20 {
			t.Errorf("%s: %d bytes, want %d; %d MiB are allocated", name, said, n*size, allocated>>20)
		}
	}
}
