// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestIdentityIsWhatThePolicyNames(t *testing.T) {
	ctx := invoker.WithTrusted(t.Context(), user.Value(42), role.Value("clerk"), token.Value("hunter2-hunter2"),
		invoker.NewTrusted[func()]("f").Value(nil))
	for _, test := range []struct {
		names []string
		want  string
	}{
		{nil, `null`},
		{[]string{"user_id"}, `{"user_id":42}`},
		{[]string{"role", "user_id", "nobody"}, `{"role":"clerk","user_id":42}`},
		{[]string{"token"}, `null`},
		{[]string{"f"}, `{"f":"[it has no JSON form]"}`},
	} {
		got, err := json.Marshal(kept(t, ctx, &audit.Options{Identity: test.names}, audit.Record{Tool: "t"}).Identity)
		if err != nil || string(got) != test.want {
			t.Errorf("%q gives %s, want %s (%v)", test.names, got, test.want, err)
		}
	}
	forged := audit.Record{Tool: "t", Identity: map[string]json.RawMessage{"user_id": json.RawMessage(`7`)}}
	if got := kept(t, context.Background(), nil, forged); got.Identity != nil {
		t.Errorf("an identity that no trusted value has is recorded: %s", line(t, got))
	}
}

// A secret trusted value is nowhere in a record, wherever it was.
func TestSecretsAreInNoRecord(t *testing.T) {
	const secret = "hunter2-\"hunter2\""
	nested := invoker.TrustedJSON("claims", json.RawMessage(`{"a":[{"key":"correct-horse-battery"}],"n":12345678901}`)).Secret()
	ctx := invoker.WithTrusted(t.Context(), token.Value(secret), nested, user.Value(42))
	record := audit.Record{
		Asker: "model", Client: "c " + secret, Conversation: secret, Invocation: secret, Ensemble: secret, Tool: secret,
		Forged: []string{secret}, Code: secret, Error: "it said " + secret + " and correct-horse-battery and 12345678901",
	}
	for _, arguments := range []string{
		`{"a":["hunter2-\"hunter2\"",{"hunter2-\"hunter2\"":1}],"b":"\u0068unter2-\"hunter2\"","c":"aHVudGVyMi0iaHVudGVyMiI="}`,
		`{"claims":{"a":[{"key":"correct-horse-battery"}],"n":12345678901}}`,
		`12345678901`,
		`no JSON, but ` + secret,
		strings.Repeat("x", 4060) + secret, // would be cut in two
		`["` + strings.Repeat("x", 4050) + `hunter2-\"hunter2\""]`,
	} {
		record.Arguments = json.RawMessage(arguments)
		got := kept(t, ctx, &audit.Options{Identity: []string{"user_id", "token", "claims"}, Logger: zap.NewNop()}, record)
		text := line(t, got)
		for _, form := range []string{"hunter2", "aHVudGVy", "correct-horse", "12345678901"} {
			if strings.Contains(text, form) {
				t.Errorf("%s is in %s", form, text)
			}
		}
		if !json.Valid([]byte(text)) || !strings.Contains(text, `"user_id":42`) {
			t.Errorf("the record is %s", text)
		}
	}
}

func TestRedact(t *testing.T) {
	got := kept(t, t.Context(), &audit.Options{Redact: redact.New("hunter2-hunter2")}, audit.Record{
		Tool: "t", Error: "hunter2-hunter2", Arguments: json.RawMessage(`{"x":"hunter2-hunter2"}`),
	})
	if got.Error != "[secret]" || string(got.Arguments) != `{"x":"[secret]"}` {
		t.Errorf("the record is %s", line(t, got))
	}
}

func TestArguments(t *testing.T) {
	deep := strings.Repeat("[", 2000) + strings.Repeat("]", 2000)
	bottomless := strings.Repeat("[", 100_000)
	for _, test := range []struct {
		name        string
		omit        []string
		wrote, want string
	}{
		{"nothing", nil, "", ""},
		{"white space", nil, " \n", ""},
		{"as it is", nil, ` { "b": 1.50, "a": "<&>", "b": 2 } `, `{"b":1.50,"a":"<&>","b":2}`},
		{"a number of 400 digits", nil, strings.Repeat("9", 400), strings.Repeat("9", 400)},
		{"no object", nil, `[null]`, `[null]`},
		{"no JSON", nil, `{"a": "b`, `"{\"a\": \"b"`},
		{"no UTF-8", nil, "\"a\xff\"", `"a` + "\uFFFD" + `"`},
		{"two values", nil, `{} {}`, `"{} {}"`},
		{"no JSON with omissions", []string{"x"}, `{"a": "b`, `"[omitted: 8 bytes that are not JSON]"`},
		{"too deep", []string{"x"}, deep, `"[omitted: 4000 bytes that are not JSON]"`},
		{"bottomless", []string{"x"}, bottomless, `"[omitted: 100000 bytes that are not JSON]"`},
		{"omitted", []string{"password"}, `{"password":"p","user":"u"}`, `{"password":"[omitted]","user":"u"}`},
		{"capitals", []string{"PassWord"}, `{"pASSWORD":"p"}`, `{"pASSWORD":"[omitted]"}`},
		{"escaped", []string{"password"}, `{"\u0070assword":"p"}`, `{"\u0070assword":"[omitted]"}`},
		{"Kelvin", []string{"key"}, `{"` + "\u212A" + `ey":"p"}`, `{"` + "\u212A" + `ey":"[omitted]"}`},
		{"twice", []string{"a"}, `{"a":1,"a":{"b":2}}`, `{"a":"[omitted]","a":"[omitted]"}`},
		{"deep down", []string{"*_key"}, `[{"x":[[{"api_key":["}",{"\"":"]"}],"y":1}]]},{"api_key" : null }]`,
			`[{"x":[[{"api_key":"[omitted]","y":1}]]},{"api_key":"[omitted]"}]`},
		{"every value", []string{"*"}, `{"a":-1.5e3,"b":true,"c":null,"d":"x\"}","e":{},"f":[]}`,
			`{"a":"[omitted]","b":"[omitted]","c":"[omitted]","d":"[omitted]","e":"[omitted]","f":"[omitted]"}`},
		{"values are no names", []string{"x"}, `{"a":"x","b":["x"],"c":"x:"}`, `{"a":"x","b":["x"],"c":"x:"}`},
		{"any character", []string{"p?n"}, `{"pin":1,"pn":2}`, `{"pin":"[omitted]","pn":2}`},
		{"an empty name", []string{""}, `{"":1,"a":2}`, `{"":"[omitted]","a":2}`},
		{"prototypes", nil, `{"__proto__":{"x":1},"constructor":2}`, `{"__proto__":{"x":1},"constructor":2}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := kept(t, t.Context(), &audit.Options{Omit: test.omit}, audit.Record{Arguments: json.RawMessage(test.wrote)})
			if string(got.Arguments) != test.want {
				t.Errorf("got  %s\nwant %s", got.Arguments, test.want)
			}
			got = kept(t, t.Context(), &audit.Options{Omit: test.omit}, audit.Record{Approved: json.RawMessage(test.wrote)})
			if string(got.Approved) != test.want || got.Arguments != nil {
				t.Errorf("approved: got %s\nwant %s", got.Approved, test.want)
			}
			line(t, got)
		})
	}
}

// Arguments that are too long stay valid JSON and within the bound.
func TestArgumentBytes(t *testing.T) {
	for _, limit := range []int{-1, 0, 1, 64, 65, 100, 4096} {
		for _, piece := range []string{"x", "\"", "é", "\x00", "<", "\u2028", "😀", `\`} {
			long, err := json.Marshal(map[string]string{"a": strings.Repeat(piece, 5000)})
			if err != nil {
				t.Fatal(err)
			}
			got := kept(t, t.Context(), &audit.Options{ArgumentBytes: limit}, audit.Record{Arguments: long}).Arguments
			bound := map[int]int{-1: len(long), 0: 4096, 1: 64}[limit]
			if bound == 0 {
				bound = limit
			}
			if !json.Valid(got) || len(got) > bound || limit != -1 && len(got) < bound/2 {
				t.Errorf("of %q with limit %d, there are %d bytes: %.200s", piece, limit, len(got), got)
			}
			if limit != -1 && !strings.HasSuffix(string(got), fmt.Sprintf(`… [cut: %d bytes in all]"`, len(long))) {
				t.Errorf("of %q with limit %d, the end is missing: %s", piece, limit, got)
			}
		}
	}
	exact := json.RawMessage(`"` + strings.Repeat("x", 98) + `"`)
	if got := kept(t, t.Context(), &audit.Options{ArgumentBytes: 100}, audit.Record{Arguments: exact}).Arguments; !bytes.Equal(got, exact) {
		t.Errorf("what fits is cut: %s", got)
	}
}

func TestTextsAreBounded(t *testing.T) {
	long := strings.Repeat("é", 100_000)
	got := kept(t, t.Context(), nil, audit.Record{Tool: long, Client: long, Error: long, Forged: slicesRepeat(long, 1000)})
	if len(got.Tool) > 256 || len(got.Client) > 256 || len(got.Error) > 4096 || len(got.Forged) != 32 || len(got.Forged[0]) > 256 {
		t.Errorf("the record has %d bytes", len(line(t, got)))
	}
}

func slicesRepeat(s string, n int) (all []string) {
	for range n {
		all = append(all, s)
	}
	return all
}

func TestEnded(t *testing.T) {
	cause := errors.New("dial tcp 10.0.0.1: refused")
	forged := &invoker.Forged{Names: []string{"user_id"}}
	for _, test := range []struct {
		name       string
		err        error
		code, text string
		forged     int
	}{
		{"success", nil, "OK", "", 0},
		{"a failure", invoker.Failf(invoker.NotFound, "no task 7"), "NOT_FOUND", "no task 7", 0},
		{"words of its own", &invoker.Failure{Code: invoker.NotFound, Content: canister.Texts("none")}, "NOT_FOUND", "none", 0},
		{"a cause", &invoker.Failure{Code: invoker.Internal, Message: "It failed.", Cause: fmt.Errorf("adding: %w", cause)},
			"INTERNAL", "It failed.: adding: dial tcp 10.0.0.1: refused", 0},
		{"a failure behind a failure", &invoker.Failure{Code: invoker.Canceled, Message: "Over.",
			Cause: &invoker.Failure{Code: invoker.Timeout, Message: "Late.", Cause: cause}},
			"CANCELED", "Over.: TIMEOUT: Late.: dial tcp 10.0.0.1: refused", 0},
		{"forged", &invoker.Failure{Code: invoker.InvalidArguments, Message: "No.", Cause: forged},
			"INVALID_ARGUMENTS", "No.: " + forged.Error(), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			var record audit.Record
			record.Ended([]canister.Content{canister.Text("12345"), canister.ImageContent{Data: make([]byte, 10)},
				canister.StructuredContent{JSON: json.RawMessage(`{}`)}}, test.err)
			if record.Code != test.code || record.Error != test.text || len(record.Forged) != test.forged || record.Bytes != 17 {
				t.Errorf("the record is %+v", record)
			}
		})
	}
	var record audit.Record
	record.Ended(nil, cause)
	if record.Code != "EXECUTION_FAILED" || !strings.Contains(record.Error, cause.Error()) {
		t.Errorf("the record lacks the error's own text: %+v", record)
	}
}

func TestNoTrail(t *testing.T) {
	var none *audit.Trail
	none.Keep(t.Context(), audit.Record{})
	audit.New(nil, nil).Keep(t.Context(), audit.Record{})
}

func TestTime(t *testing.T) {
	if got := kept(t, t.Context(), nil, audit.Record{}); time.Since(got.Time).Abs() > time.Minute {
		t.Errorf("the time is %v", got.Time)
	}
	then := time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
	if got := kept(t, t.Context(), nil, audit.Record{Time: then}); !got.Time.Equal(then) {
		t.Errorf("the time is %v", got.Time)
	}
}

// What a sink does not take is logged, and the end of a turn keeps nothing from
// being recorded.
func TestSinkFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, s := range map[string]*shelf{"fails": {fail: errors.New("the disk is full")}, "panics": {panics: "the disk is full"}} {
		core, logs := observer.New(zapcore.DebugLevel)
		audit.New(s, &audit.Options{Logger: zap.New(core)}).Keep(ctx, audit.Record{Tool: "add", Invocation: "c3", Code: "OK"})
		entries := logs.All()
		if len(entries) != 1 || entries[0].Level != zapcore.ErrorLevel {
			t.Fatalf("%s: the log is %v", name, entries)
		}
		fields := fmt.Sprint(entries[0].ContextMap())
		if !strings.Contains(fields, "the disk is full") || !strings.Contains(fields, "c3") || strings.Contains(fields, "cancel") {
			t.Errorf("%s: the entry says %s", name, fields)
		}
	}
}

// Redact and the logger are code of the embedding program, and a record is kept
// on goroutines of the runtime.
func TestRedactThatPanics(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	opts := &audit.Options{Logger: zap.New(core), Redact: func(text string) string {
		if strings.Contains(text, "hunter2") {
			panic("boom")
		}
		return text
	}}
	got := kept(t, t.Context(), opts, audit.Record{
		Tool: "add", Invocation: "c3", Arguments: json.RawMessage(`{"a":"hunter2","b":"x"}`), Error: "hunter2 is wrong",
	})
	if text := line(t, got); strings.Contains(text, "hunter2") || !strings.Contains(text, `"b":"x"`) || strings.Count(text, "withheld") != 2 {
		t.Errorf("the record is %s", text)
	}
	if entries := logs.All(); len(entries) != 1 || entries[0].ContextMap()["error"] != "the function Redact panicked: boom" {
		t.Errorf("the log is %v", entries)
	}
}

type brokenCore struct{ zapcore.Core }

func (brokenCore) Write(zapcore.Entry, []zapcore.Field) error { panic("no log") }
func (c brokenCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return checked.AddCore(entry, c)
}

func TestALoggerThatPanics(t *testing.T) {
	logger := zap.New(brokenCore{zapcore.NewNopCore()}, zap.ErrorOutput(zapcore.AddSync(io.Discard)))
	audit.New(&shelf{panics: "no sink"}, &audit.Options{Logger: logger}).Keep(t.Context(), audit.Record{Tool: "add"})
}
