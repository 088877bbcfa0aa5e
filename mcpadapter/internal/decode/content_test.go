// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

func TestContent(t *testing.T) {
	size := int64(3)
	kept := func(pairs ...string) canister.Extra {
		fields := canister.Fields{}
		for i := 0; i < len(pairs); i += 2 {
			fields[pairs[i]] = json.RawMessage(pairs[i+1])
		}
		return canister.Extra{Metadata: fields}
	}
	tests := []struct {
		name, block string
		want        canister.Content
	}{
		{"text", `{"type":"text","text":"a"}`, canister.Text("a")},
		{"empty text", `{"type":"text","text":""}`, canister.Text("")},
		{"annotations and _meta", `{"type":"text","text":"a","annotations":{"priority": 0.50},"_meta":{"x":1},"future":[ ]}`,
			canister.TextContent{Text: "a", Extra: kept("mcp/annotations", `{"priority":0.50}`, "mcp/_meta", `{"x":1}`, "mcp/future", `[]`)}},
		{"image", `{"type":"image","data":"AQI=","mimeType":"image/png"}`, canister.ImageContent{Data: []byte{1, 2}, MIME: "image/png"}},
		{"empty image", `{"type":"image","data":"","mimeType":"image/png"}`, canister.ImageContent{Data: []byte{}, MIME: "image/png"}},
		{"audio", `{"type":"audio","data":"AQI=","mimeType":"audio/wav"}`, canister.AudioContent{Data: []byte{1, 2}, MIME: "audio/wav"}},
		{"text resource", `{"type":"resource","resource":{"uri":"a:b","mimeType":"text/plain","text":"t","_meta":{}},"annotations":{}}`,
			canister.ResourceContent{URI: "a:b", MIME: "text/plain", Text: "t", Extra: kept("mcp/annotations", `{}`, "mcp/resource/_meta", `{}`)}},
		{"binary resource", `{"type":"resource","resource":{"uri":"a:b","blob":""}}`, canister.ResourceContent{URI: "a:b", Blob: []byte{}}},
		{"link", `{"type":"resource_link","uri":"a:b","name":"n","title":"t","description":"d","mimeType":"m/n","size":3,"icons":[]}`,
			canister.LinkContent{URI: "a:b", Name: "n", Title: "t", Description: "d", MIME: "m/n", Size: &size, Extra: kept("mcp/icons", `[]`)}},
		{"unknown kind", `{"type":"hologram", "data":"x"}`,
			canister.TextContent{Text: `{"type":"hologram","data":"x"}`, Extra: kept("mcp/block", `{"type":"hologram","data":"x"}`)}},
		{"no object", `[1]`, canister.TextContent{Text: `[1]`, Extra: kept("mcp/block", `[1]`)}},
		{"null", `null`, canister.TextContent{Text: `null`, Extra: kept("mcp/block", `null`)}},
		{"broken base64", `{"type":"image","data":"%","mimeType":"image/png"}`,
			canister.TextContent{
				Text: `{"type":"image","data":"%","mimeType":"image/png"}`, Extra: kept("mcp/block", `{"type":"image","data":"%","mimeType":"image/png"}`),
			}},
		{"text without text", `{"type":"text"}`, canister.TextContent{Text: `{"type":"text"}`, Extra: kept("mcp/block", `{"type":"text"}`)}},
		{
			"resource without resource", `{"type":"resource"}`,
			canister.TextContent{Text: `{"type":"resource"}`, Extra: kept("mcp/block", `{"type":"resource"}`)},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := Content(json.RawMessage(test.block)); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %#v\nwant %#v", got, test.want)
			}
		})
	}
}

func TestOutput(t *testing.T) {
	out, err := Output(json.RawMessage(`{"content":[{"type":"text","text":"a"}],"structuredContent":{"n": 1.0},"_meta":{"k":"v"},"resultType":"complete"}`))
	want := invoker.Output{
		Content:  []canister.Content{canister.Text("a"), canister.StructuredContent{JSON: json.RawMessage(`{"n":1.0}`)}},
		Metadata: canister.Fields{"mcp/_meta": json.RawMessage(`{"k":"v"}`)},
	}
	if err != nil || !reflect.DeepEqual(out, want) {
		t.Errorf("got %#v, %v, want %#v", out, err, want)
	}

	_, err = Output(json.RawMessage(`{"content":[{"type":"text","text":"no such file"}],"isError":true,"_meta":{"k":"v"}}`))
	var failure *invoker.Failure
	if !errors.As(err, &failure) || failure.Code != invoker.ExecutionFailed ||
		canister.TextOf(failure.Content) != "no such file" || failure.Metadata["mcp/_meta"] == nil {
		t.Errorf("isError became %#v", err)
	}

	for _, odd := range []string{`null`, `[]`, `"x"`} {
		if _, err := Output(json.RawMessage(odd)); invoker.AsFailure(err) == nil || invoker.AsFailure(err).Code != invoker.Protocol {
			t.Errorf("the result %s became %v, want PROTOCOL", odd, err)
		}
	}
}

// FuzzOutput looks for a panic, and for content whose JSON is not valid.
func FuzzOutput(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"resource","resource":{"blob":"AA=="}}],"structuredContent":[1],"isError":true}`))
	f.Add([]byte(`{"content":{"type":"text"},"_meta":null}`))
	f.Fuzz(func(t *testing.T, result []byte) {
		if !json.Valid(result) {
			t.Skip() // the interceptor decodes messages before
		}
		out, err := Output(result)
		if err != nil {
			out.Content = invoker.AsFailure(err).Content
		}
		for _, c := range out.Content {
			if s, ok := c.(canister.StructuredContent); ok && !json.Valid(s.JSON) {
				t.Errorf("structured content %q", s.JSON)
			}
		}
	})
}
