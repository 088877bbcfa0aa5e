// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/accesslog"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/listening"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// Register registers the tool service on the caller's gRPC server, under both of its
// names, and MCP if ServerOptions.MCP is set. The caller must stop that server, after
// Close.
func (s *Server) Register(on grpc.ServiceRegistrar) {
	toolspb.RegisterMcpToolServiceServer(on, handlers{server: s})
	on.RegisterService(&originalDesc, handlers{server: s})
	if s.options.MCP != nil {
		toolspb.RegisterMcpServiceServer(on, mcpHandlers{handlers: handlers{server: s}, mcp: s.options.MCP})
	}
}

// handlers implement the RPCs of the service. A panic ends only its request.
type handlers struct {
	toolspb.UnimplementedMcpToolServiceServer
	server *Server
}

// ListTools implements the service.
func (h handlers) ListTools(ctx context.Context, request *toolspb.ListToolsRequest) (response *toolspb.ListToolsResponse, err error) {
	ctx = h.server.options.Telemetry.Extract(ctx, received(ctx))
	defer h.contain(ctx, &err)
	from, err := h.server.identify(ctx)
	if err != nil {
		return nil, err
	}
	defer serveRequest(ctx)()
	return h.server.listTools(from, request)
}

// CallTool implements the service.
func (h handlers) CallTool(ctx context.Context, request *toolspb.ToolCallRequest) (response *toolspb.ToolCallResponse, err error) {
	ctx = h.server.options.Telemetry.Extract(ctx, received(ctx))
	defer h.contain(ctx, &err)
	from, err := h.server.identify(ctx)
	if err != nil {
		return nil, err
	}
	defer serveRequest(ctx)()
	return h.server.callTool(from, request), nil
}

func (h handlers) contain(ctx context.Context, err *error) {
	if p := recover(); p != nil {
		logevent.Log(ctx, h.server.log, zapcore.ErrorLevel, "a request panicked", logevent.ServeRequestPanicked, zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
		*err = status.Error(codes.Internal, "the server failed")
	}
}

// Serve serves the clients of a listener until ctx ends or the server is closed. It
// also serves the standard health service and reflection, which need no authentication.
// The health is NOT_SERVING while the roster is not ready (ensemble.Health), and for
// the reasons of ServerOptions.NotReady. A request has 30 s to arrive; see docs/grpc.md
// for the limits on silent clients.
//
// At the end Serve closes the server: new calls are refused, and calls under way have
// ServerOptions.ShutdownTimeout to finish. It returns nil if they all finished.
// Otherwise the error says what did not end, or what went wrong with the listener. The
// listener is closed in any case.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	if !s.startServing() {
		listener.Close()
		return errServerClosed
	}
	defer s.serving.Done()
	server, alive := s.listening()
	clients := listening.Limit(listener, listening.Limits{
		Connections: s.options.MaxConnections, PerAddress: s.options.MaxConnectionsPerAddress, Full: s.full,
	})
	stopTelling := s.tellReadiness(server, alive)
	defer stopTelling()
	served := make(chan error, 1)
	go func() { served <- server.Serve(clients) }()
	select {
	case err := <-served:
		server.Stop()
		return fmt.Errorf("serving gRPC: %w", err)
	case <-ctx.Done():
	case <-s.closed:
	}
	stopTelling()
	alive.Shutdown()
	stopped := make(chan struct{})
	go func() { // refuses new calls and notifies clients
		server.GracefulStop()
		close(stopped)
	}()
	err := s.finish(ctx)
	select {
	case <-stopped:
	case <-time.After(lastAnswers):
		clients.CloseWaiting() // for example of clients that never respond, or watch the health
	}
	select {
	case <-stopped:
	case <-time.After(straggle):
		server.Stop()
		<-stopped
	}
	<-served
	return err
}

// lastAnswers is how long the responses of finished calls may take to be sent.
const lastAnswers = 250 * time.Millisecond

// full logs that connections were closed because a limit was reached.
func (s *Server) full(closed int, address string) {
	s.log.Warn("too many connections: those without a running request are closed", logevent.ServeFull, zap.Int("closed", closed), zap.String("from", address))
}

// readinessEvery is how often the readiness of the roster is checked.
const readinessEvery = time.Second

// tellReadiness updates the health service with the readiness of the server until stop
// is called.
func (s *Server) tellReadiness(server *grpc.Server, alive *health.Server) (stop func()) {
	tell := func() {
		serving := healthpb.HealthCheckResponse_NOT_SERVING
		if s.isReady() {
			serving = healthpb.HealthCheckResponse_SERVING
		}
		alive.SetServingStatus("", serving)
		for name := range server.GetServiceInfo() {
			alive.SetServingStatus(name, serving)
		}
	}
	tell()
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(readinessEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				tell()
			case <-ended:
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(ended)
		<-done
	})
}

// isReady reports whether the server is ready for calls. It is not ready if NotReady
// panics.
func (s *Server) isReady() bool {
	if !s.roster.Health().Ready {
		return false
	}
	if s.options.NotReady == nil {
		return true
	}
	reason := ""
	err := contain.Call("ServerOptions.NotReady", func() { reason = s.options.NotReady() })
	if err != nil {
		s.notReady.Do(func() {
			s.log.Error("a function of the program panicked", logevent.FunctionPanicked, zap.String("function", "ServerOptions.NotReady"), zap.String("cause", err.Error()))
		})
	}
	return err == nil && reason == ""
}

func (s *Server) startServing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed {
		return false
	}
	s.serving.Add(1)
	return true
}

// finish waits for the calls to end. If Close was called, it waits for Close; otherwise
// it closes the server itself.
func (s *Server) finish(ctx context.Context) error {
	select {
	case <-s.closed:
		<-s.life.Done()
		return nil // Close reports what did not end
	default:
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.ShutdownTimeout)
	defer cancel()
	return s.shut(bound)
}

// listening returns a gRPC server. It detects lost clients within two minutes, and
// allows clients to send keepalive pings as often as every 10 s.
func (s *Server) listening() (*grpc.Server, *health.Server) {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(s.options.MaxMessage),
		grpc.MaxConcurrentStreams(1000),
		grpc.ConnectionTimeout(20 * time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true),
		grpc.InTapHandle(tapStream),
	}
	if s.options.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(s.options.TLS)))
	}
	server, bounds := grpc.NewServer(options...), newStreams(s)
	s.Register(admitted{on: server, admit: bounds.identified, logs: accesslog.New(s.options.AccessLog, s.log, s.refusals)})
	alive, open := health.NewServer(), admitted{on: server, admit: bounds.anybody}
	healthpb.RegisterHealthServer(open, alive)
	reflect(open, server)
	return server, alive
}
