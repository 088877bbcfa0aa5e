// SPDX-License-Identifier: Apache-2.0

// Package sidecar stands where Dapr's sidecar does, for tests: it passes each
// RPC on, byte for byte, to the application that the metadata dapr-app-id names
// (Dapr, "Service invocation", gRPC proxying), and asks for dapr-api-token.
package sidecar

import (
	"errors"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// New returns a sidecar that passes on to the given applications. The token may
// be empty: then none must be sent.
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
	out, err := application.NewStream(metadata.NewOutgoingContext(in.Context(), md), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, grpc.ForceCodec(asBytes{}))
	if err != nil {
		return err
	}
	go func() { // ends with the stream
		for {
			var message []byte
			if err := in.RecvMsg(&message); err != nil {
				_ = out.CloseSend()
				return
			}
			if out.SendMsg(message) != nil {
				return
			}
		}
	}()
	for {
		var message []byte
		if err := out.RecvMsg(&message); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := in.SendMsg(message); err != nil {
			return err
		}
	}
}

// asBytes leaves messages as they are.
type asBytes struct{}

var _ encoding.Codec = asBytes{}

func (asBytes) Name() string { return "proto" }

func (asBytes) Marshal(v any) ([]byte, error) { return v.([]byte), nil }

func (asBytes) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
