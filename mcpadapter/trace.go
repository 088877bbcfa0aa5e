// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Routed may be implemented by a [Link], or by the stream that [Server.Serve] reads
// from, to describe its network route to telemetry. For a Link without it, nothing is
// recorded; a stream without it is recorded as a pipe.
type Routed interface {
	// Route returns the transport, the network and the address of the other side. It
	// may be called concurrently and must return immediately.
	Route() telemetry.Peer
}

// metaCarrier is the _meta of a request. It carries trace context under the names of
// W3C Trace Context (SEP-414).
type metaCarrier map[string]any

func (m metaCarrier) Get(key string) string {
	value, _ := m[key].(string)
	return value
}

func (m metaCarrier) Set(key, value string) { m[key] = value }
func (m metaCarrier) Keys() []string        { return slices.Collect(maps.Keys(m)) }

// headerCarrier carries trace context in the header of an HTTP request.
type headerCarrier struct{ http.Header }

func (h headerCarrier) Keys() []string { return slices.Collect(maps.Keys(h.Header)) }

// metaOfParams returns the _meta of parameters; nil if the request has no parameters.
func metaOfParams(p mcp.Params) metaCarrier {
	if p == nil || reflect.ValueOf(p).IsNil() {
		return nil
	}
	return p.GetMeta()
}

// carrying adds members to the _meta of parameters. If the SDK encoded them, the rest
// is not decoded, because arguments may be large.
func carrying(params json.RawMessage, added metaCarrier) json.RawMessage {
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
	if m, err := members(params); err != nil || m["_meta"] != nil || params[0] != '{' {
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

// knownVersion returns version if it is a published version of the protocol, otherwise
// "". An invented version must not become an attribute of metrics, where each value
// creates a new series.
func knownVersion(version string) string {
	switch version {
	case "2024-11-05", "2025-03-26", "2025-06-18", legacy, modern:
		return version
	}
	return ""
}

// idText returns the ID of a request as text.
func idText(id jsonrpc.ID) string {
	if !id.IsValid() {
		return ""
	}
	return textcut.Bytes(fmt.Sprint(id.Raw()), maxQuoted)
}

// refusedWith records that a request was answered with a JSON-RPC error.
func refusedWith(span *telemetry.Request, refusal *jsonrpc.Error) *telemetry.Fault {
	code := strconv.FormatInt(refusal.Code, 10)
	span.Refused(code)
	return &telemetry.Fault{Type: code, Message: refusal.Message}
}

// answeredWith returns the fault of a request of the other side that is answered with
// an error. The other side may have caused the error; Refused knows the codes.
func answeredWith(span *telemetry.Request, err error) *telemetry.Fault {
	var refusal *jsonrpc.Error
	if errors.As(err, &refusal) {
		return refusedWith(span, refusal)
	}
	return telemetry.FaultOf(invoker.AsFailure(err))
}

// toolFault returns the fault of a result that says isError (semantic conventions for
// MCP, § error.type). Its message leaves out the tool's own text, which is a result like
// any other.
func toolFault(failure *invoker.Failure) *telemetry.Fault {
	fault := telemetry.FaultOf(failure)
	fault.Type = "tool_error"
	if len(fault.Said) > 0 {
		fault.Message = "The tool says that it failed."
	}
	return fault
}
