// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"testing"

	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A line has the text of the SDK's encoder.
func TestLine(t *testing.T) {
	number, _ := jsonrpc.MakeID(float64(1 << 30))
	text, _ := jsonrpc.MakeID("a")
	params := []byte("{\n \"a\" : \"<\\u2028>\u2028\",\t\"b\":[1, 2.50e1,{}]}\n")
	for _, msg := range []jsonrpc.Message{
		&jsonrpc.Request{ID: number, Method: "tools/call", Params: params},
		&jsonrpc.Request{ID: number, Method: "a \"method\"\n", Params: []byte("[]")},
		&jsonrpc.Request{ID: number, Method: "ping"},
		&jsonrpc.Request{ID: text, Method: "tools/call", Params: params},
		&jsonrpc.Request{Method: "notifications/cancelled", Params: params},
		&jsonrpc.Response{ID: number, Result: params},
	} {
		want, err := jsonrpc.EncodeMessage(msg)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := wire.Line(msg); err != nil || string(got) != string(want)+"\n" {
			t.Errorf("%s (%v), want %s", got, err, want)
		}
	}
	if line, err := wire.Line(&jsonrpc.Request{ID: number, Method: "tools/call", Params: []byte(`{"a":`)}); err == nil {
		t.Errorf("half a message becomes %s", line)
	}
}
