// SPDX-License-Identifier: Apache-2.0

package compaction

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/notes"
)

func idOf(id string) canister.Head { return canister.Head{ID: id} }

func viewTokens(told []canister.Canister) (tokens int64) {
	for _, c := range told {
		tokens += TokensOf(c)
	}
	return tokens
}

// A digest names what each line is, and has no more bytes than it may have.
func TestDigest(t *testing.T) {
	summary := canister.Document{
		Head: canister.Head{ID: "d", Extra: canister.Extra{Metadata: MarkedBy(Mark{Through: "x"}, nil)}}, Title: "Summary",
		Content: canister.Texts("They met."),
	}
	told := []canister.Canister{
		summary,
		canister.User{Head: idOf("u"), Content: canister.Texts(strings.Repeat("x", 1000))},
		canister.Assistant{Head: idOf("a")},
		canister.Invocation{Head: idOf("i"), Message: "a", Name: "look", Arguments: "{}"},
		canister.Result{Head: idOf("r"), Invocation: "i", Content: canister.Texts(strings.Repeat("y", 5000))},
	}
	whole := Digest(told, 2048, 1<<20)
	for _, want := range []string{`{"from":"summary","text":"They met."}`, `{"from":"tool","tool":"look","text":"yyy`, "[2952 bytes omitted]"} {
		if !strings.Contains(whole, want) {
			t.Errorf("%s is missing in %s", want, whole)
		}
	}
	if Digest(told, 2048, len(whole)) != whole {
		t.Error("what fits is cut")
	}
	for _, most := range []int{len(whole) - 1, 2000, 1000, 700} {
		if out := Digest(told, 2048, most); len(out) > most || !strings.Contains(out, "They met.") {
			t.Errorf("%d bytes, and may have %d", len(out), most)
		}
	}
}

func TestSaid(t *testing.T) {
	object := canister.StructuredContent{JSON: []byte(`{"a":1}`)}
	for _, test := range []struct {
		contents []canister.Content
		want     string
	}{
		{[]canister.Content{object}, `{"a":1}`},
		{[]canister.Content{canister.Text(`{"a":1}`), object}, `{"a":1}`},
		{[]canister.Content{canister.Text("one"), object}, "one\n" + `{"a":1}`},
		{[]canister.Content{canister.ResourceContent{URI: "u", Text: "it"}}, "[the resource u]\nit"},
		{[]canister.Content{canister.ResourceContent{URI: "u", Blob: []byte{1}, Text: "it"}}, "[the resource u]"},
		{canister.Texts("1234567890"), "1234567890"},
		{canister.Texts("1234567äö"), "1234567ä [2 bytes omitted]"},
		{canister.Texts("123456789ä"), "123456789 [2 bytes omitted]"},
	} {
		if got := said(test.contents, 10+100*(len(test.contents)-1)+20*strings.Count(test.want, "[the")); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

func TestDigestTokens(t *testing.T) {
	long := canister.Result{Content: canister.Texts(strings.Repeat("x", 9000))}
	if got, want := digestTokens(long, 3000), int64(1000+16); got != want {
		t.Errorf("%d tokens, want %d", got, want)
	}
	if got, want := digestTokens(canister.User{Content: long.Content}, 3000), int64(3000+8+16); got != want {
		t.Errorf("%d tokens, want %d", got, want)
	}
	if got := (Options{Trim: -1}).DigestTrim(); got != defaultCompactTrim {
		t.Errorf("without cuts it is told %d bytes of a result", got)
	}
}

// Implausible marks are ignored, and so are those that would separate calls from their
// results.
func TestBadMarks(t *testing.T) {
	history := []canister.Canister{
		canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("a")},
		canister.Assistant{Head: canister.Head{ID: "m"}},
		canister.Invocation{Head: canister.Head{ID: "i"}, Message: "m", CallID: "1", Name: "t"},
		canister.Result{Head: canister.Head{ID: "r"}, Invocation: "i", Content: canister.Texts(strings.Repeat("x", 5000))},
	}
	for _, text := range []string{
		`{"through":"m"}`, `{"through":"i"}`, `{"through":"nobody"}`, `{"through":"d"}`, `{}`, `[]`, `null`, `7`,
		`{"through":"r","tokens":-1}`, `{"through":"r","tokens":99999999999999}`, `{"through":"r","trim":-5}`, `{"through":5}`,
	} {
		document := canister.Document{Head: canister.Head{ID: "d", Extra: canister.Extra{Metadata: canister.Fields{notes.CompactionKey: json.RawMessage(text)}}}}
		whole := append(slices.Clone(history), document)
		if told := (&View{}).Of(whole); !reflect.DeepEqual(told, whole) {
			t.Errorf("%s: told %v", text, told)
		}
		if got, want := RequestTokens(whole), viewTokens(whole); got != want {
			t.Errorf("%s: %d tokens, want %d", text, got, want)
		}
	}
}

// The size of a request is the server's last count, without the model's reasoning, plus
// everything since.
func TestLoad(t *testing.T) {
	said := canister.Assistant{Head: canister.Head{ID: "m"}, Usage: &canister.Usage{Input: 1000, Output: 300, Reasoning: 250}}
	user := canister.User{
		Head: canister.Head{ID: "u"}, Content: []canister.Content{canister.Text(strings.Repeat("x", 300)), canister.ImageContent{Data: make([]byte, 1<<20)}},
	}
	marked := canister.Document{Head: canister.Head{ID: "d", Extra: canister.Extra{Metadata: MarkedBy(Mark{Through: "m", Tokens: 77}, nil)}}}
	wait := canister.Wait{Head: canister.Head{ID: "w"}}
	for i, test := range []struct {
		history []canister.Canister
		want    int64
	}{
		{nil, 0},
		{[]canister.Canister{user}, 1108},
		{[]canister.Canister{user, said}, 1050},
		{[]canister.Canister{user, canister.Assistant{Head: canister.Head{ID: "m"}, Usage: &canister.Usage{Input: 5000, Output: 900, Context: 1700}}}, 1700},
		{[]canister.Canister{said, wait, user}, 2158},
		{[]canister.Canister{said, marked, user}, 1185},
		{[]canister.Canister{user, canister.Assistant{Head: canister.Head{ID: "m"}, Usage: &canister.Usage{Output: 5}}}, 1116},
	} {
		if got := RequestTokens(test.history); got != test.want {
			t.Errorf("%d: %d tokens, want %d", i, got, test.want)
		}
	}
}

// A PDF file counts by its pages, and a file that no API carries as the line that is sent.
func TestFiles(t *testing.T) {
	page := "<< /Type /Page /Parent 1 0 R >> << /Type/Pages >> << /Type /PageLabel >>"
	of := func(mime, data string, size int) canister.Canister {
		return canister.Result{Content: []canister.Content{canister.ResourceContent{URI: "file:///a", MIME: mime, Blob: append([]byte(data), make([]byte, size)...)}}}
	}
	for i, test := range []struct {
		result canister.Canister
		want   int64
	}{
		{of("application/pdf", "%PDF-1.4"+page+page, 700_000), 2*tokensPerPage + tokensPerMessage},
		{of("application/pdf", "%PDF-1.7", 10*bytesPerPage), 11*tokensPerPage + tokensPerMessage},
		{of("application/pdf", "%PDF-1.4"+page, 0), int64(len("%PDF-1.4file:///a")+len(page)+2)/3 + tokensPerMessage},
		{of("application/zip", "PK", 700_000), 40},
		{of("image/png", "PNG", 700_000), tokensPerMedia + tokensPerMessage},
	} {
		if got := TokensOf(test.result); got != test.want && (test.want != 40 || got > 40) {
			t.Errorf("%d: %d tokens, want %d", i, got, test.want)
		}
	}
}

// A result that is cut is never longer for it.
func TestCutsAreShorter(t *testing.T) {
	for size := range 3000 {
		result := canister.Result{Head: canister.Head{ID: "r"}, Content: canister.Texts(strings.Repeat("x", size))}
		if size%2 == 0 {
			result.Content = append(result.Content, canister.ResourceContent{URI: "u", Text: strings.Repeat("y", size/2)})
		}
		cut := trimmed(result, 1000)
		if TokensOf(cut) > TokensOf(result) {
			t.Fatalf("of %d bytes: %d tokens were %d", size, TokensOf(cut), TokensOf(result))
		}
		if changed := !reflect.DeepEqual(cut, result); changed != (cut.ID != result.ID) {
			t.Fatalf("of %d bytes: another result has the identity %s", size, cut.ID)
		}
	}
}
