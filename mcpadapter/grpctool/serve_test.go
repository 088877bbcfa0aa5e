// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// serving is a server at work.
type serving struct {
	*grpctool.Server
	address string
	stop    context.CancelFunc
	ended   chan error
}

func serve(t *testing.T, options *grpctool.ServerOptions) *serving {
	t.Helper()
	return serveRoster(t, nil, options)
}

func serveRoster(t *testing.T, roster *ensemble.Roster, options *grpctool.ServerOptions) *serving {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &serving{Server: grpctool.NewServer(roster, options), address: listener.Addr().String(), stop: stop, ended: make(chan error, 1)}
	go func() { s.ended <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		_ = s.Close(context.Background())
	})
	return s
}

// The suite of sources, with Serve on the other side.
func TestServeSuite(t *testing.T) {
	ensembletest.TestSource(t, func(t *testing.T) ensembletest.Harness {
		s := serve(t, &grpctool.ServerOptions{Tools: ensembletest.ServerTools()})
		return ensembletest.Harness{Source: grpctool.Source(s.address, plaintext()), NoProgress: true}
	})
}

// A call that is under way when the server ends gets its answer, and none begins.
func TestServeEndsPolitely(t *testing.T) {
	for name, end := range map[string]func(*serving){
		"context": func(s *serving) { s.stop() },
		"Close":   func(s *serving) { go func() { _ = s.Close(context.Background()) }() },
	} {
		t.Run(name, func(t *testing.T) {
			gate := ensembletest.NewGate("gate", false)
			s := serve(t, &grpctool.ServerOptions{Tools: []invoker.Invoker{gate}})
			connection := opened(t, grpctool.Source(s.address, plaintext()))
			inv := tool(t, connection, "gate")
			answered := make(chan error, 1)
			ctx := within(t)
			go func() {
				output, err := inv.Invoke(ctx, &invoker.Call{})
				if err == nil && canister.TextOf(output.Content) != "through" {
					err = invoker.Failf(invoker.Internal, "it answered %v", output)
				}
				answered <- err
			}()
			await(t, "the call", gate.Begun)
			end(s)
			await(t, "word of the end", connectionMoves(connection.(ensemble.Pinger)))
			if _, err := grpctool.Source(s.address, plaintext()).Open(within(t)); err == nil {
				t.Error("a new connection was made to a server that ends")
			}
			gate.Release("through")
			if err := await(t, "the answer", answered); err != nil {
				t.Error(err)
			}
			if err := await(t, "the end", s.ended); err != nil {
				t.Error(err)
			}
		})
	}
}

// connectionMoves is closed when new calls no longer reach a server.
func connectionMoves(connection ensemble.Pinger) <-chan struct{} {
	moved := make(chan struct{})
	go func() {
		defer close(moved)
		for {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			err := connection.Ping(ctx)
			cancel()
			if err != nil {
				return
			}
		}
	}()
	return moved
}

// A call that does not end in time is cancelled.
func TestServeEndsInTime(t *testing.T) {
	gate := ensembletest.NewGate("gate", false)
	roster := rosterOf(t, ensemble.Local("local", gate))
	s := serveRoster(t, roster, &grpctool.ServerOptions{ShutdownTimeout: time.Millisecond})
	inv := tool(t, opened(t, grpctool.Source(s.address, plaintext())), "local__gate")
	answered := make(chan error, 1)
	ctx := within(t)
	go func() {
		_, err := inv.Invoke(ctx, &invoker.Call{})
		answered <- err
	}()
	await(t, "the call", gate.Begun)
	s.stop()
	if failure := invoker.AsFailure(await(t, "the answer", answered)); failure == nil || failure.Code != invoker.Canceled ||
		!strings.Contains(failure.Message, "The server ended") {
		t.Errorf("the call came to %v", failure)
	}
	if err := await(t, "the end", s.ended); err != nil {
		t.Error(err)
	}
}

func TestServeTwice(t *testing.T) {
	s := serve(t, nil)
	opened(t, grpctool.Source(s.address, plaintext()))
	if err := s.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := await(t, "the end", s.ended); err != nil {
		t.Error(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if s.Serve(within(t), listener) == nil {
		t.Error("a closed server serves")
	}
	if _, err := listener.Accept(); err == nil {
		t.Error("the listener is open")
	}
}

func TestServeWithoutListener(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	server := grpctool.NewServer(nil, nil)
	if err := server.Serve(within(t), listener); err == nil {
		t.Error("a listener that is closed serves")
	}
	if err := server.Close(within(t)); err != nil {
		t.Error(err)
	}
}

// A watcher of the health does not delay the shutdown.
func TestHealth(t *testing.T) {
	s := serve(t, nil)
	client := healthpb.NewHealthClient(raw(t, s.address))
	for _, name := range []string{"", grpctool.Service, grpctool.OriginalService} {
		got, err := client.Check(within(t), &healthpb.HealthCheckRequest{Service: name})
		if err != nil || got.Status != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
	watch, err := client.Watch(context.Background(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []healthpb.HealthCheckResponse_ServingStatus{healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING} {
		got, err := watch.Recv()
		if err != nil || got.Status != want {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
		s.stop()
	}
	if err := await(t, "the end", s.ended); err != nil {
		t.Error(err)
	}
}

// The program may have reasons of its own why there should be no calls: they hold
// from the first request on.
func TestNotReady(t *testing.T) {
	s := serve(t, &grpctool.ServerOptions{NotReady: func() string { return "nothing is connected yet" }})
	for _, name := range []string{"", grpctool.Service} {
		got, err := healthpb.NewHealthClient(raw(t, s.address)).Check(within(t), &healthpb.HealthCheckRequest{Service: name})
		if err != nil || got.Status != healthpb.HealthCheckResponse_NOT_SERVING {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
}

// A panic of the program's function ends no process, and is a reason.
func TestNotReadyPanics(t *testing.T) {
	core, logs := observer.New(zapcore.ErrorLevel)
	s := serve(t, &grpctool.ServerOptions{Logger: zap.New(core), NotReady: func() string { panic("no idea") }})
	got, err := healthpb.NewHealthClient(raw(t, s.address)).Check(within(t), &healthpb.HealthCheckRequest{})
	if err != nil || got.Status != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("%v, %v", got, err)
	}
	if n := logs.FilterField(logevent.FunctionPanicked).Len(); n != 1 {
		t.Errorf("%d entries in the log", n)
	}
}

// Reflection tells of both names, and of the original one's own messages.
func TestReflection(t *testing.T) {
	s := serve(t, nil)
	stream, err := reflectionpb.NewServerReflectionClient(raw(t, s.address)).ServerReflectionInfo(within(t))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(request *reflectionpb.ServerReflectionRequest) *reflectionpb.ServerReflectionResponse {
		t.Helper()
		if err := stream.Send(request); err != nil {
			t.Fatal(err)
		}
		response, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	var names []string
	for _, service := range ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}).GetListServicesResponse().GetService() {
		names = append(names, service.Name)
	}
	for _, name := range []string{grpctool.Service, grpctool.OriginalService, "grpc.health.v1.Health"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not among %q", name, names)
		}
	}
	for symbol, pkg := range map[string]string{
		grpctool.Service: "consort.tools.v1", grpctool.OriginalService: "farmer_power.mcp.v1", "farmer_power.mcp.v1.ToolCallResponse": "farmer_power.mcp.v1",
	} {
		response := ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: symbol}})
		files := response.GetFileDescriptorResponse().GetFileDescriptorProto()
		if len(files) != 1 {
			t.Errorf("%s: %v", symbol, response)
			continue
		}
		file := new(descriptorpb.FileDescriptorProto)
		if err := proto.Unmarshal(files[0], file); err != nil || file.GetPackage() != pkg {
			t.Errorf("%s: package %s, %v", symbol, file.GetPackage(), err)
		}
		if output := file.GetService()[0].GetMethod()[1].GetOutputType(); output != "."+pkg+".ToolCallResponse" {
			t.Errorf("%s: CallTool returns %s", symbol, output)
		}
	}
}
