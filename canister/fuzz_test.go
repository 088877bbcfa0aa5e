// SPDX-License-Identifier: Apache-2.0

package canister_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
)

// maker makes canisters in canonical form out of the words that a fuzzer gives.
type maker struct {
	*rand.Rand
	words  []string
	number int64
}

func (m maker) word() string { return m.words[m.IntN(len(m.words))] }

func (m maker) integer() int64 { return m.number >> m.IntN(64) }

// bytes makes nil, none, or some.
func (m maker) bytes() []byte {
	if m.IntN(3) == 0 {
		return nil
	}
	return []byte(m.word())
}

// raw makes a compact JSON text: a word of the fuzzer's if it is one, or else
// one that says the word.
func (m maker) raw() json.RawMessage {
	word := m.word()
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(word)) == nil && json.Valid(compact.Bytes()) && bytes.Equal(bytes.ToValidUTF8(compact.Bytes(), nil), compact.Bytes()) {
		return compact.Bytes()
	}
	quoted, err := json.Marshal([]any{word, m.number, map[string]any{"": nil}})
	if err != nil {
		panic(err)
	}
	return quoted
}

func (m maker) fields(prefix string) canister.Fields {
	if m.IntN(2) == 0 {
		return nil
	}
	fields := canister.Fields{}
	for range 1 + m.IntN(3) {
		fields[prefix+string(bytes.ToValidUTF8([]byte(m.word()), []byte("?")))] = m.raw()
	}
	return fields
}

// The prefix keeps unknown names apart from known ones.
func (m maker) extra() canister.Extra {
	return canister.Extra{Metadata: m.fields(""), Unknown: m.fields("x-")}
}

func (m maker) head() canister.Head {
	head := canister.Head{ID: m.word(), Extra: m.extra()}
	if m.IntN(3) > 0 {
		// From the year 1 to the year 9999.
		seconds := int64(uint64(m.number)%315_537_897_599) - 62_135_596_800
		head.Time = time.Unix(seconds, m.Int64N(1_000_000_000)).UTC()
	}
	return head
}

func (m maker) contents() []canister.Content {
	var contents []canister.Content
	for range m.IntN(4) {
		contents = append(contents, m.content())
	}
	return contents
}

func (m maker) content() canister.Content {
	switch m.IntN(6) {
	case 0:
		return canister.TextContent{Text: m.word(), Extra: m.extra()}
	case 1:
		return canister.ImageContent{Data: m.bytes(), URL: m.word(), MIME: m.word(), Extra: m.extra()}
	case 2:
		return canister.AudioContent{Data: m.bytes(), MIME: m.word(), Extra: m.extra()}
	case 3:
		return canister.ResourceContent{URI: m.word(), MIME: m.word(), Text: m.word(), Blob: m.bytes(), Extra: m.extra()}
	case 4:
		var size *int64
		if n := m.integer(); n&1 == 0 {
			size = &n
		}
		return canister.LinkContent{URI: m.word(), Name: m.word(), Title: m.word(), Description: m.word(), MIME: m.word(), Size: size, Extra: m.extra()}
	}
	return canister.StructuredContent{JSON: m.raw(), Extra: m.extra()}
}

func (m maker) canister() canister.Canister {
	switch m.IntN(9) {
	case 0:
		return canister.User{Head: m.head(), Content: m.contents()}
	case 1:
		return m.assistant()
	case 2:
		return canister.Supervisor{Head: m.head(), Content: m.contents()}
	case 3:
		return canister.Document{Head: m.head(), Title: m.word(), URI: m.word(), Content: m.contents()}
	case 4:
		return canister.Invocation{Head: m.head(), Message: m.word(), CallID: m.word(), Name: m.word(), Arguments: m.word(), Parent: m.word()}
	case 5:
		return canister.Intent{
			Head: m.head(), Invocation: m.word(), Attempt: m.integer(), Key: m.word(), Repeatable: m.IntN(2) == 0, Wait: m.word(), Arguments: m.word(),
		}
	case 6:
		return canister.Wait{Head: m.head(), For: canister.WaitFor(m.word()), Invocation: m.word(), Deadline: m.head().Time,
			Who: m.word(), Conversation: m.word(),
			Identity: m.word(), Fingerprint: m.word(), Arguments: m.word(), Question: m.raw()}
	case 7:
		return canister.Answer{
			Head: m.head(), Wait: m.word(), Verdict: canister.Verdict(m.word()), By: m.word(), Reason: m.word(), Arguments: m.raw(), Content: m.contents(),
		}
	}
	return canister.Result{Head: m.head(), Invocation: m.word(), Parent: m.word(), Content: m.contents(), Code: m.word(), Retryable: m.IntN(2) == 0}
}

func (m maker) assistant() canister.Canister {
	c := canister.Assistant{Head: m.head(), Content: m.contents(), Model: m.word(), Finish: canister.Finish(m.word())}
	if m.IntN(3) == 0 {
		return c
	}
	c.Usage = &canister.Usage{
		Input: m.integer(), Cached: m.integer(), CacheWritten: m.integer(), Output: m.integer(), Reasoning: m.integer(),
		Context: m.integer(),
	}
	if m.IntN(2) == 0 {
		if c.Unknown == nil {
			c.Unknown = canister.Fields{}
		}
		c.Unknown["usage"] = json.RawMessage(`{"a":[1.50],"z":"\u0041"}`)
	}
	return c
}

func FuzzRoundTrip(f *testing.F) {
	words := []string{
		"", "hello", "\xff", "\u2028<&>\"\\\x00\x1f\x7f", `{"base64":"YQ=="}`, `{"b":1,"a":2}`, `"\ud800"`,
		"1e999", "é漢🌧", "id", "\xed\xa0\x80", "\ufffd", "a\nb\r\n", `[ 1 , 2 ]`,
	}
	for i := range uint64(200) {
		f.Add(i, words[i%14], words[i*5%14], words[i*9%14], int64(i*i*i*0x9e3779b97f4a7c15))
	}
	f.Fuzz(func(t *testing.T, seed uint64, one, two, three string, number int64) {
		m := maker{rand.New(rand.NewPCG(seed, 2)), []string{"", one, two, three}, number}
		for range 4 {
			roundTrip(t, m.canister())
		}
	})
}

func FuzzUnmarshal(f *testing.F) {
	for _, c := range slices.Concat(golden(), golden2(), golden3()) {
		line, err := canister.Marshal(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	for _, line := range []string{
		``, `{`, `null`, `{"kind":"user","v":4}`, `{"kind":"intent"}`, `{"kind":"result","parent":"x"}`, `{"kind":"intent","v":2,"attempt":0}`,
		`{"kind":"user","v":1,"x":[ { } ]}`, ` { "kind" : "result" , "retryable" : true } `,
		`{"\u006bind":"user","id":"\ud83c\udf27","id2":"\ud83c"}`, `{"kind":"user","content":[{"type":"link","size":-0}]}`,
		`{"kind":"assistant","usage":{"input":-9223372036854775808,"x":{"y":1}}}`, `{"kind":"user","time":"0000-01-01T00:00:00+23:59"}`,
		`{"kind":"user","id":{"base64":"/w=="}}`, `{"kind":"user","content":[{"type":"audio","data":"YQ\n=="}]}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		c, err := canister.Unmarshal(line)
		if err != nil {
			if c != nil {
				t.Fatalf("both %v and %v", c, err)
			}
			return
		}
		roundTrip(t, c)
		keepsMembers(t, line, c)
	})
}

// keepsMembers fails if a member of the line is not in the line that c gives,
// unless it says no more than its absence does.
func keepsMembers(t *testing.T, line []byte, c canister.Canister) {
	t.Helper()
	written, err := canister.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var was, is map[string]json.RawMessage
	if err := json.Unmarshal(line, &was); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(written, &is); err != nil {
		t.Fatal(err)
	}
	for name, value := range was {
		if _, ok := is[name]; ok || name == "v" || name == "time" && c.Header().Time.IsZero() {
			continue
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, value); err != nil {
			t.Fatal(err)
		}
		switch compact.String() {
		case `""`, `0`, `-0`, `false`, `[]`, `{}`, `{"base64":""}`:
			continue
		}
		t.Fatalf("%s lost %q of %s", written, name, line)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("\n{\"kind\":\"user\"}\r\n\n{\"kind\":\"result\"}"))
	f.Add([]byte("{\"kind\":\"user\"}\n{\"kind\":"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var history []canister.Canister
		for c, err := range canister.Decode(bytes.NewReader(text)) {
			if err != nil {
				break
			}
			history = append(history, c)
		}
		var first, second bytes.Buffer
		if err := canister.Encode(&first, history...); err != nil {
			t.Fatal(err)
		}
		count := 0
		for c, err := range canister.Decode(bytes.NewReader(first.Bytes())) {
			if err != nil {
				t.Fatal(err)
			}
			if err := canister.Encode(&second, c); err != nil {
				t.Fatal(err)
			}
			count++
		}
		if count != len(history) || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("%d canisters came back as %d", len(history), count)
		}
	})
}
