// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/consort-go/consort/internal/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Line returns the line of a message. The SDK's encoder makes several copies, so the usual
// request, which has a number as its ID, is encoded here.
func Line(msg jsonrpc.Message) ([]byte, error) {
	var id int64
	request, usual := msg.(*jsonrpc.Request)
	if usual {
		id, usual = request.ID.Raw().(int64)
	}
	if !usual || len(request.Params) == 0 {
		text, err := jsonrpc.EncodeMessage(msg)
		return append(text, '\n'), err
	}
	var line bytes.Buffer
	line.Grow(100 + len(request.Method) + len(request.Params)) // 100 for the ID and the names
	begin := strconv.AppendInt(append(line.AvailableBuffer(), `{"jsonrpc":"2.0","id":`...), id, 10)
	line.Write(jsontext.AppendName(jsontext.AppendMember(begin, "method", request.Method), "params"))
	if err := json.Compact(&line, request.Params); err != nil { // without line breaks
		return nil, err
	}
	line.WriteString("}\n")
	return line.Bytes(), nil
}

// MetaMember is a member of the _meta of a call: a text or, if it is not nil, a value.
type MetaMember struct {
	Name, Text string
	Value      any
}

// EncodeCall encodes the parameters of tools/call, with _meta first. The arguments are a JSON
// object, as invoker.Raw passes them on; shared has the members of _meta that are the same in all calls.
func EncodeCall(tool string, arguments json.RawMessage, meta []MetaMember, shared []byte) (json.RawMessage, error) {
	text := make([]byte, 0, 200+len(shared)+len(tool)+len(arguments)) // 200 for an ID and a token
	text = append(append(text, `{"_meta":{`...), shared...)
	for _, member := range meta {
		if member.Value == nil {
			text = jsontext.AppendMember(text, member.Name, member.Text)
			continue
		}
		value, err := json.Marshal(member.Value)
		if err != nil {
			return nil, err
		}
		text = append(jsontext.AppendName(text, member.Name), value...)
	}
	text = jsontext.AppendMember(append(text, '}'), "name", tool)
	return append(append(jsontext.AppendName(text, "arguments"), arguments...), '}'), nil
}
