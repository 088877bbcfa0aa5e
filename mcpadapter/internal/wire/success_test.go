// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// FuzzSuccess: a message that Success takes is the one that the SDK's decoder
// makes of it.
func FuzzSuccess(f *testing.F) {
	usual := []string{
		`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a \"b\" {"}]}}`,
		` { "result" : {} , "id" : "a-1" , "jsonrpc" : "2.0" } `,
	}
	for _, text := range usual {
		if Success([]byte(text)) == nil {
			f.Errorf("%s is left to the SDK", text)
		}
		f.Add([]byte(text))
	}
	for _, text := range []string{
		`{}`, `[]`, `7`, `{"jsonrpc":"2.0","id":1}`, `{"jsonrpc":"1.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1.5,"result":{}}`,
		`{"jsonrpc":"2.0","id":"\u0061","result":{}}`, `{"jsonrpc":"2.0","id":null,"result":{}}`, `{"jsonrpc":"2.0","id":true,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"result":null}`, `{"jsonrpc":"2.0","id":1,"result":{},"result":{"a":1}}`, `{"jsonrpc":"2.0","id":-0,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}`, `{"jsonrpc":"2.0","id":1,"result":{},"method":"ping"}`,
		`{"jsonrpc":"2.0","ID":1,"result":{}}`, `{"jsonrpc":"2.0","id":99999999999,"result":{}}`, "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"result\":{}}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return
		}
		got := Success(text)
		if got == nil {
			return
		}
		want, err := jsonrpc.DecodeMessage(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s becomes %+v, and the SDK makes %+v, %v", text, got, want, err)
		}
	})
}
