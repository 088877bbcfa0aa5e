// SPDX-License-Identifier: Apache-2.0

//go:build unix

package grpctool_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// BenchmarkCall is one call over loopback: by grpc-go alone, by a connection of
// this package, and by an ensemble with its limits. cpu-ns/op is the processor
// time of both sides; that of the server is the same each time.
func BenchmarkCall(b *testing.B) {
	service := &scripted{
		list: func(context.Context, *toolspb.ListToolsRequest) (*toolspb.ListToolsResponse, error) {
			return &toolspb.ListToolsResponse{Tools: []*toolspb.ToolDefinition{{
				Name: "echo", InputSchemaJson: `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`,
			}}}, nil
		},
		call: func(_ context.Context, request *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error) {
			return &toolspb.ToolCallResponse{Success: true, ResultJson: request.ArgumentsJson}, nil
		},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := service.under(grpctool.Service)()
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	ctx, address := context.Background(), listener.Addr().String()
	arguments := `{"text":"What is the weather in Oslo, and what should I wear?"}`

	b.Run("bare", func(b *testing.B) {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		client := toolspb.NewMcpToolServiceClient(conn)
		measure(b, func() error {
			response, err := client.CallTool(ctx, &toolspb.ToolCallRequest{ToolName: "echo", ArgumentsJson: arguments})
			if err == nil && !response.Success {
				err = fmt.Errorf("it failed: %s", response.ErrorMessage)
			}
			return err
		})
	})
	b.Run("connection", func(b *testing.B) {
		connection, err := grpctool.Source(address, plaintext()).Open(ctx)
		if err != nil {
			b.Fatal(err)
		}
		defer connection.Close(ctx)
		listing, err := connection.List(ctx)
		if err != nil {
			b.Fatal(err)
		}
		measure(b, func() error {
			_, err := listing.Invokers[0].Invoke(ctx, &invoker.Call{ID: "call", Arguments: []byte(arguments)})
			return err
		})
	})
	b.Run("ensemble", func(b *testing.B) {
		farm := ensemble.New("farm", grpctool.Source(address, plaintext()), nil)
		defer farm.Close(ctx)
		tools, err := farm.Tools(ctx)
		if err != nil {
			b.Fatal(err)
		}
		measure(b, func() error {
			_, err := tools[0].Invoke(ctx, &invoker.Call{ID: "call", Arguments: []byte(arguments)})
			return err
		})
	})
}

func measure(b *testing.B, call func() error) {
	if err := call(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		if err := call(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
}

func cpu(b *testing.B) time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
