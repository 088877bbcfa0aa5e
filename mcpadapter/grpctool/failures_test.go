// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// answering makes a connection to a server whose one tool does what answer does.
func answering(t *testing.T, options *grpctool.Options,
	answer func(context.Context, *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error)) (invoker.Invoker, *site) {
	t.Helper()
	at := newSite(t, (&scripted{call: answer}).under(grpctool.Service))
	return tool(t, opened(t, grpctool.Source(at.address, options)), "tool"), at
}

func failed(t *testing.T, inv invoker.Invoker, call *invoker.Call) *invoker.Failure {
	t.Helper()
	output, err := inv.Invoke(within(t), call)
	var failure *invoker.Failure
	if !errors.As(err, &failure) {
		t.Fatalf("the call came to %v, %v", output, err)
	}
	return failure
}

// Each status of gRPC is one failure (gRPC, § Status Codes).
func TestStatuses(t *testing.T) {
	for sent, want := range map[codes.Code]invoker.Code{
		codes.Canceled:           invoker.OutcomeUnknown,
		codes.Unknown:            invoker.ExecutionFailed,
		codes.InvalidArgument:    invoker.InvalidArguments,
		codes.DeadlineExceeded:   invoker.Timeout,
		codes.NotFound:           invoker.NotFound,
		codes.AlreadyExists:      invoker.Conflict,
		codes.PermissionDenied:   invoker.Unauthorized,
		codes.ResourceExhausted:  invoker.Unavailable,
		codes.FailedPrecondition: invoker.Conflict,
		codes.Aborted:            invoker.Conflict,
		codes.OutOfRange:         invoker.InvalidArguments,
		codes.Unimplemented:      invoker.Protocol,
		codes.Internal:           invoker.OutcomeUnknown,
		codes.Unavailable:        invoker.OutcomeUnknown,
		codes.DataLoss:           invoker.OutcomeUnknown,
		codes.Unauthenticated:    invoker.Unauthorized,
		codes.Code(99):           invoker.OutcomeUnknown,
	} {
		t.Run(sent.String(), func(t *testing.T) {
			var calls atomic.Int32
			inv, _ := answering(t, plaintext(), func(context.Context, *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error) {
				calls.Add(1)
				return nil, status.Error(sent, "so says the server")
			})
			failure := failed(t, inv, &invoker.Call{})
			if failure.Code != want || failure.Retryable != (want == invoker.Unavailable) {
				t.Errorf("got %v, retryable %t, want %s", failure, failure.Retryable, want)
			}
			if failure.Code == invoker.Unavailable && len(failure.Content) == 0 { // with content, no lost connection makes it a call that was not sent
				t.Error("what the server says is not an answer")
			}
			if !strings.Contains(failure.Message, "so says the server") || status.Code(failure.Cause) != sent {
				t.Errorf("the message is %q and the cause %v", failure.Message, failure.Cause)
			}
			if calls.Load() != 1 {
				t.Errorf("the call was made %d times", calls.Load())
			}
		})
	}
}

// Each code of the contract is one failure, and so is a code that is not of it.
func TestErrorCodes(t *testing.T) {
	for sent, want := range map[toolspb.ErrorCode]invoker.Code{
		toolspb.ErrorCode_ERROR_CODE_UNSPECIFIED:         invoker.ExecutionFailed,
		toolspb.ErrorCode_ERROR_CODE_INVALID_ARGUMENTS:   invoker.InvalidArguments,
		toolspb.ErrorCode_ERROR_CODE_SERVICE_UNAVAILABLE: invoker.Unavailable,
		toolspb.ErrorCode_ERROR_CODE_TOOL_NOT_FOUND:      invoker.ToolNotFound,
		toolspb.ErrorCode_ERROR_CODE_INTERNAL_ERROR:      invoker.ExecutionFailed,
		toolspb.ErrorCode(99):                            invoker.ExecutionFailed,
	} {
		t.Run(sent.String(), func(t *testing.T) {
			message := "the farmer_id is malformed"
			inv, _ := answering(t, plaintext(), func(context.Context, *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error) {
				return &toolspb.ToolCallResponse{ErrorCode: sent, ErrorMessage: message}, nil
			})
			failure := failed(t, inv, &invoker.Call{})
			if failure.Code != want || failure.Message != message || canister.TextOf(failure.Content) != message ||
				failure.Retryable != (want == invoker.Unavailable) {
				t.Errorf("got %+v, want %s", failure, want)
			}
		})
	}
}

// A server that cannot send the answer of a tool, because it is too large, has run the tool.
func TestAnswerThatTheServerCannotSend(t *testing.T) {
	for _, message := range []string{
		"grpc: trying to send message larger than max (2000 vs. 1000)", // Go
		"SERVER: Sent message larger than max (2000 vs. 1000)",         // C, Python and others
	} {
		inv, _ := answering(t, plaintext(), func(context.Context, *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error) {
			return nil, status.Error(codes.ResourceExhausted, message)
		})
		if failure := failed(t, inv, &invoker.Call{}); failure.Code != invoker.ResultTooLarge || failure.Retryable {
			t.Errorf("%s: %v", message, failure)
		}
	}
}

func TestServerAsksToWait(t *testing.T) {
	inv, _ := answering(t, plaintext(), func(context.Context, *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error) {
		s, err := status.New(codes.ResourceExhausted, "too many requests").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(3 * time.Second)})
		if err != nil {
			return nil, err
		}
		return nil, s.Err()
	})
	if failure := failed(t, inv, &invoker.Call{}); failure.RetryAfter != 3*time.Second {
		t.Errorf("got %+v", failure)
	}
}

// A call that was sent when the server died may have taken effect. One that could not be
// sent did not.
func TestSentOrNot(t *testing.T) {
	begun := make(chan struct{})
	inv, at := answering(t, plaintext(), func(ctx context.Context, _ *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error) {
		close(begun)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	go func() {
		<-begun
		at.kill()
	}()
	if failure := failed(t, inv, &invoker.Call{}); failure.Code != invoker.OutcomeUnknown || failure.Retryable {
		t.Errorf("the call during which the server died: %v", failure)
	}
	if failure := failed(t, inv, &invoker.Call{}); failure.Code != invoker.Unavailable || !failure.Retryable {
		t.Errorf("the call after that: %v", failure)
	}
}

func TestDeadlineBeforeAndAfterSending(t *testing.T) {
	begun := make(chan struct{}, 1)
	inv, _ := answering(t, plaintext(), func(ctx context.Context, _ *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	})
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := inv.Invoke(ended, &invoker.Call{})
	if failure := invoker.AsFailure(err); failure.Code != invoker.Canceled || !strings.Contains(failure.Message, "Nothing was done") {
		t.Errorf("cancelled before: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-begun
		cancel()
	}()
	_, err = inv.Invoke(ctx, &invoker.Call{})
	if failure := invoker.AsFailure(err); failure.Code != invoker.Canceled || strings.Contains(failure.Message, "Nothing was done") {
		t.Errorf("cancelled during the call: %v", err)
	}
}

func TestSizes(t *testing.T) {
	options := plaintext()
	options.MaxMessage = 1 << 10
	var calls atomic.Int32
	inv, _ := answering(t, options, func(context.Context, *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error) {
		calls.Add(1)
		return &toolspb.ToolCallResponse{Success: true, ResultJson: `"` + strings.Repeat("x", 2<<10) + `"`}, nil
	})
	if failure := failed(t, inv, &invoker.Call{Arguments: []byte(`{"text":"` + strings.Repeat("x",
		2<<10) + `"}`)}); failure.Code != invoker.InvalidArguments || calls.Load() != 0 {
		t.Errorf("arguments beyond the limit: %v after %d calls", failure, calls.Load())
	}
	if failure := failed(t, inv, &invoker.Call{}); failure.Code != invoker.ResultTooLarge || !strings.Contains(failure.Message, "1024 bytes (MaxMessage)") || calls.Load() != 1 {
		t.Errorf("a result beyond the limit: %v after %d calls", failure, calls.Load())
	}
}

// A list that is too large for the client says so, and is not taken for a call.
func TestSizeOfTheList(t *testing.T) {
	server := grpctool.NewServer(nil, &grpctool.ServerOptions{Tools: wordy(t, 1<<10, "a")})
	options := plaintext()
	options.MaxMessage = 1 << 10
	_, err := grpctool.Source(registered(t, server), options).Open(within(t))
	failure := invoker.AsFailure(err)
	if failure == nil || failure.Code != invoker.ResultTooLarge || !strings.Contains(failure.Message, "The list of tools is larger than 1024 bytes (MaxMessage).") {
		t.Errorf("got %v", err)
	}
}

// wordy returns tools with descriptions of a size in bytes, each in a category of its own.
func wordy(t *testing.T, size int, names ...string) (tools []invoker.Invoker) {
	for _, name := range names {
		tool, err := invoker.Raw(invoker.Definition{
			Name: name, Description: strings.Repeat("x", size), InputSchema: []byte(`{"type":"object"}`), Metadata: canister.Fields{invoker.CategoryKey: []byte(`"` + name + `"`)},
		}, func(context.Context, *invoker.Call) (invoker.Output, error) { return invoker.Output{}, nil }, nil)
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, tool)
	}
	return tools
}

// A server lists as many tools as clients receive by default, also if its own limit is lower, and has the others still.
func TestLongLists(t *testing.T) {
	logs, entries := observer.New(zap.WarnLevel)
	server := grpctool.NewServer(nil, &grpctool.ServerOptions{
		Tools: append(wordy(t, 5<<20, "a", "b", "c", "d", "d2"), echoTool(t)), MaxMessage: 8 << 20, Logger: zap.New(logs),
	})
	address := registered(t, server)
	for range 2 {
		if got, want := listed(t, address, plaintext()), []string{"a", "b", "c", "echo"}; !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	if logged := entries.All(); len(logged) != 1 || logged[0].ContextMap()["tool"] != "d" || logged[0].ContextMap()["tools"] != int64(2) {
		t.Errorf("the log has %v", logged)
	}
	if got := listed(t, address, &grpctool.Options{Plaintext: true, Category: "d"}); !slices.Equal(got, []string{"d"}) {
		t.Errorf("one category: %q", got)
	}
	if response, err := toolspb.NewMcpToolServiceClient(raw(t, address)).CallTool(within(t), &toolspb.ToolCallRequest{ToolName: "d", ArgumentsJson: "{}"}); err != nil || !response.Success {
		t.Errorf("a tool that is not listed: %v, %v", response, err)
	}
}

// The server's own limit is about the arguments, which were not looked at.
func TestServersLimit(t *testing.T) {
	tools := grpctool.NewServer(nil, &grpctool.ServerOptions{Tools: []invoker.Invoker{echoTool(t)}})
	at := newSite(t, func() *grpc.Server {
		server := grpc.NewServer(grpc.MaxRecvMsgSize(1 << 10))
		tools.Register(server)
		return server
	})
	inv := tool(t, opened(t, grpctool.Source(at.address, plaintext())), "echo")
	failure := failed(t, inv, &invoker.Call{Arguments: []byte(`{"text":"` + strings.Repeat("x", 2<<10) + `"}`)})
	if failure.Code != invoker.Unavailable || !strings.Contains(failure.Message, "larger than max") {
		t.Errorf("got %v", failure)
	}
}

// A server that shuts down gracefully answers running calls, and the connection is lost
// after that.
func TestWindingUpLosesNoAnswer(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	at := newSite(t, (&scripted{call: func(context.Context, *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error) {
		close(begun)
		<-finish
		return &toolspb.ToolCallResponse{Success: true, ResultJson: `"done"`}, nil
	}}).under(grpctool.Service))
	connection := opened(t, grpctool.Source(at.address, plaintext()))
	inv := tool(t, connection, "tool")
	type outcome struct {
		output invoker.Output
		err    error
	}
	answered := make(chan outcome, 1)
	ctx := within(t)
	go func() {
		output, err := inv.Invoke(ctx, &invoker.Call{})
		answered <- outcome{output, err}
	}()
	await(t, "the call", begun)
	at.windUp()
	untilNobodyListens(t, at.address)
	select {
	case <-connection.Lost():
		t.Fatal("the connection was lost while a call ran that the server was going to answer")
	default:
	}
	close(finish)
	got := await(t, "the answer", answered)
	if got.err != nil || canister.TextOf(got.output.Content) != "done" {
		t.Errorf("the call came to %v, %v", got.output, got.err)
	}
	await(t, "the loss", connection.Lost())
	if connection.Err() == nil {
		t.Error("the connection does not say why it was lost")
	}
}

// untilNobodyListens returns when the address accepts no connections. Each accepted one
// is closed: a server that shuts down waits for the handshake of an open one.
func untilNobodyListens(t *testing.T, address string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		conn, err := net.DialTimeout("tcp", address, time.Minute)
		if err != nil {
			return
		}
		_ = conn.Close()
	}
	t.Fatal("the server still listens")
}

// gRPC makes another HTTP/2 connection while the old one shuts down: it may reach
// different tools.
func TestMovingToAnotherCopy(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	at := newSite(t, (&scripted{call: func(_ context.Context, request *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error) {
		if request.IdempotencyKey == "long" {
			close(begun)
			<-finish
		}
		return &toolspb.ToolCallResponse{Success: true, ResultJson: `"done"`}, nil
	}}).under(grpctool.Service))
	connection := opened(t, grpctool.Source(at.address, plaintext()))
	inv := tool(t, connection, "tool")
	ended := make(chan error, 1)
	ctx := within(t)
	go func() {
		_, err := inv.Invoke(ctx, &invoker.Call{ID: "long"})
		ended <- err
	}()
	await(t, "the call", begun)
	at.windUp()
	untilNobodyListens(t, at.address)
	at.start()
	await(t, "word that the tools may have changed", connection.Changed())
	if _, err := inv.Invoke(ctx, &invoker.Call{}); err != nil {
		t.Errorf("a call beside the one that the old server still runs: %v", err)
	}
	close(finish)
	if err := await(t, "the answer", ended); err != nil {
		t.Errorf("the call of the old server: %v", err)
	}
	await(t, "the loss", connection.Lost())
}

// Secrets that a server repeats in its errors are removed from them.
func TestServerRepeatsSecrets(t *testing.T) {
	options := &grpctool.Options{
		Plaintext: true, PlaintextSecrets: true, BearerToken: "token-qrs", Metadata: map[string]string{"x-key": "sesame-xyz"},
		TrustedMetadata: map[string]string{"x-user": "user"},
	}
	repeated := func(ctx context.Context) string {
		md, _ := metadata.FromIncomingContext(ctx)
		return fmt.Sprint("I got ", md.Get("authorization"), md.Get("x-key"), md.Get("x-user"))
	}
	check := func(name string, err error) {
		t.Helper()
		text := fmt.Sprint(err)
		if failure, ok := errors.AsType[*invoker.Failure](err); ok {
			text = fmt.Sprint(text, failure.Cause, canister.TextOf(failure.Content))
		}
		if !strings.Contains(text, "I got") || strings.Contains(text, "qrs") || strings.Contains(text, "xyz") || strings.Contains(text, "ada-789") {
			t.Errorf("%s: %s", name, text)
		}
	}
	user := invoker.NewTrusted[string]("user")
	for name, call := range map[string]func(context.Context) (*toolspb.ToolCallResponse, error){
		"a status": func(ctx context.Context) (*toolspb.ToolCallResponse, error) {
			return nil, status.Error(codes.PermissionDenied, repeated(ctx))
		},
		"a message": func(ctx context.Context) (*toolspb.ToolCallResponse, error) {
			return &toolspb.ToolCallResponse{ErrorMessage: repeated(ctx)}, nil
		},
		"a failure": func(ctx context.Context) (*toolspb.ToolCallResponse, error) {
			return &toolspb.ToolCallResponse{FailureJson: fmt.Sprintf(`{"error":{"code":"CONFLICT","message":%q}}`, repeated(ctx))}, nil
		},
	} {
		service := &scripted{call: func(ctx context.Context, _ *toolspb.ToolCallRequest) (*toolspb.ToolCallResponse, error) {
			return call(ctx)
		}}
		at := newSite(t, service.under(grpctool.Service))
		_, err := tool(t, opened(t, grpctool.Source(at.address, options)), "tool").Invoke(invoker.WithTrusted(within(t), user.Value("ada-789")), &invoker.Call{})
		check(name, err)
	}
	service := &scripted{list: func(ctx context.Context, _ *toolspb.ListToolsRequest) (*toolspb.ListToolsResponse, error) {
		return nil, status.Error(codes.PermissionDenied, repeated(ctx))
	}}
	_, err := grpctool.Source(newSite(t, service.under(grpctool.Service)).address, options).Open(within(t))
	check("a list", err)
	at := newSite(t, func() *grpc.Server {
		srv := grpc.NewServer()
		toolspb.RegisterMcpServiceServer(srv, scriptedMCP{connect: func(stream grpc.BidiStreamingServer[toolspb.ConnectRequest, toolspb.ConnectResponse]) error {
			return status.Error(codes.PermissionDenied, repeated(stream.Context()))
		}})
		return srv
	})
	_, err = grpctool.DialMCP(within(t), at.address, &grpctool.Options{Plaintext: true, PlaintextSecrets: true, BearerToken: "token-qrs", Metadata: options.Metadata})
	check("MCP", err)
}
