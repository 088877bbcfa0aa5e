// SPDX-License-Identifier: Apache-2.0

//go:build unix

package grpctool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"runtime"
	"slices"
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

// BenchmarkCall is one call over loopback: by grpc-go alone, by a connection of this
// package, and by an ensemble with its limits. cpu-ns/op is the processor time of both
// sides; the server's part is always the same.
//
// bare does no more than send the arguments: the contract has arguments and results as JSON,
// so a program need not convert them. careful does by hand what a program should that passes
// them between a model and a server: it checks that the arguments are an object and the
// result JSON, and sets a deadline.
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
	asBytes := []byte(arguments) // as a conversation has them

	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	client := toolspb.NewMcpToolServiceClient(conn)
	byHand := func(ctx context.Context) (*toolspb.ToolCallResponse, error) {
		response, err := client.CallTool(ctx, &toolspb.ToolCallRequest{ToolName: "echo", ArgumentsJson: arguments, IdempotencyKey: "call"})
		if err == nil && !response.Success {
			err = fmt.Errorf("it failed: %s", response.ErrorMessage)
		}
		return response, err
	}
	bare := func() error {
		_, err := byHand(ctx)
		return err
	}
	careful := func() error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		var object map[string]any
		if err := json.Unmarshal(asBytes, &object); err != nil {
			return err
		}
		response, err := byHand(ctx)
		if err == nil && !json.Valid([]byte(response.ResultJson)) {
			err = fmt.Errorf("the result is not JSON: %s", response.ResultJson)
		}
		return err
	}
	connection, err := grpctool.Source(address, plaintext()).Open(ctx)
	if err != nil {
		b.Fatal(err)
	}
	defer connection.Close(ctx)
	listing, err := connection.List(ctx)
	if err != nil {
		b.Fatal(err)
	}
	farm := ensemble.New("farm", grpctool.Source(address, plaintext()), nil)
	defer farm.Close(ctx)
	tools, err := farm.Tools(ctx)
	if err != nil {
		b.Fatal(err)
	}
	by := func(inv invoker.Invoker) func() error {
		return func() error {
			_, err := inv.Invoke(ctx, &invoker.Call{ID: "call", Arguments: asBytes})
			return err
		}
	}
	b.Run("bare", func(b *testing.B) { measure(b, bare) })
	b.Run("careful", func(b *testing.B) { measure(b, careful) })
	b.Run("connection", func(b *testing.B) { measure(b, by(listing.Invokers[0])) })
	b.Run("ensemble", func(b *testing.B) { measure(b, by(tools[0])) })
	b.Run("connection-to-bare", func(b *testing.B) { compare(b, by(listing.Invokers[0]), bare) })
	b.Run("ensemble-to-bare", func(b *testing.B) { compare(b, by(tools[0]), bare) })
	b.Run("ensemble-to-careful", func(b *testing.B) { compare(b, by(tools[0]), careful) })
}

// compare takes turns, so that what else the machine does meets both alike, and
// reports the ratio of the processor times: the median and the least of the
// iterations.
func compare(b *testing.B, one, other func() error) {
	const calls = 2000
	var ratios []float64
	for b.Loop() {
		ratios = append(ratios, float64(spent(b, calls, one))/float64(spent(b, calls, other)))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "median-ratio")
	b.ReportMetric(ratios[0], "least-ratio")
	b.ReportMetric(0, "ns/op")
}

func spent(b *testing.B, calls int, call func() error) time.Duration {
	runtime.GC()
	before := cpu(b)
	for range calls {
		if err := call(); err != nil {
			b.Fatal(err)
		}
	}
	return cpu(b) - before
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
