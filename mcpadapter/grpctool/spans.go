// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"encoding/hex"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// headers adapts metadata to carry a trace context (W3C Trace Context). Several values
// of one name are joined with a comma, which makes a traceparent invalid.
type headers metadata.MD

func received(ctx context.Context) headers {
	md, _ := metadata.FromIncomingContext(ctx)
	return headers(md)
}

func (h headers) Get(key string) string { return strings.Join(metadata.MD(h).Get(key), ",") }

func (h headers) Set(key, value string) { metadata.MD(h).Set(key, value) }

func (h headers) Keys() []string { return slices.Collect(maps.Keys(h)) }

// isTraceID reports whether text is a valid trace id: lower case and not zero (W3C
// Trace Context, § trace-id).
func isTraceID(text string) bool {
	id, err := hex.DecodeString(text)
	return err == nil && len(id) == 16 && text == strings.ToLower(text) && slices.Max(id) > 0
}

// serverAt returns the server of a gRPC target: its configured name, not the address of
// a machine that the name may resolve to (OpenTelemetry: semantic conventions for gRPC,
// server.address).
//
// Targets have no user part; if one is given anyway, it is removed.
func serverAt(target string) telemetry.Peer {
	target = redact.URI(target)
	p := telemetry.Peer{Transport: "tcp", Network: "grpc", System: "grpc", Address: target}
	scheme, rest, _ := strings.Cut(target, ":")
	if scheme == "unix" || scheme == "unix-abstract" {
		p.Transport, p.Address = "unix", strings.TrimPrefix(rest, "//")
		return p
	}
	endpoint := target
	if strings.HasPrefix(rest, "//") { // scheme://authority/endpoint
		_, endpoint, _ = strings.Cut(strings.TrimPrefix(rest, "//"), "/")
		if scheme != "dns" && scheme != "passthrough" {
			return p
		}
	} else if scheme == "dns" {
		endpoint = rest
	}
	endpoint = endpoint[strings.LastIndexByte(endpoint, '@')+1:]
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		p.Address = endpoint
		return p
	}
	p.Address = host
	p.Port, _ = strconv.Atoi(port)
	return p
}

// clientOf returns the sender of a request, as the server sees it.
func clientOf(ctx context.Context) telemetry.Peer {
	p := telemetry.Peer{Transport: "tcp", Network: "grpc", System: "grpc", Client: access.MeasuredFrom(ctx)}
	from, _ := peer.FromContext(ctx)
	if from == nil || from.Addr == nil {
		return p
	}
	p.Address = from.Addr.String()
	if from.Addr.Network() == "unix" {
		p.Transport, p.Address = "unix", "" // clients have no address
	} else if host, port, err := net.SplitHostPort(p.Address); err == nil {
		p.Address = host
		p.Port, _ = strconv.Atoi(port)
	}
	return p
}

// rpcOf returns the full method name of a request that a server received.
func rpcOf(ctx context.Context) string {
	method, _ := grpc.Method(ctx)
	return strings.TrimPrefix(method, "/")
}

// toolError is the error.type of a tool that failed although the request succeeded
// (OpenTelemetry: semantic conventions for MCP).
const toolError = "tool_error"

// toolFailed returns the fault of a call that was answered with a failure; nil for nil.
// The text of a tool in another process is content like any result, so it is replaced
// in the message.
func toolFailed(failure *invoker.Failure) *telemetry.Fault {
	fault := telemetry.FaultOf(failure)
	if fault == nil {
		return nil
	}
	fault.Type = toolError
	if len(fault.Said) > 0 {
		fault.Message = "The tool reported a failure."
	}
	return fault
}

// listed ends the span of a list request.
func listed(seen *telemetry.Request, response *toolspb.ListToolsResponse, err error) {
	if err != nil {
		s := status.Convert(err)
		seen.Refused(statusName(s.Code()))
		seen.End(nil, &telemetry.Fault{Type: statusName(s.Code()), Message: s.Message()})
		return
	}
	seen.Listed(len(response.GetTools()), 0)
	seen.End(nil, nil)
}

// failedRequest returns the fault of a request that this side made: the status it ended
// with, or else the code of the failure.
func failedRequest(seen *telemetry.Request, err error) *telemetry.Fault {
	failure := invoker.AsFailure(err)
	fault := telemetry.FaultOf(failure)
	if s, ok := status.FromError(failure.Cause); ok && failure.Cause != nil {
		seen.Refused(statusName(s.Code()))
		fault.Type = statusName(s.Code())
	}
	return fault
}

// statusName returns the name of a status in the specification, such as
// DEADLINE_EXCEEDED.
func statusName(c codes.Code) string { return code.Code(c).String() }
