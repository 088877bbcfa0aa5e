// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

func TestRead(t *testing.T) {
	for _, test := range []struct{ message, method, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"x","arguments":{"a":1,"a":2,"A":3}}}`, "a", ``},
		{`{"method":"a","params":{"_meta":{"x":1,"x":2},"other":{"name":1}}}`, "a", ``},
		{`{"params":["method","method"],"method":"\u0061"}`, "a", ``},
		{`{"id":1,"result":{"name":1,"Name":2}}`, "", ``},
		{`{"result":{"a":"]}\"{[","b":"\\"}}`, "", ``},
		{`{"method":"a","method":"b"}`, "", `twice`},
		{`{"method":"a","m\u0065thod":"b"}`, "", `twice`},
		{`{"params":{"a":{"b":1},"c":1,"a":2}}`, "", `twice`},
		{`{"params":{"odd":1,"ODD":2}}`, "", `twice`},
		{`[{"params":{"odd":1,"ODD":2}}]`, "", `twice`},
		{`{"Params":{}}`, "", `written as`},
		{"[" + strings.Repeat("{},", maxBatch-1) + "{}]", "", ``},
		{"[" + strings.Repeat("{},", maxBatch) + "{}]", "", `more than 100 messages`},
		{`{"params":{"requeststate":""}}`, "", `written as`},
		{strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth), "", ``},
		{strings.Repeat("[", maxDepth+1), "", `deeper`},
		{`{"a":"` + strings.Repeat("[", maxDepth+1) + `"}`, "", ``},
		{`}`, "", `not JSON`},
		{`{"id":"1.5","method":"a"}`, "a", ``},
		{`{"id": -9007199254740991 ,"method":"a"}`, "a", ``},
		{`{"id":9007199254740992,"method":"a"}`, "", `its id`},
		{`{"id":1.0,"method":"a"}`, "", `its id`},
		{`{"id":1e3,"method":"a"}`, "", `its id`},
		{`{"id":-0,"method":"a"}`, "", `its id`},
		{`{"id":null,"error":{"code":1,"message":"x"}}`, "", `its id`},
		{`{"id":[1],"method":"a"}`, "", `its id`},
		{`{"\u0069d":1.5,"method":"a"}`, "", `its id`},
		{`{"method":"a","params":{"id":1.5,"x":{"requestId":1.5}}}`, "a", ``},
		{`{"method":"notifications/cancelled","params":{"requestId":1.5}}`, "", `its id`},
		{`[{"id":1,"method":"a"},{"id":"1","method":"a"},{"id":1,"result":{}}]`, "", ``},
		{`[{"id":1,"method":"a"},{"method":"b","id":1}]`, "", `same id`},
		{`[{"id":"a","method":"a"},{"method":"b","id":"\u0061"}]`, "", `same id`},
		{"{} \r\n\t", "", ``},
		{`{}{}`, "", `followed`},
		{`[]{}`, "", `followed`},
		{`{} null`, "", `followed`},
		{`{"a`, "", `not JSON`},
	} {
		e, err := Read([]byte(test.message))
		switch {
		case test.want == "" && (err != nil || e.Method != test.method):
			t.Errorf("%.100s: method %q, %v", test.message, e.Method, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%.100s: got %v, want %s", test.message, err, test.want)
		}
	}
}

// What inspect lets pass and the SDK decodes, it reads as the SDK does.
func FuzzRead(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[1]}}}`)
	f.Add(`{"jsonrpc":"2.0","id":"\u0069","m\u0065thod":"a"}`)
	f.Add(`{"jsonrpc":"2.0","id":1,"result":{"method":"no"}}`)
	f.Add("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\x80tools/call\"}")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Read([]byte(text))
		message, broken := jsonrpc.DecodeMessage([]byte(text))
		if err != nil || broken != nil || !json.Valid([]byte(text)) || e.Batch {
			return
		}
		request, ok := message.(*jsonrpc.Request)
		if !ok {
			return
		}
		if id := request.ID.Raw(); request.IsCall() && !strings.Contains(text, "\\u") {
			if exact, _ := json.Marshal(id); !strings.Contains(text, string(exact)) && utf8.ValidString(text) {
				t.Errorf("the id %s is not in it", exact)
			}
		}
		if request.Method != e.Method {
			t.Errorf("method %q, the SDK reads %q", e.Method, request.Method)
		}
		if request.IsCall() && !e.Call {
			t.Errorf("a call is not seen as one")
		}
	})
}
