// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// MetaCarrier is the _meta of a request. It carries trace context under the names of
// W3C Trace Context (SEP-414).
type MetaCarrier map[string]any

// Get implements the carrier of a propagator.
func (m MetaCarrier) Get(key string) string {
	value, _ := m[key].(string)
	return value
}

// Set implements the carrier of a propagator.
func (m MetaCarrier) Set(key, value string) { m[key] = value }

// Keys implements the carrier of a propagator.
func (m MetaCarrier) Keys() []string { return slices.Collect(maps.Keys(m)) }

// HeaderCarrier carries trace context in the header of an HTTP request.
type HeaderCarrier struct{ http.Header }

// Keys implements the carrier of a propagator.
func (h HeaderCarrier) Keys() []string { return slices.Collect(maps.Keys(h.Header)) }

// MetaOfParams returns the _meta of parameters; nil if the request has no parameters.
func MetaOfParams(p mcp.Params) MetaCarrier {
	if p == nil || reflect.ValueOf(p).IsNil() {
		return nil
	}
	return p.GetMeta()
}

// RefusalFault records that a request was answered with a JSON-RPC error.
func RefusalFault(span *telemetry.Request, refusal *jsonrpc.Error) *telemetry.Fault {
	code := strconv.FormatInt(refusal.Code, 10)
	span.Refused(code)
	return &telemetry.Fault{Type: code, Message: refusal.Message}
}

// ErrorFault returns the fault of a request of the other side that is answered with
// an error. The other side may have caused the error; Refused knows the codes.
func ErrorFault(span *telemetry.Request, err error) *telemetry.Fault {
	var refusal *jsonrpc.Error
	if errors.As(err, &refusal) {
		return RefusalFault(span, refusal)
	}
	return telemetry.FaultOf(invoker.AsFailure(err))
}

// ToolFault returns the fault of a result that says isError (semantic conventions for
// MCP, § error.type). Its message leaves out the tool's own text, which is a result like
// any other.
func ToolFault(failure *invoker.Failure) *telemetry.Fault {
	fault := telemetry.FaultOf(failure)
	fault.Type = "tool_error"
	if len(fault.Said) > 0 {
		fault.Message = "The tool reported a failure."
	}
	return fault
}
