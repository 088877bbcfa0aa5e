// SPDX-License-Identifier: Apache-2.0

package grpctooltest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"
)

// newGRPC returns a gRPC server that passes all requests to handle.
func (s *Server) newGRPC() *grpc.Server {
	return grpc.NewServer(
		grpc.UnknownServiceHandler(s.handle),
		grpc.ForceServerCodec(codec{}),
		grpc.InTapHandle(numbered),
		grpc.WaitForHandlers(true),
		grpc.MaxRecvMsgSize(largestRequest),
		grpc.MaxSendMsgSize(1<<31-1),
	)
}

const largestRequest = 64 << 20

// request is one RPC.
type request struct {
	server *Server
	stream grpc.ServerStream
	wire   *wire
	id     uint32 // of the stream

	answer   proto.Message
	raw      []byte // sent instead of the answer
	compress bool
}

type idKey struct{}

// numbered adds the number of its stream to the context of a request. gRPC calls it for
// each stream of a connection, in order.
func numbered(ctx context.Context, _ *tap.Info) (context.Context, error) {
	return context.WithValue(ctx, idKey{}, wireOf(ctx).next()), nil
}

func wireOf(ctx context.Context) *wire {
	from, _ := peer.FromContext(ctx)
	return from.Addr.(where).wire
}

// handle answers a request.
func (s *Server) handle(_ any, stream grpc.ServerStream) error {
	ctx := stream.Context()
	r := &request{server: s, stream: stream, wire: wireOf(ctx)}
	r.id, _ = ctx.Value(idKey{}).(uint32)
	full, _ := grpc.MethodFromServerStream(stream)
	service, method, _ := strings.Cut(strings.TrimPrefix(full, "/"), "/")
	if !slices.Contains(s.services, service) {
		return status.Errorf(codes.Unimplemented, "unknown service %s", service)
	}
	switch method {
	case "ListTools":
		return r.list()
	case "CallTool":
		return r.call(service)
	default:
		return status.Errorf(codes.Unimplemented, "unknown method %s for service %s", method, service)
	}
}

func (r *request) list() error {
	asked := new(toolspb.ListToolsRequest)
	if err := r.stream.RecvMsg(asked); err != nil {
		return err
	}
	r.server.record.list()
	r.answer = r.server.tools.list(asked.Category)
	if on, err := r.strike("list", ""); !on {
		return err
	}
	return r.send()
}

func (r *request) call(service string) error {
	asked, ctx := new(toolspb.ToolCallRequest), r.stream.Context()
	if err := r.stream.RecvMsg(asked); err != nil {
		return err
	}
	call := Call{
		Service: service, Tool: asked.ToolName, Arguments: asked.ArgumentsJson,
		TraceID: asked.TraceId, CallerAgentID: asked.CallerAgentId, IdempotencyKey: asked.IdempotencyKey,
	}
	call.Metadata, _ = metadata.FromIncomingContext(ctx)
	call.Deadline, _ = ctx.Deadline()
	r.server.record.call(call)
	if on, err := r.strike("before-effect", call.Tool); !on {
		return err
	}
	answer, err := r.run(ctx, call)
	if err != nil {
		return err
	}
	r.answer = answer
	if on, err := r.strike("after-effect", call.Tool); !on {
		return err
	}
	return r.send()
}

// run runs the tool. A panic ends only its call.
func (r *request) run(ctx context.Context, call Call) (response *toolspb.ToolCallResponse, err error) {
	tool := r.server.tools.find(call.Tool)
	if tool == nil {
		return &toolspb.ToolCallResponse{
			ErrorCode: toolspb.ErrorCode_ERROR_CODE_TOOL_NOT_FOUND, ErrorMessage: fmt.Sprintf("There is no tool %q.", call.Tool),
		}, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = status.Errorf(codes.Unknown, "the tool panicked: %v", p)
		}
	}()
	return tool.run(ctx, call)
}

// strike applies the faults of an occasion, and reports whether the request continues.
func (r *request) strike(at Place, tool string) (bool, error) {
	for _, rule := range r.server.script.at(at, tool) {
		kind, _ := findKind(rule.Fault)
		if on, err := kind.request(r, rule); !on {
			return false, err
		}
	}
	return true, nil
}

func (r *request) send() error {
	if r.compress {
		if err := grpc.SetSendCompressor(r.stream.Context(), gzip.Name); err != nil {
			return err
		}
	}
	if r.raw != nil {
		return r.stream.SendMsg(r.raw)
	}
	return r.stream.SendMsg(r.answer)
}

// codec is the protobuf codec, and sends byte slices unchanged.
type codec struct{}

// Name implements encoding.Codec.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.Codec.
func (codec) Marshal(v any) ([]byte, error) {
	if raw, ok := v.([]byte); ok {
		return raw, nil
	}
	return proto.Marshal(v.(proto.Message))
}

// Unmarshal implements encoding.Codec.
func (codec) Unmarshal(data []byte, v any) error { return proto.Unmarshal(data, v.(proto.Message)) }
