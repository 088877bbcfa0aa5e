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

// Routed is what a [Link], or the stream that [Server.Serve] reads from, may
// implement to tell telemetry over what it goes. Of a Link that does not,
// nothing is told; a stream that does not is taken for a pipe.
type Routed interface {
	// Route returns the transport, the network and the address of the other
	// side. It may be called concurrently, and must return at once.
	Route() telemetry.Peer
}

// metaCarrier is the _meta of a request, in which the context of a trace stands
// under the names of W3C Trace Context (SEP-414).
type metaCarrier map[string]any

func (m metaCarrier) Get(key string) string {
	value, _ := m[key].(string)
	return value
}

func (m metaCarrier) Set(key, value string) { m[key] = value }
func (m metaCarrier) Keys() []string        { return slices.Collect(maps.Keys(m)) }

// headerCarrier is the header of an HTTP request.
type headerCarrier struct{ http.Header }

func (h headerCarrier) Keys() []string { return slices.Collect(maps.Keys(h.Header)) }

// metaOfParams returns the _meta of parameters, which the SDK leaves nil if a
// request has none.
func metaOfParams(p mcp.Params) metaCarrier {
	if p == nil || reflect.ValueOf(p).IsNil() {
		return nil
	}
	return p.GetMeta()
}

// carrying adds members to the _meta of parameters. The rest is not looked at,
// where the SDK has written it: arguments may be large.
func carrying(params json.RawMessage, added metaCarrier) json.RawMessage {
	text, err := json.Marshal(added)
	if err != nil || len(added) == 0 {
		return params
	}
	const start = `{"_meta":{` // it comes first, if there is one
	more := text[1 : len(text)-1]
	if rest, ok := bytes.CutPrefix(params, []byte(start)); ok {
		return slices.Concat([]byte(start), more, comma(rest), rest)
	}
	if len(params) == 0 || string(params) == "null" {
		params = json.RawMessage("{}")
	}
	if m, err := members(params); err != nil || m["_meta"] != nil || params[0] != '{' {
		return params // nobody writes it so
	}
	return slices.Concat([]byte(start), more, []byte("}"), comma(params[1:]), params[1:])
}

// comma is what stands between a member and the rest of an object.
func comma(rest []byte) []byte {
	if bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte("}")) {
		return nil
	}
	return []byte(",")
}

// knownVersion is a version of the protocol that there is: what somebody made up
// must not become an attribute of measurements, of which each value makes more.
func knownVersion(version string) string {
	switch version {
	case "2024-11-05", "2025-03-26", "2025-06-18", legacy, modern:
		return version
	}
	return ""
}

// idText is the identity of a request as people write it.
func idText(id jsonrpc.ID) string {
	if !id.IsValid() {
		return ""
	}
	return textcut.Bytes(fmt.Sprint(id.Raw()), maxQuoted)
}

// refusedWith notes that a request was answered with an error of JSON-RPC.
func refusedWith(span *telemetry.Request, refusal *jsonrpc.Error) *telemetry.Fault {
	code := strconv.FormatInt(refusal.Code, 10)
	span.Refused(code)
	return &telemetry.Fault{Type: code, Message: refusal.Message}
}

// answeredWith is the fault of a request of the other side that is answered with
// an error, which may be one of that side's own: Refused knows the codes.
func answeredWith(span *telemetry.Request, err error) *telemetry.Fault {
	var refusal *jsonrpc.Error
	if errors.As(err, &refusal) {
		return refusedWith(span, refusal)
	}
	return telemetry.FaultOf(invoker.AsFailure(err))
}

// toolFault is the fault of a result that says isError (semantic conventions for
// MCP, § error.type). What the tool says of it is a result like any other.
func toolFault(failure *invoker.Failure) *telemetry.Fault {
	fault := telemetry.FaultOf(failure)
	fault.Type = "tool_error"
	if len(fault.Said) > 0 {
		fault.Message = "The tool says that it failed."
	}
	return fault
}
