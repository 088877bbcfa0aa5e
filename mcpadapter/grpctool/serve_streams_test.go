// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/internal/testing/pipenet"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
)

// liveObjects is how many objects are on the heap and in use.
func liveObjects() int {
	runtime.GC()
	runtime.GC() // values with a finalizer or in a pool
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapObjects)
}

// gRPC sets a timer for the grpc-timeout of a stream, which may be years: none
// stays when the stream is refused.
func TestRefusedStreamsLeaveNothing(t *testing.T) {
	s := serve(t, &grpctool.ServerOptions{Token: "0123456789abcdef"})
	refuse := func(n int) {
		connection := dialFrom(t, s.address, "127.0.0.1")
		defer connection.Close()
		ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer wrong"), 10_000*time.Hour)
		defer cancel()
		for range n {
			if _, err := toolspb.NewMcpToolServiceClient(connection).ListTools(ctx, &toolspb.ListToolsRequest{}); status.Code(err) != codes.Unauthenticated {
				t.Fatalf("with a wrong token: %v", err)
			}
		}
	}
	const refused = 4000
	refuse(100) // values that are created only once exist now
	before := liveObjects()
	refuse(refused)
	if left := liveObjects() - before; left > refused/2 {
		t.Errorf("%d refused streams leave %d objects", refused, left)
	}
}

// dialFrom returns a connection from an address of this machine.
func dialFrom(t *testing.T, address, from string) *grpc.ClientConn {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	connection, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", to) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// halfSent is a stream whose header has left, and nothing else.
func halfSent(t *testing.T, connection *grpc.ClientConn, method string) grpc.ClientStream {
	t.Helper()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer 0123456789abcdef")
	stream, err := connection.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// flood opens half-sent streams from an address, and waits until the server has
// ended as many as it has no room for.
func flood(t *testing.T, address, from, method string, streams, ended int) {
	t.Helper()
	over := make(chan error, streams)
	var readers sync.WaitGroup
	t.Cleanup(readers.Wait) // after the connections were closed
	var connection *grpc.ClientConn
	for i := range streams {
		if i%500 == 0 {
			connection = dialFrom(t, address, from)
		}
		stream := halfSent(t, connection, method)
		readers.Go(func() { over <- stream.RecvMsg(&healthpb.HealthCheckResponse{}) })
	}
	for range ended {
		await(t, "the end of a stream", over)
	}
}

// An address that sends the half of thousands of requests ends no request of
// another one, and neither do requests that need no token.
func TestHalfSentStreamsEndNoOthers(t *testing.T) {
	for name, test := range map[string]struct {
		from, method string
		room         int
	}{
		"another address":           {"127.0.0.2", toolspb.McpToolService_CallTool_FullMethodName, 1024},
		"other connections of ours": {"127.0.0.1", toolspb.McpToolService_CallTool_FullMethodName, 1024},
		"health":                    {"127.0.0.1", healthpb.Health_Check_FullMethodName, 256},
		"watch":                     {"127.0.0.1", healthpb.Health_Watch_FullMethodName, 1024},
		"reflection":                {"127.0.0.1", reflectionpb.ServerReflection_ServerReflectionInfo_FullMethodName, 1024},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, &grpctool.ServerOptions{Token: "0123456789abcdef"})
			slow := halfSent(t, dialFrom(t, s.address, "127.0.0.1"), toolspb.McpToolService_ListTools_FullMethodName)
			health := healthpb.NewHealthClient(dialFrom(t, s.address, "127.0.0.3"))
			watching, err := health.Watch(t.Context(), &healthpb.HealthCheckRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := watching.Recv(); err != nil {
				t.Fatal(err)
			}
			const streams = 3000
			flood(t, s.address, test.from, test.method, streams, streams-test.room)
			if _, err := health.Check(within(t), &healthpb.HealthCheckRequest{}); err != nil {
				t.Errorf("the health service: %v", err)
			}
			if err := slow.SendMsg(&toolspb.ListToolsRequest{}); err != nil {
				t.Error(err)
			}
			if err := slow.CloseSend(); err != nil {
				t.Error(err)
			}
			if err := slow.RecvMsg(&toolspb.ListToolsResponse{}); err != nil {
				t.Errorf("the slow request: %v", err)
			}
			s.stop() // and the other client is told
			if got, err := watching.Recv(); err != nil || got.Status != healthpb.HealthCheckResponse_NOT_SERVING {
				t.Errorf("the stream that watches the health: %v, %v", got, err)
			}
		})
	}
}

// overPipes serves within a bubble of synctest.
func overPipes(t *testing.T, options *grpctool.ServerOptions, test func(connection *grpc.ClientConn)) {
	network := pipenet.Listen()
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- grpctool.NewServer(nil, options).Serve(ctx, network) }()
	dial := func(ctx context.Context, address string) (net.Conn, error) { return network.Dial(ctx, "pipe", address) }
	connection, err := grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dial))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { // also when the test fails
		_ = connection.Close()
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	test(connection)
}

// A client may ask about the services, or watch the health, on a stream that is
// open for hours; other requests have their time to arrive.
func TestLongStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		overPipes(t, &grpctool.ServerOptions{Token: "0123456789abcdef"}, func(connection *grpc.ClientConn) {
			asking, err := reflectionpb.NewServerReflectionClient(connection).ServerReflectionInfo(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			watching, err := healthpb.NewHealthClient(connection).Watch(t.Context(), &healthpb.HealthCheckRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if first, err := watching.Recv(); err != nil || first.Status != healthpb.HealthCheckResponse_SERVING {
				t.Fatalf("the health: %v, %v", first, err)
			}
			watched := make(chan error, 1)
			go func() {
				_, err := watching.Recv()
				watched <- err
			}()
			for range 3 {
				if err := asking.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
					t.Fatal(err)
				}
				if answer, err := asking.Recv(); err != nil || len(answer.GetListServicesResponse().GetService()) == 0 {
					t.Fatalf("reflection: %v, %v", answer, err)
				}
				time.Sleep(time.Hour)
			}
			select {
			case err := <-watched:
				t.Errorf("the stream that watches the health ended: %v", err)
			default:
			}
			for _, method := range []string{toolspb.McpToolService_ListTools_FullMethodName, healthpb.Health_Check_FullMethodName} {
				began := time.Now()
				err := halfSent(t, connection, method).RecvMsg(&healthpb.HealthCheckResponse{})
				if took := time.Since(began); status.Code(err) != codes.Canceled || took != 30*time.Second {
					t.Errorf("a half-sent request of %s ends after %v: %v", method, took, err)
				}
			}
		})
	})
}

// Credentials are checked once, when the header of a request is there: without
// them nothing more is waited for.
func TestCredentialsComeFirst(t *testing.T) {
	var asked atomic.Int64
	s := serve(t, &grpctool.ServerOptions{Authenticate: func(_ context.Context, token string) (string, []invoker.Value, error) {
		if asked.Add(1); token != "0123456789abcdef-good" {
			return "", nil, errors.New("unknown")
		}
		return "", nil, nil
	}})
	connection := dialFrom(t, s.address, "127.0.0.1")
	for _, method := range []string{toolspb.McpToolService_ListTools_FullMethodName, toolspb.McpToolService_CallTool_FullMethodName} {
		if err := halfSent(t, connection, method).RecvMsg(&toolspb.ListToolsResponse{}); status.Code(err) != codes.Unauthenticated {
			t.Errorf("a half-sent request of %s: %v", method, err)
		}
	}
	ctx := metadata.AppendToOutgoingContext(within(t), "authorization", "Bearer 0123456789abcdef-good")
	if _, err := toolspb.NewMcpToolServiceClient(connection).ListTools(ctx, &toolspb.ListToolsRequest{}); err != nil {
		t.Error(err)
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("three requests, and the credentials were checked %d times", n)
	}
}

// Credentials that take long to check hold a stream for 30 s, and no more streams than
// requests that have not arrived.
func TestCredentialsHaveTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var checking atomic.Int64
		options := &grpctool.ServerOptions{Authenticate: func(ctx context.Context, _ string) (string, []invoker.Value, error) {
			checking.Add(1)
			defer checking.Add(-1)
			<-ctx.Done()
			return "", nil, ctx.Err()
		}}
		overPipes(t, options, func(connection *grpc.ClientConn) {
			began, ended := time.Now(), make(chan error, 2000)
			for range 900 {
				stream := halfSent(t, connection, toolspb.McpToolService_ListTools_FullMethodName)
				go func() { ended <- stream.RecvMsg(&toolspb.ListToolsResponse{}) }()
			}
			for range 900 {
				<-ended
			}
			if took := time.Since(began); took != 30*time.Second {
				t.Errorf("it took %v", took)
			}
			if n := checking.Load(); n != 0 {
				t.Errorf("%d credentials are still checked", n)
			}
		})
	})
}

// The log says when streams are ended at a bound.
func TestEndedStreamsAreLogged(t *testing.T) {
	core, logs := observer.New(zapcore.WarnLevel)
	s := serve(t, &grpctool.ServerOptions{Token: "0123456789abcdef", Logger: zap.New(core)})
	flood(t, s.address, "127.0.0.2", healthpb.Health_Check_FullMethodName, 400, 400-256)
	entries := func() []observer.LoggedEntry { return logs.FilterField(logevent.ServeFull).All() }
	if !mcptest.Eventually(func() bool { return len(entries()) > 0 }) || len(entries()) != 1 {
		t.Fatalf("%d entries", len(entries()))
	}
	if fields := entries()[0].ContextMap(); fields["from"] != "127.0.0.2" || fields["closed"] != int64(1) {
		t.Errorf("%v", fields)
	}
}

// Every service except health and reflection, under every name, refuses callers without
// credentials before a message is read.
func TestNothingWithoutCredentials(t *testing.T) {
	s := mcpServer(t, &grpctool.ServerOptions{Token: "0123456789abcdef"})
	connection := dialFrom(t, s.address, "127.0.0.1")
	open := map[string]bool{
		healthpb.Health_ServiceDesc.ServiceName: true, reflectionpb.ServerReflection_ServiceDesc.ServiceName: true,
		"grpc.reflection.v1alpha.ServerReflection": true,
	}
	methods := map[string][]string{
		grpctool.Service: {"ListTools", "CallTool"}, grpctool.OriginalService: {"ListTools", "CallTool"},
		toolspb.McpService_ServiceDesc.ServiceName: {"Connect"},
	}
	asking, err := reflectionpb.NewServerReflectionClient(connection).ServerReflectionInfo(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := asking.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	answer, err := asking.Recv()
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range answer.GetListServicesResponse().GetService() {
		if methods[service.Name] == nil && !open[service.Name] {
			t.Errorf("this test does not know the service %s", service.Name)
		}
		for _, method := range methods[service.Name] {
			for _, desc := range []grpc.StreamDesc{{}, {ClientStreams: true}, {ServerStreams: true}, {ClientStreams: true, ServerStreams: true}} {
				stream, err := connection.NewStream(within(t), &desc, "/"+service.Name+"/"+method)
				if err != nil {
					t.Fatal(err)
				}
				if err := stream.RecvMsg(&toolspb.ListToolsResponse{}); status.Code(err) != codes.Unauthenticated {
					t.Errorf("%s of %s, as the stream %+v: %v", method, service.Name, desc, err)
				}
			}
		}
	}
}

// As many credentials are checked at once as there may be requests that have not
// arrived.
func TestChecksOfCredentialsAreBounded(t *testing.T) {
	s := serve(t, &grpctool.ServerOptions{Authenticate: func(ctx context.Context, _ string) (string, []invoker.Value, error) {
		<-ctx.Done()
		return "", nil, ctx.Err()
	}})
	flood(t, s.address, "127.0.0.2", toolspb.McpToolService_ListTools_FullMethodName, 1200, 1200-1024)
}
