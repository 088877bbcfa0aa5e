// SPDX-License-Identifier: Apache-2.0

// Package sidecar is a stand-in for Dapr's sidecar in tests. It forwards each RPC, byte
// for byte, to the application named by the metadata dapr-app-id (Dapr, "Service
// invocation", gRPC proxying), and requires dapr-api-token. Like Dapr's sidecar with a
// retry policy, it forwards only one message of the client unless dapr-stream announces a
// stream, and it forwards headers with the first message of the server.
package sidecar

import (
	"context"
	"errors"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// New returns a sidecar that forwards to the given applications. If the token is empty,
// requests must not have one.
func New(token string, applications map[string]*grpc.ClientConn) *grpc.Server {
	s := &sidecar{token, applications}
	return grpc.NewServer(grpc.ForceServerCodec(asBytes{}), grpc.UnknownServiceHandler(s.pass))
}

type sidecar struct {
	token        string
	applications map[string]*grpc.ClientConn
}

func (s *sidecar) pass(_ any, in grpc.ServerStream) error {
	md, _ := metadata.FromIncomingContext(in.Context())
	if got := strings.Join(md.Get("dapr-api-token"), ","); got != s.token {
		return status.Error(codes.Unauthenticated, "the sidecar wants its token")
	}
	name := strings.Join(md.Get("dapr-app-id"), ",")
	application, ok := s.applications[name]
	if !ok {
		return status.Errorf(codes.Unavailable, "no application %q", name)
	}
	method, _ := grpc.MethodFromServerStream(in)
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(in.Context(), md))
	defer cancel()
	out, err := application.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, grpc.ForceCodec(asBytes{}))
	if err != nil {
		return err
	}
	tooMany := make(chan error, 1)
	go func() { // ends with the stream
		isStream := strings.Join(md.Get("dapr-stream"), ",") == "true"
		for n := 1; ; n++ {
			var message []byte
			if err := in.RecvMsg(&message); err != nil {
				_ = out.CloseSend()
				return
			}
			if n > 1 && !isStream {
				tooMany <- status.Error(codes.FailedPrecondition, "cannot use resiliency policies with retries on streaming RPCs")
				cancel()
				return
			}
			if out.SendMsg(message) != nil {
				return
			}
		}
	}()
	for first := true; ; first = false {
		var message []byte
		if err := out.RecvMsg(&message); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			select {
			case err = <-tooMany:
			default:
			}
			return err
		}
		if headers, err := out.Header(); first && err == nil { // not earlier, like Dapr
			if err := in.SendHeader(headers); err != nil {
				return err
			}
		}
		if err := in.SendMsg(message); err != nil {
			return err
		}
	}
}

// asBytes is a codec that leaves messages unchanged.
type asBytes struct{}

var _ encoding.Codec = asBytes{}

func (asBytes) Name() string { return "proto" }

func (asBytes) Marshal(v any) ([]byte, error) { return v.([]byte), nil }

func (asBytes) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
