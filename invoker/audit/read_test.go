// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/consort-go/consort/invoker/audit"
)

func TestRead(t *testing.T) {
	errDisk := errors.New("the disk is gone")
	good := `{"time":"2026-03-01T09:30:00Z","tool":"t","code":"OK","later":{"x":1}}` + "\n"
	for _, test := range []struct {
		name    string
		from    io.Reader
		records int
		errs    []string
	}{
		{"nothing", strings.NewReader(""), 0, nil},
		{"empty lines", strings.NewReader("\n\n" + good + "\r\n\n" + good), 2, nil},
		{"no newline at the end", strings.NewReader(good + strings.TrimSpace(good)), 2, nil},
		{"no records", strings.NewReader("null\n[]\n" + good + "{\"tool\":1}\n{\n\xff\n"), 1, []string{"line 1 ", "line 2 ", "line 4 ", "line 5 ", "line 6 "}},
		{
			"a long line", strings.NewReader(good + `{"tool":"` + strings.Repeat("x", 17<<20) + "\"}\n" + good), 2,
			[]string{"line 2 is not a record: it has 178"},
		},
		{"a broken disk", io.MultiReader(strings.NewReader(good+"{"), iotest.ErrReader(errDisk)), 1, []string{"reading line 2: the disk is gone"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			records, errs := 0, []error{}
			for _, err := range audit.Read(test.from) {
				if err != nil {
					errs = append(errs, err)
					continue
				}
				records++
			}
			if records != test.records || len(errs) != len(test.errs) {
				t.Fatalf("there are %d records, want %d; %v", records, test.records, errs)
			}
			for i, want := range test.errs {
				if !strings.Contains(errs[i].Error(), want) {
					t.Errorf("the error is %v, want %s", errs[i], want)
				}
			}
		})
	}
	for range audit.Read(strings.NewReader(good + good)) {
		break // nothing panics
	}
}

// For every input, the output of a trail is JSON within the bound, contains no omitted
// value, and can be read back.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `{"key":"SECRET"}`, `{"a":[{"KEY":["SECRET",{"b":"SECRET"}]}],"key" : -1e5}`, `{"key":"SECRET`, `"key:"`,
		`{"\u006bey":true}`, "\xff", `{"a":"\\","key":{}}`,
	} {
		f.Add(seed, 0)
	}
	f.Fuzz(func(t *testing.T, wrote string, limit int) {
		got := kept(t, t.Context(), &audit.Options{Omit: []string{"key"}, ArgumentBytes: limit}, audit.Record{Tool: "t", Arguments: json.RawMessage(wrote)})
		if got.Arguments != nil && !json.Valid(got.Arguments) {
			t.Fatalf("%q becomes %q, which is no JSON", wrote, got.Arguments)
		}
		bound := limit
		if limit == 0 {
			bound = 4096
		}
		if limit >= 0 && len(got.Arguments) > max(bound, 64) {
			t.Fatalf("%q becomes %d bytes", wrote, len(got.Arguments))
		}
		hidden(t, got.Arguments)
		for back, err := range audit.Read(bytes.NewReader([]byte(line(t, got)))) {
			if err != nil || !bytes.Equal(back.Arguments, got.Arguments) {
				t.Fatalf("%q is read as %q (%v)", got.Arguments, back.Arguments, err)
			}
		}
	})
}

// hidden fails the test if there is a value under the name that is omitted.
func hidden(t *testing.T, arguments json.RawMessage) {
	var value any
	if len(arguments) == 0 || json.Unmarshal(arguments, &value) != nil {
		return
	}
	open := []any{value}
	for len(open) > 0 {
		value, open = open[len(open)-1], open[:len(open)-1]
		switch value := value.(type) {
		case []any:
			open = append(open, value...)
		case map[string]any:
			for name, member := range value {
				if strings.EqualFold(name, "key") && member != "[omitted]" {
					t.Fatalf("%s holds what is omitted", arguments)
				}
				open = append(open, member)
			}
		}
	}
}

// Read takes anything and never panics.
func FuzzRead(f *testing.F) {
	for _, record := range documented() {
		f.Add([]byte(line(f, record) + "\n"))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		for record, err := range audit.Read(bytes.NewReader(file)) {
			if err == nil {
				_, _ = record.MarshalJSON()
			}
		}
	})
}
