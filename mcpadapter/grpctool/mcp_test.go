// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// mcpServer serves tools as MCP over gRPC.
func mcpServer(t *testing.T, options *grpctool.ServerOptions, tools ...invoker.Invoker) *serving {
	t.Helper()
	options.MCP = server.New(nil, &server.Options{Name: "stage", Tools: tools})
	s := serve(t, options)
	t.Cleanup(func() { _ = options.MCP.Close(context.Background()) })
	return s
}

func dialed(t *testing.T, address string, options *grpctool.Options) *grpctool.MCPLink {
	t.Helper()
	link, err := grpctool.DialMCP(within(t), address, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close(context.Background()) })
	return link
}

func session(t *testing.T, link *grpctool.MCPLink, options *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options).Connect(within(t), link, nil)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// The SDK's own client is served over gRPC: content of all kinds, progress, and
// the identity that the stream came with.
func TestMCP(t *testing.T) {
	user := invoker.NewTrusted[string]("user_id")
	show := ensembletest.NewTool("show", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		whom, _ := user.From(ctx)
		call.Report(invoker.Progress{Done: 1, Total: 2, Message: "half"})
		return invoker.Output{Content: []canister.Content{
			canister.Text("for " + whom + ":\nžluťoučký"), canister.ImageContent{Data: []byte{1, 2}, MIME: "image/png"},
		}}, nil
	})
	s := mcpServer(t, &grpctool.ServerOptions{Tokens: []grpctool.BearerToken{{Token: "ada-token", Trusted: []invoker.Value{user.Value("ada")}}}}, show)
	link := dialed(t, s.address, &grpctool.Options{Plaintext: true, BearerToken: "ada-token"})
	reports := make(chan string, 10)
	client := session(t, link, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
		reports <- r.Params.Message
	}})
	params := &mcp.CallToolParams{Name: "show", Meta: mcp.Meta{}}
	params.SetProgressToken("token")
	result, err := client.CallTool(within(t), params)
	if err != nil || len(result.Content) != 2 {
		t.Fatalf("got %+v, %v", result, err)
	}
	if text := result.Content[0].(*mcp.TextContent).Text; text != "for ada:\nžluťoučký" {
		t.Errorf("the text is %q", text)
	}
	if image := result.Content[1].(*mcp.ImageContent); string(image.Data) != "\x01\x02" {
		t.Errorf("the image is %+v", image)
	}
	if got := await(t, "progress", reports); got != "half" {
		t.Errorf("the report says %q", got)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

func TestMCPRefusals(t *testing.T) {
	s := mcpServer(t, &grpctool.ServerOptions{Token: "good", Parallel: 1})
	trusting := &grpctool.Options{Plaintext: true, BearerToken: "good", TrustedMetadata: map[string]string{"x-user": "user_id"}}
	plain := registered(t, grpctool.NewServer(nil, nil))
	dialed(t, s.address, &grpctool.Options{Plaintext: true, BearerToken: "good"})
	for name, c := range map[string]struct {
		address string
		options *grpctool.Options
		want    string
	}{
		"a wrong token":          {s.address, &grpctool.Options{Plaintext: true, BearerToken: "wrong"}, "UNAUTHORIZED"},
		"a second stream of one": {s.address, &grpctool.Options{Plaintext: true, BearerToken: "good"}, "Too many requests of this client are running"},
		"a server without MCP":   {plain, plaintext(), "PROTOCOL"},
		"trusted metadata":       {s.address, trusting, "one stream for all calls"},
		"nobody":                 {"127.0.0.1:1", plaintext(), "UNAVAILABLE"},
	} {
		link, err := grpctool.DialMCP(within(t), c.address, c.options)
		if err == nil {
			_ = link.Close(within(t))
			t.Errorf("%s: it connected", name)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := grpctool.DialMCP(ended, s.address, plaintext()); err == nil {
		t.Error("it connected with a context that has ended")
	}
}

// A server that does not answer does not block its callers.
func TestMCPSilence(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	returned := make(chan error, 1)
	go func() {
		_, err := grpctool.DialMCP(ctx, silent.Addr().String(), plaintext())
		returned <- err
	}()
	if err := await(t, "the end of dialling", returned); err == nil || ctx.Err() == nil {
		t.Errorf("got %v", err)
	}
}

// Calls under way are answered when the server ends, and no session is left.
func TestMCPEndsPolitely(t *testing.T) {
	gate := ensembletest.NewGate("gate", false)
	s := mcpServer(t, &grpctool.ServerOptions{}, gate)
	client := session(t, dialed(t, s.address, plaintext()), nil)
	answered := make(chan error, 1)
	ctx := within(t)
	go func() {
		_, err := client.CallTool(ctx, &mcp.CallToolParams{Name: "gate"})
		answered <- err
	}()
	await(t, "the call", gate.Begun)
	s.stop()
	gate.Release("through")
	if err := await(t, "the answer", answered); err != nil {
		t.Error(err)
	}
	if err := await(t, "the end", s.ended); err != nil {
		t.Error(err)
	}
}

// Frames that are not messages are ignored by the client and refused by the server.
func TestMCPFrames(t *testing.T) {
	s := mcpServer(t, &grpctool.ServerOptions{}, echoTool(t))
	stream, err := toolspb.NewMcpServiceClient(raw(t, s.address)).Connect(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if first, err := stream.Recv(); err != nil || len(first.GetMessage()) > 0 {
		t.Fatalf("the first frame is %q, %v", first.GetMessage(), err)
	}
	for _, frame := range []string{"no JSON", "{\n\"jsonrpc\": \"2.0\",\n\"id\": 7, \"method\": \"ping\"}"} {
		if err := stream.Send(&toolspb.ConnectRequest{Message: []byte(frame)}); err != nil {
			t.Fatal(err)
		}
		answer, err := stream.Recv()
		if err != nil || strings.Contains(string(answer.GetMessage()), "\n") {
			t.Fatalf("%q is answered with %q, %v", frame, answer.GetMessage(), err)
		}
		if want := map[bool]string{true: `"error"`, false: `"id":7`}[frame == "no JSON"]; !strings.Contains(string(answer.GetMessage()), want) {
			t.Errorf("%q is answered with %s", frame, answer.GetMessage())
		}
	}
}

// scriptedMCP sends frames of the test's own.
type scriptedMCP struct {
	toolspb.UnimplementedMcpServiceServer
	connect func(grpc.BidiStreamingServer[toolspb.ConnectRequest, toolspb.ConnectResponse]) error
}

func (s scriptedMCP) Connect(stream grpc.BidiStreamingServer[toolspb.ConnectRequest, toolspb.ConnectResponse]) error {
	return s.connect(stream)
}

func TestMCPLinkReads(t *testing.T) {
	at := newSite(t, func() *grpc.Server {
		srv := grpc.NewServer()
		toolspb.RegisterMcpServiceServer(srv,
			scriptedMCP{connect: func(stream grpc.BidiStreamingServer[toolspb.ConnectRequest, toolspb.ConnectResponse]) error {
				if err := stream.Send(&toolspb.ConnectResponse{}); err != nil {
					return err
				}
				for _, frame := range []string{"no JSON", `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`} {
					if err := stream.Send(&toolspb.ConnectResponse{Message: []byte(frame)}); err != nil {
						return err
					}
				}
				return status.Error(codes.Internal, "out of luck")
			}})
		return srv
	})
	connection, err := dialed(t, at.address, plaintext()).Connect(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if message, err := connection.Read(within(t)); err != nil {
		t.Errorf("got %v, %v", message, err)
	}
	if message, err := connection.Read(within(t)); err == nil || !strings.Contains(err.Error(), "out of luck") {
		t.Errorf("got %v, %v", message, err)
	}
	if err := connection.Close(); err != nil {
		t.Error(err)
	}
}

// A client announces that it closes a link, and the server may end in order.
func TestMCPLinkSaysGoodbye(t *testing.T) {
	heard := make(chan error, 1)
	at := newSite(t, func() *grpc.Server {
		srv := grpc.NewServer()
		toolspb.RegisterMcpServiceServer(srv,
			scriptedMCP{connect: func(stream grpc.BidiStreamingServer[toolspb.ConnectRequest, toolspb.ConnectResponse]) error {
				if err := stream.Send(&toolspb.ConnectResponse{}); err != nil {
					return err
				}
				_, err := stream.Recv()
				heard <- err
				return nil
			}})
		return srv
	})
	link := dialed(t, at.address, plaintext())
	if err := link.Close(within(t)); err != nil {
		t.Error(err)
	}
	if err := await(t, "word of the end", heard); !errors.Is(err, io.EOF) {
		t.Errorf("the server heard %v", err)
	}
}
