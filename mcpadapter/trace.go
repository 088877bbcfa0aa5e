// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
)

// Routed may be implemented by a [Link], or by the stream that a server of
// mcpadapter/server reads from, to describe its network route to telemetry. For a Link
// without it, nothing is recorded; a stream without it is recorded as a pipe.
type Routed interface {
	// Route returns the transport, the network and the address of the other side. It
	// may be called concurrently and must return immediately.
	Route() telemetry.Peer
}

// carrying adds members to the _meta of parameters. If the SDK encoded them, the rest
// is not decoded, because arguments may be large.
func carrying(params json.RawMessage, added wire.MetaCarrier) json.RawMessage {
	text, err := json.Marshal(added)
	if err != nil || len(added) == 0 {
		return params
	}
	const start = `{"_meta":{` // the SDK writes _meta first
	more := text[1 : len(text)-1]
	if rest, ok := bytes.CutPrefix(params, []byte(start)); ok {
		return slices.Concat([]byte(start), more, comma(rest), rest)
	}
	if len(params) == 0 || string(params) == "null" {
		params = json.RawMessage("{}")
	}
	if m, err := wire.Members(params); err != nil || m["_meta"] != nil || params[0] != '{' {
		return params // not an encoding that the SDK produces
	}
	return slices.Concat([]byte(start), more, []byte("}"), comma(params[1:]), params[1:])
}

// comma returns the separator between a member and the rest of an object.
func comma(rest []byte) []byte {
	if bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte("}")) {
		return nil
	}
	return []byte(",")
}
