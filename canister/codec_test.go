// SPDX-License-Identifier: Apache-2.0

package canister_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
)

// golden is one canister of every kind with every content and every member. Its lines are
// testdata/version1.jsonl, which never changes: lines that are added to the format later
// get a separate file.
func golden() []canister.Canister {
	at := func(nanoseconds int) time.Time { return time.Date(2026, 3, 1, 9, 30, 0, nanoseconds, time.UTC) }
	head := func(id string, nanoseconds int) canister.Head {
		return canister.Head{ID: id, Time: at(nanoseconds)}
	}
	size := int64(0)
	nested := canister.Extra{
		Metadata: canister.Fields{"b": json.RawMessage(`1`), "a": json.RawMessage(`{"z":0.10,"y":"<&>"}`)},
		Unknown:  canister.Fields{"annotations": json.RawMessage(`{"audience":["user"]}`)},
	}
	rich := head("r1", 123456789)
	rich.Metadata = canister.Fields{"took": json.RawMessage(`123456789012345678901234567890e-3`)}
	counted := head("a2", 0)
	counted.Unknown = canister.Fields{
		"usage":   json.RawMessage(`{"audio":7,"cost":0.0021}`),
		"thought": json.RawMessage(`null`),
	}
	return []canister.Canister{
		canister.User{},
		canister.Supervisor{Head: head("s1", 0), Content: canister.Texts("Answer in one sentence.")},
		canister.Document{Head: head("d1", 100_000_000), Title: "Terms", URI: "file:///terms.txt", Content: canister.Texts("1. Be kind.")},
		canister.User{Head: head("u1", 1000), Content: []canister.Content{
			canister.Text("What should I wear in Oslo? <b>&\u2028\"\\/\b\f\n\r\t\x00\x7f é 漢 🌧"),
			canister.TextContent{Extra: nested},
			canister.TextContent{Text: "torn \xff\xfe"},
			canister.ImageContent{Data: []byte{0, 1, 2, 255}, MIME: "image/png"},
			canister.ImageContent{URL: "https://example.com/sky.png?a=1&b=2", Extra: nested},
			canister.AudioContent{Data: []byte{}, MIME: "audio/wav", Extra: nested},
		}},
		canister.Assistant{
			Head: head("a1", 1), Model: "m-1", Finish: canister.FinishInvocations, Usage: &canister.Usage{Input: 812, Cached: 512, Output: 64, Reasoning: 12},
		},
		canister.Invocation{Head: head("i1", 1), Message: "a1", CallID: "call_1", Name: "local__weather", Arguments: "{\"place\": \"Oslo\",  \"days\":1e2}"},
		canister.Invocation{Head: head("i2", 1), Message: "a1", CallID: "call_2", Name: "local__\xc3(", Arguments: `{"place": `},
		canister.Result{Head: rich, Invocation: "i1", Content: []canister.Content{
			canister.ResourceContent{URI: "file:///a", MIME: "text/plain", Text: "a", Extra: nested},
			canister.ResourceContent{URI: "file:///b"},
			canister.ResourceContent{URI: "file:///c", MIME: "application/pdf", Blob: []byte("%PDF")},
			canister.ResourceContent{URI: "file:///d", Blob: []byte{}},
			canister.LinkContent{URI: "file:///e", Name: "e", Title: "E", Description: "the letter", MIME: "text/plain", Size: &size, Extra: nested},
			canister.LinkContent{URI: "file:///f"},
			canister.StructuredContent{JSON: json.RawMessage(`{"degrees":12.50,"wet":true,"next":[null,1e400]}`), Extra: nested},
			canister.StructuredContent{JSON: json.RawMessage(`null`)},
		}},
		canister.Result{
			Head: head("r2", 2), Invocation: "i2", Content: canister.Texts("The arguments are not JSON."), Code: "INVALID_ARGUMENTS", Retryable: true,
		},
		canister.Assistant{Head: counted, Content: canister.Texts("A raincoat."), Finish: "vendor_reason", Usage: &canister.Usage{}},
	}
}

// golden2 is a history with each of the kinds that came with version 2 and every
// member of them; its lines are testdata/version2.jsonl.
func golden2() []canister.Canister {
	head := func(id string, second int) canister.Head {
		return canister.Head{ID: id, Time: time.Date(2026, 11, 21, 18, 0, second, 0, time.UTC)}
	}
	call := func(id, name string) canister.Canister {
		return canister.Invocation{Head: head(id, 1), Message: "a1", CallID: "call_" + id, Name: name, Arguments: `{"to":"Ada"}`}
	}
	deadline := time.Date(2026, 11, 22, 18, 0, 0, 5, time.UTC)
	extra := canister.Extra{Metadata: canister.Fields{"a": json.RawMessage(`[1]`)}, Unknown: canister.Fields{"mood": json.RawMessage(`"calm"`)}}
	rich := func(id string, second int) canister.Head {
		h := head(id, second)
		h.Extra = extra
		return h
	}
	return []canister.Canister{
		canister.User{Head: head("u1", 0), Content: canister.Texts("Pay Ada.")},
		canister.Assistant{Head: head("a1", 1), Finish: canister.FinishInvocations},
		call("i1", "bank__pay"), call("i2", "bank__balance"), call("i3", "bank__form"),
		canister.Intent{Head: head("t2", 2), Invocation: "i2", Attempt: 1, Key: "i2", Repeatable: true},
		canister.Wait{
			Head: head("w1", 2), For: canister.WaitApproval, Invocation: "i1", Deadline: deadline, Who: "ada",
			Conversation: "talk", Identity: "sha256:9f86", Fingerprint: "sha256:d081", Arguments: `{"to":"Ada"}`,
		},
		canister.Result{Head: head("r2", 3), Invocation: "i2", Content: canister.Texts("12")},
		canister.Wait{
			Head: rich("w3", 3), For: canister.WaitElicitation, Invocation: "i3", Deadline: deadline, Question: json.RawMessage(`{"message":"Which account?"}`),
		},
		canister.Answer{
			Head: rich("n1", 4), Wait: "w1", Verdict: canister.VerdictChange, By: "ada", Reason: "less", Arguments: json.RawMessage(`{"to":"Ada","sum":1.50}`),
		},
		canister.Intent{Head: rich("t1", 5), Invocation: "i1", Attempt: 2, Key: "i1", Wait: "w1", Arguments: `{"to":"Ada","sum":1.50}`},
		canister.Wait{Head: head("w4", 6), For: canister.WaitOutcome, Invocation: "i1", Deadline: deadline},
		canister.Answer{Head: head("n4", 7), Wait: "w4", Verdict: canister.VerdictDone, By: "ada", Content: canister.Texts("It was paid.")},
		canister.Answer{Head: head("n3", 7), Wait: "w3", Verdict: canister.VerdictDecline, By: "ada"},
		canister.Result{Head: head("r3", 8), Invocation: "i3", Content: canister.Texts("The person declined."), Code: "DENIED"},
		canister.Result{Head: head("r1", 9), Invocation: "i1", Content: canister.Texts("It was paid.")},
		canister.Wait{Head: head("w5", 10), For: canister.WaitTimer, Deadline: deadline},
		canister.Intent{}, canister.Wait{}, canister.Answer{},
		canister.Intent{Head: head("t6", 11), Invocation: "i6", Attempt: 1, Key: "i6", Approved: deadline, Identity: "sha256:9f86", Fingerprint: "sha256:d081"},
	}
}

// golden3 is a history with what came with version 3: calls that a call has made. Its lines
// are testdata/version3.jsonl.
func golden3() []canister.Canister {
	head := func(id string, second int) canister.Head {
		return canister.Head{ID: id, Time: time.Date(2026, 11, 23, 4, 0, second, 0, time.UTC)}
	}
	return []canister.Canister{
		canister.Assistant{Head: head("a1", 0), Finish: canister.FinishInvocations},
		canister.Invocation{
			Head: head("i1", 0), Message: "a1", CallID: "call_1", Name: "code__run_code",
			Arguments: `{"program":"return bank__balance(of=\"Ada\")"}`,
		},
		canister.Intent{Head: head("t1", 1), Invocation: "i1", Attempt: 1, Key: "i1", Repeatable: true},
		canister.Invocation{Head: head("i2", 2), Message: "a1", CallID: "1", Name: "bank__balance", Arguments: `{"of":"Ada"}`, Parent: "i1"},
		canister.Intent{Head: head("t2", 3), Invocation: "i2", Attempt: 1, Key: "i2", Repeatable: true},
		canister.Result{Head: head("r2", 4), Invocation: "i2", Parent: "i1", Content: canister.Texts("12")},
		canister.Result{Head: head("r1", 5), Invocation: "i1", Content: canister.Texts("12")},
	}
}

func TestGoldenLines(t *testing.T) {
	for file, golden := range map[string][]canister.Canister{"testdata/version1.jsonl": golden(), "testdata/version2.jsonl": golden2(), "testdata/version3.jsonl": golden3()} {
		t.Run(file, func(t *testing.T) { checkGolden(t, file, golden) })
	}
	if problems := sequence.Check(golden2()[:17]); problems != nil {
		t.Errorf("version 2: %v", problems)
	}
	if problems := sequence.Check(golden3()); problems != nil {
		t.Errorf("version 3: %v", problems)
	}
}

func checkGolden(t *testing.T, file string, golden []canister.Canister) {
	lines, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var encoded bytes.Buffer
	if err := canister.Encode(&encoded, golden...); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(encoded.Bytes(), lines) {
		t.Errorf("Encode gives other lines than %s:\n%s", file, encoded.Bytes())
	}
	var decoded []canister.Canister
	for c, err := range canister.Decode(bytes.NewReader(lines)) {
		if err != nil {
			t.Fatal(err)
		}
		decoded = append(decoded, c)
	}
	for i, want := range golden {
		if i >= len(decoded) || !reflect.DeepEqual(decoded[i], want) {
			t.Errorf("line %d: decoded as\n%#v\nwant\n%#v", i+1, decoded[i], want)
		}
	}
}

// Every member that a canister or content can have is in the golden lines, so
// that a member forgotten in the form's table cannot go unnoticed.
func TestGoldenLinesHoldEveryField(t *testing.T) {
	set := map[string]bool{}
	for _, c := range slices.Concat(golden(), golden2(), golden3()) {
		note(set, reflect.ValueOf(c))
		for _, content := range canister.ContentOf(c) {
			note(set, reflect.ValueOf(content))
		}
	}
	for name, ok := range set {
		if !ok {
			t.Errorf("no golden canister sets %s", name)
		}
	}
}

func note(set map[string]bool, v reflect.Value) {
	for i := range v.NumField() {
		name := fmt.Sprintf("%s.%s", v.Type().Name(), v.Type().Field(i).Name)
		set[name] = set[name] || !v.Field(i).IsZero()
	}
}

// Lines that others wrote in their way come back in ours, and stay so.
func TestUnmarshalOfForeignLines(t *testing.T) {
	for _, test := range []struct{ name, line, want string }{
		{
			"white space", " { \"id\" : \"a\" ,\t\"kind\":\"user\" , \"metadata\" : { \"b\" : [ 1 , 2 ] } }\r\n",
			`{"kind":"user","id":"a","metadata":{"b":[1,2]}}`,
		},
		{"version 1", `{"kind":"user","v":1}`, `{"kind":"user"}`},
		{"escapes", `{"\u006bind":"user","id":"\u00e9\/\ud83c\udf27\u003C\u2028"}`, "{\"kind\":\"user\",\"id\":\"é/🌧<\u2028\"}"},
		{
			"unknown members", `{"zebra":{"b":1,"a":2},"kind":"user","apple":"\u003c","Kind":1}`,
			`{"kind":"user","Kind":1,"apple":"\u003c","zebra":{"b":1,"a":2}}`,
		},
		{"unknown usage", `{"kind":"assistant","usage":{"z":1,"output":2,"a":[ ]}}`, `{"kind":"assistant","usage":{"output":2,"a":[],"z":1}}`},
		{"empty lists", `{"kind":"user","content":[],"metadata":{}}`, `{"kind":"user"}`},
		{"zone", `{"kind":"user","time":"2026-03-01T10:30:00.10+01:00"}`, `{"kind":"user","time":"2026-03-01T09:30:00.1Z"}`},
		{"needless base64", `{"kind":"user","id":{"base64":"YQ=="}}`, `{"kind":"user","id":"a"}`},
		{"zero members", `{"kind":"result","id":"","code":"","retryable":false}`, `{"kind":"result"}`},
		{"version of a content", `{"kind":"user","content":[{"v":3,"type":"text"}]}`, `{"kind":"user","content":[{"type":"text","v":3}]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := canister.Unmarshal([]byte(test.line))
			if err != nil {
				t.Fatal(err)
			}
			line, err := canister.Marshal(c)
			if err != nil || string(line) != test.want {
				t.Errorf("comes back as %s (%v), want %s", line, err, test.want)
			}
		})
	}
}

func TestUnmarshalErrors(t *testing.T) {
	deep := "[" + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + ",[]]"
	for _, test := range []struct{ name, line, want string }{
		{"nothing", ``, "unexpected end of JSON input"},
		{"torn", `{"kind":"user","id":"u`, "unexpected end of JSON input"},
		{"trailing garbage", `{"kind":"user"}{`, "invalid character '{' after top-level value"},
		{"two on a line", `{"kind":"user"} {"kind":"user"}`, "after top-level value"},
		{"not an object", `["user"]`, "want an object, got an array"},
		{"null", `null`, "want an object, got null"},
		{"no kind", `{"id":"u"}`, `the member "kind" is missing`},
		{"unknown kind", `{"kind":"oracle"}`, `unknown kind "oracle"`},
		{"kind in capitals", `{"kind":"User"}`, `unknown kind "User"`},
		{"kind of a wrong type", `{"kind":1}`, "kind: want a string, got a number"},
		{"kind twice", `{"kind":"user","kind":"result"}`, `member "kind" occurs twice`},
		{"newer version", `{"kind":"oracle","v":4}`, "it was written by a newer program, in version 4"},
		{"much newer version", `{"kind":"user","v":99999999999999999999}`, "it was written by a newer program"},
		{"version of a wrong type", `{"kind":"user","v":"2"}`, "v: want a version number"},
		{"version 0", `{"kind":"user","v":0}`, "v: want a version number"},
		{"member twice", `{"kind":"user","id":"a","id":"a"}`, `member "id" occurs twice`},
		{"member twice in disguise", `{"kind":"user","id":"a","\u0069d":"a"}`, `member "id" occurs twice`},
		{"unknown member twice", `{"kind":"user","x":1,"x":1}`, `member "x" occurs twice`},
		{"metadata twice", `{"kind":"user","metadata":{"x":1,"x":1}}`, `metadata: member "x" occurs twice`},
		{"id null", `{"kind":"user","id":null}`, `id: want a string, got null`},
		{"id object", `{"kind":"user","id":{"base64":"YQ==","x":1}}`, `id: want a string, or an object whose one member is "base64"`},
		{"arguments an object", `{"kind":"invocation","arguments":{"place":"Oslo"}}`, `arguments: want a string, or`},
		{"bad base64 text", `{"kind":"user","id":{"base64":"YQ"}}`, `id: base64: want a string in base64`},
		{"time of a wrong form", `{"kind":"user","time":"yesterday"}`, `time: want a time in the form of RFC 3339, got "yesterday"`},
		{"time of a wrong type", `{"kind":"user","time":17}`, `time: want a string with a time, got a number`},
		{"time beyond the years", `{"kind":"user","time":"9999-12-31T23:59:59-01:00"}`, `time: the year is outside`},
		{"retryable", `{"kind":"result","retryable":"no"}`, `retryable: want a boolean, got a string`},
		{"usage", `{"kind":"assistant","usage":[]}`, `usage: want an object, got an array`},
		{"fraction of a token", `{"kind":"assistant","usage":{"input":1.0}}`, `usage: input: want an integer`},
		{"usage twice", `{"kind":"assistant","usage":{"x":1,"x":2}}`, `usage: member "x" occurs twice`},
		{"content", `{"kind":"user","content":"hello"}`, `content: want an array, got a string`},
		{"piece of content", `{"kind":"user","content":[{"type":"text"},"hello"]}`, `content: number 2: want an object, got a string`},
		{"content without type", `{"kind":"user","content":[{}]}`, `content: number 1: the member "type" is missing`},
		{"content of unknown type", `{"kind":"user","content":[{"type":"video"}]}`, `content: number 1: unknown content type "video"`},
		{"size", `{"kind":"user","content":[{"type":"link","size":"1"}]}`, `size: want an integer`},
		{"blob", `{"kind":"user","content":[{"type":"resource","blob":"*"}]}`, `blob: want a string in base64`},
		{"lone surrogate", `{"kind":"user","id":"\ud83cx"}`, `id: a \u escape is half of a surrogate pair`},
		{"lone surrogate at the end", `{"kind":"user","id":"\udf27"}`, `half of a surrogate pair`},
		{"lone surrogate in a name", `{"kind":"user","\ud83c":1}`, `half of a surrogate pair`},
		{"not UTF-8", "{\"kind\":\"user\",\"id\":\"\xff\"}", "the line is not UTF-8"},
		{"deep", `{"kind":"user","metadata":{"x":` + deep + `}}`, "nests deeper than 9000 levels"},
		{"too deep for anyone", strings.Repeat("[", 20000), "exceeded max depth"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := canister.Unmarshal([]byte(test.line))
			if err == nil || c != nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, %v; want an error with %q", c, err, test.want)
			}
		})
	}
}

type foreign struct{ canister.User }

func TestMarshalErrors(t *testing.T) {
	with := func(extra canister.Extra) canister.Canister {
		return canister.Assistant{Head: canister.Head{ID: "a1", Extra: extra}, Usage: &canister.Usage{}}
	}
	unknown := func(name, value string) canister.Canister {
		return with(canister.Extra{Unknown: canister.Fields{name: json.RawMessage(value)}})
	}
	metadata := func(name, value string) canister.Canister {
		return with(canister.Extra{Metadata: canister.Fields{name: json.RawMessage(value)}})
	}
	at := func(year int) canister.Canister {
		return canister.User{Head: canister.Head{ID: "u1", Time: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)}}
	}
	for _, test := range []struct {
		name string
		c    canister.Canister
		want string
	}{
		{"nil", nil, "<nil> is not one of the kinds"},
		{"pointer", &canister.User{}, "*canister.User is not one of the kinds"},
		{"nil pointer", (*canister.User)(nil), "*canister.User is not one of the kinds"},
		{"foreign", foreign{}, "canister_test.foreign is not one of the kinds"},
		{"nil content", canister.User{Content: []canister.Content{nil}}, `user "": content: number 1: <nil> is not one of the types`},
		{"pointer content", canister.User{Content: []canister.Content{&canister.TextContent{}}}, "*canister.TextContent is not one of the types"},
		{"year 10000", at(10000), `user "u1": time: the year is outside`},
		{"year -1", at(-1), `user "u1": time: the year is outside`},
		{"known name", unknown("id", `1`), `assistant "a1": unknown member "id" has the name of a known one`},
		{"kind", unknown("kind", `1`), "name of a known one"},
		{"version", unknown("v", `2`), "name of a known one"},
		{"empty known name", unknown("model", `1`), "name of a known one"},
		{"usage known", unknown("usage", `{"input":1}`), `usage: unknown member "input" has the name of a known one`},
		{"usage twice", unknown("usage", `{"x":1,"x":1}`), `usage: member "x" occurs twice`},
		{"usage not an object", unknown("usage", `7`), "usage: the unknown members are not"},
		{"usage not JSON", unknown("usage", ``), "usage: the unknown members are not"},
		{"empty value", metadata("x", ``), `metadata: "x": want one valid JSON value`},
		{"two values", metadata("x", `1 2`), `metadata: "x": want one valid JSON value`},
		{"value not UTF-8", metadata("x", "\"\xff\""), `metadata: "x": want a JSON value in UTF-8`},
		{"name not UTF-8", metadata("\xff", `1`), `metadata: member name "\xff" is not UTF-8`},
		{"deep", metadata("x", strings.Repeat("[", 9001)+strings.Repeat("]", 9001)), "nests deeper"},
		{"structured", canister.User{Content: []canister.Content{canister.StructuredContent{JSON: json.RawMessage(`{`)}}}, "json: want one valid JSON value"},
		{
			"usage without usage",
			canister.Assistant{Head: canister.Head{Extra: canister.Extra{Unknown: canister.Fields{"usage": json.RawMessage(`{"x":1}`)}}}},
			"name of a known one",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			line, err := canister.Marshal(test.c)
			if err == nil || line != nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %s, %v; want an error with %q", line, err, test.want)
			}
		})
	}
}

func TestMarshalNestingThatCanBeReadAgain(t *testing.T) {
	deep := json.RawMessage(strings.Repeat("[", 9000) + strings.Repeat("]", 9000))
	roundTrip(t, canister.User{Content: []canister.Content{canister.StructuredContent{JSON: deep}}})
}

func TestMarshalOfEveryCharacter(t *testing.T) {
	var all strings.Builder
	for r := range rune(0x3000) {
		all.WriteRune(r)
	}
	line, err := canister.Marshal(canister.User{Head: canister.Head{ID: all.String()}})
	if err != nil {
		t.Fatal(err)
	}
	var standard struct{ ID string }
	if err := json.Unmarshal(line, &standard); err != nil || standard.ID != all.String() {
		t.Errorf("encoding/json reads something else (%v): %s", err, line)
	}
	roundTrip(t, canister.User{Head: canister.Head{ID: all.String()}})
}

func TestMarshalOfTimes(t *testing.T) {
	for _, test := range []struct {
		at   time.Time
		want string
	}{
		{time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), "0000-01-01T00:00:00Z"},
		{time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), "9999-12-31T23:59:59.999999999Z"},
		{time.Date(2026, 3, 1, 1, 0, 0, 500, time.FixedZone("", 2*3600)), "2026-02-28T23:00:00.0000005Z"},
	} {
		line, err := canister.Marshal(canister.User{Head: canister.Head{Time: test.at}})
		if want := `{"kind":"user","time":"` + test.want + `"}`; err != nil || string(line) != want {
			t.Errorf("%v: got %s, %v; want %s", test.at, line, err, want)
		}
		c, err := canister.Unmarshal(line)
		if err != nil || !c.Header().Time.Equal(test.at) {
			t.Errorf("%v: came back as %v, %v", test.at, c, err)
		}
	}
}

func TestUnmarshalSharesNoMemory(t *testing.T) {
	for _, want := range golden() {
		line, err := canister.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := canister.Unmarshal(line)
		if err != nil {
			t.Fatal(err)
		}
		clear(line)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("changed with the line: %#v", got)
		}
	}
}

// roundTrip fails unless c comes back equal and its line the same.
func roundTrip(t *testing.T, c canister.Canister) {
	t.Helper()
	line, err := canister.Marshal(c)
	if err != nil {
		t.Fatalf("Marshal: %v\n%#v", err, c)
	}
	if bytes.IndexByte(line, '\n') >= 0 {
		t.Fatalf("more than one line: %s", line)
	}
	back, err := canister.Unmarshal(line)
	if err != nil {
		t.Fatalf("Unmarshal: %v\n%s", err, line)
	}
	if !reflect.DeepEqual(back, c) {
		t.Fatalf("came back as\n%#v\nwas\n%#v", back, c)
	}
	again, err := canister.Marshal(back)
	if err != nil || !bytes.Equal(again, line) {
		t.Fatalf("the second line is\n%s (%v), the first\n%s", again, err, line)
	}
}
