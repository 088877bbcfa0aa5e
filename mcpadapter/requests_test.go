// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The older protocols are spoken as well, with what the newest one deprecates.

package mcpadapter_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// asking is a server whose one tool does what ask does and tells how it went.
func asking(ask func(context.Context, *mcp.ServerSession) (string, error)) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "asking", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			text, err := ask(ctx, req.Session)
			if err != nil {
				return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: err.Error()}}}, nil
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
		})
	return server
}

func TestServerAsks(t *testing.T) {
	sample := func(ctx context.Context, s *mcp.ServerSession) (string, error) {
		r, err := s.CreateMessage(ctx, &mcp.CreateMessageParams{
			SystemPrompt: "sys", MaxTokens: 7, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "hi"}}},
		})
		if err != nil {
			return "", err
		}
		return r.Model + ":" + r.Content.(*mcp.TextContent).Text, nil
	}
	elicit := func(ctx context.Context, s *mcp.ServerSession) (string, error) {
		r, err := s.Elicit(ctx, &mcp.ElicitParams{
			Message: "sure?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","default":3}}}`),
		})
		if err != nil {
			return "", err
		}
		text, err := json.Marshal(r.Content)
		return r.Action + ":" + string(text), err
	}
	roots := func(ctx context.Context, s *mcp.ServerSession) (string, error) {
		r, err := s.ListRoots(ctx, nil)
		if err != nil {
			return "", err
		}
		var list []string
		for _, root := range r.Roots {
			list = append(list, root.Name+"="+root.URI)
		}
		return "roots:" + strings.Join(list, ","), nil
	}
	ping := func(ctx context.Context, s *mcp.ServerSession) (string, error) { return "pong", s.Ping(ctx, nil) }
	options := mcpadapter.ClientOptions{
		Protocol: "2025-11-25",
		Roots:    []mcpadapter.Root{{URI: "file:///tmp", Name: "tmp"}},
		Sample: func(_ context.Context, r *invoker.SampleRequest) (*invoker.SampleResult, error) {
			return &invoker.SampleResult{Model: "m", Text: r.System + "+" + canister.TextOf(r.Messages[0].Content)}, nil
		},
		Elicit: func(_ context.Context, r *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
			return &invoker.ElicitResult{Action: invoker.Accept}, nil
		},
	}
	panicking := mcpadapter.ClientOptions{
		Protocol: "2025-11-25", Elicit: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) { panic("oh") },
	}
	nothing := mcpadapter.ClientOptions{Protocol: "2025-11-25"}
	modelless := mcpadapter.ClientOptions{Protocol: "2025-11-25", SampleCalls: true}
	tests := []struct {
		name    string
		ask     func(context.Context, *mcp.ServerSession) (string, error)
		options mcpadapter.ClientOptions
		want    string
	}{
		{"sample", sample, options, "m:sys+hi"},
		{"elicit", elicit, options, `accept:{"n":3}`},
		{"roots", roots, options, "roots:tmp=file:///tmp"},
		{"ping", ping, options, "pong"},
		{"no sampling", sample, nothing, "method not found"},
		{"a call without a model", sample, modelless, "refused"},
		{"no elicitation", elicit, nothing, "decline"},
		{"no roots", roots, nothing, "roots:"},
		{"panic", elicit, panicking, "panicked"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := mcptest.Open(t, mcpadapter.InMemory(asking(test.ask), &test.options))
			out, err := mcptest.Tool(t, c, "ask").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
			got := canister.TextOf(out.Content)
			if err != nil {
				got = canister.TextOf(invoker.AsFailure(err).Content)
			}
			if !strings.Contains(got, test.want) {
				t.Errorf("the server heard %q (%v), want %q", got, err, test.want)
			}
		})
	}
}

// TestDeclined: a question that cannot be answered gets "method not found" if its call is
// unknown.
func TestDeclined(t *testing.T) {
	answers := make(chan mcptest.Message, 2)
	var both sync.WaitGroup // two calls are in flight
	both.Add(2)
	var first atomic.Bool
	first.Store(true)
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		switch {
		case m.Method == "tools/call":
			send := mcptest.StartStream(w)
			both.Done()
			both.Wait()
			if !first.CompareAndSwap(true, false) {
				<-r.Context().Done()
				return true
			}
			send(`{"jsonrpc":"2.0","id":"q1","method":"sampling/createMessage","params":{"maxTokens":1,"messages":[]}}`)
			send(`{"jsonrpc":"2.0","id":"q2","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object"}}}`)
			<-r.Context().Done()
			return true
		case m.Method == "POST" && m.ID != nil:
			answers <- m
		}
		return false
	})
	_ = s
	c := openScripted(t, s)
	write := mcptest.Tool(t, c, "write")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 {
		go write.Invoke(ctx, mcptest.RawCall(`{}`))
	}
	for range 2 {
		m := mcptest.Await(t, "an answer", answers)
		if m.Error == nil || m.Error.Code != jsonrpc.CodeMethodNotFound {
			t.Errorf("%s was answered with %+v", m.ID, m.Error)
		}
	}
}

// TestServerLog: the server's log reaches ours, at its level, under its name.
func TestServerLog(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	server := asking(func(ctx context.Context, s *mcp.ServerSession) (string, error) {
		return "", s.Log(ctx, &mcp.LoggingMessageParams{Level: "emergency", Logger: "db", Data: "on fire"})
	})
	c := mcptest.Open(t, mcpadapter.InMemory(server,
		&mcpadapter.ClientOptions{Protocol: "2025-11-25", Server: "burner", LogLevel: "debug", Logger: zap.New(core)}))
	ask := mcptest.Tool(t, c, "ask")
	for deadline := time.Now().Add(mcptest.Patience); logs.FilterField(zap.String("data", "on fire")).Len() == 0 && time.Now().Before(deadline); {
		_, _ = ask.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)) // the level is asked for beside the first calls
	}
	entries := logs.FilterField(zap.String("data", "on fire")).All()
	if len(entries) == 0 {
		t.Fatal("nothing was logged")
	}
	if fields := entries[0].ContextMap(); entries[0].Level != zapcore.ErrorLevel || fields["server"] != "burner" || fields["logger"] != "db" {
		t.Errorf("logged %v %v", entries[0].Level, fields)
	}
}

// TestRequestMeta: each call carries its ID and a token of its own.
func TestRequestMeta(t *testing.T) {
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
		if m.Method == "tools/call" {
			mcptest.Reply(w, m, `{"content":[]}`)
			return true
		}
		return false
	})
	write := mcptest.Tool(t, openScripted(t, s), "write")
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			_, err := write.Invoke(mcptest.Within(t),
				&invoker.Call{ID: "inv-1", Progress: func(invoker.Progress) {}, Arguments: json.RawMessage(`{"z":1.0,"a":12345678901234567890}`)})
			if err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	tokens := make(map[string]bool)
	for _, m := range s.Received("tools/call") {
		var params struct {
			Meta      map[string]any `json:"_meta"`
			Arguments json.RawMessage
		}
		if err := json.Unmarshal(m.Params, &params); err != nil {
			t.Fatal(err)
		}
		if params.Meta[mcpadapter.IdempotencyKey] != "inv-1" || string(params.Arguments) != `{"z":1.0,"a":12345678901234567890}` {
			t.Errorf("the server got %s", m.Params)
		}
		tokens[params.Meta["progressToken"].(string)] = true
	}
	if len(tokens) != 8 {
		t.Errorf("8 calls had %d tokens", len(tokens))
	}
}

// TestSlowListener: reports reach a slow listener before the result; a late report
// reaches no listener.
func TestSlowListener(t *testing.T) {
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
		if m.Method != "tools/call" {
			return false
		}
		var params struct {
			Meta struct{ ProgressToken string } `json:"_meta"`
		}
		_ = json.Unmarshal(m.Params, &params)
		send := mcptest.StartStream(w)
		for range 3 {
			send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":"` + params.Meta.ProgressToken + `"}}`)
		}
		send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"content":[]}}`)
		send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":2,"progressToken":"` + params.Meta.ProgressToken + `"}}`)
		return true
	})
	c := openScripted(t, s)
	write := mcptest.Tool(t, c, "write")
	var reports []float64
	_, err := write.Invoke(mcptest.Within(t), &invoker.Call{Progress: func(p invoker.Progress) {
		time.Sleep(5 * time.Millisecond) // is slow; nothing waits for it to be fast
		reports = append(reports, p.Done)
	}})
	if err != nil || len(reports) != 3 {
		t.Errorf("%d reports, %v", len(reports), err)
	}
	mcptest.Tool(t, c, "write") // whatever came late has been read by now
	if len(reports) != 3 {
		t.Errorf("a late report was delivered: %v", reports)
	}
}

// TestRounds: with the newest protocol a tool asks by way of its result, and
// is called again with the answer (SEP-2322).
func TestRounds(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "rounds", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			answer, ok := req.Params.InputResponses["q"].(*mcp.ElicitResult)
			if !ok {
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Mode: "form", Message: "who?"}}, RequestState: "s"}, nil
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: answer.Action + " " + req.Params.RequestState}}}, nil
		})
	options := &mcpadapter.ClientOptions{Elicit: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
		return &invoker.ElicitResult{Action: invoker.Decline}, nil
	}}
	c := mcptest.Open(t, mcpadapter.InMemory(server, options))
	if c.Peer().Protocol != "MCP 2026-07-28" {
		t.Fatalf("the protocol is %s", c.Peer().Protocol)
	}
	out, err := mcptest.Tool(t, c, "ask").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
	if err != nil || canister.TextOf(out.Content) != "decline s" {
		t.Errorf("got %q, %v", canister.TextOf(out.Content), err)
	}
	c = mcptest.Open(t, mcpadapter.InMemory(server, nil))
	out, err = mcptest.Tool(t, c, "ask").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
	if err != nil || canister.TextOf(out.Content) != "decline s" {
		t.Errorf("a question that nobody answers: got %q, %v", canister.TextOf(out.Content), err)
	}
}

// TestCompleteWithQuestions: a call whose result is complete is not made again, whatever its
// questions are.
func TestCompleteWithQuestions(t *testing.T) {
	for _, members := range []string{
		`"resultType":"complete","inputRequests":{}`,
		`"resultType":"complete","inputRequests":null`,
		`"resultType":"complete","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"?"}}}`,
		`"inputRequests":{}`,
		`"inputRequests":null`,
	} {
		s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
			if m.Method == "tools/call" {
				mcptest.Reply(w, m, `{"content":[{"type":"text","text":"done"}],`+members+`}`)
			}
			return m.Method == "tools/call"
		})
		out, err := mcptest.Tool(t, openScripted(t, s), "write").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
		if n := len(s.Received("tools/call")); n != 1 || err != nil || canister.TextOf(out.Content) != "done" || len(out.Metadata) > 0 {
			t.Errorf("%s: the call was sent %d times: %q, %v", members, n, canister.TextOf(out.Content), err)
		}
	}
}

// newModern starts a server of the protocol 2026-07-28 over HTTP, which answers calls with call.
func newModern(t *testing.T, call func(w http.ResponseWriter, m mcptest.Message)) *mcptest.Scripted {
	return mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
		switch m.Method {
		case "server/discover":
			mcptest.Reply(w, m, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
		case "tools/call":
			call(w, m)
		default:
			return false
		}
		return true
	})
}

// TestUnknownResultType: the newest protocol lets no client take a result of a type that it does
// not know for a success (MCP 2026-07-28, basic/index). Older ones have no types.
func TestUnknownResultType(t *testing.T) {
	for kind, want := range map[string]invoker.Code{
		`"task"`: invoker.OutcomeUnknown, `""`: invoker.OutcomeUnknown, `7`: invoker.OutcomeUnknown, `"complete"`: "", `null`: "",
	} {
		call := func(w http.ResponseWriter, m mcptest.Message) {
			mcptest.Reply(w, m, `{"content":[],"resultType":`+kind+`}`)
		}
		s := newModern(t, call)
		_, err := mcptest.Tool(t, mcptest.Open(t, mcpadapter.HTTP(s.URL, nil)), "write").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
		if mcptest.CodeOf(err) != want || want != "" && !strings.Contains(err.Error(), "resultType") {
			t.Errorf("%s: %v", kind, err)
		}
		_, err = mcptest.Tool(t, openScripted(t, s), "write").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
		if err != nil {
			t.Errorf("%s in an older protocol: %v", kind, err)
		}
	}
}

// A resource whose result has an unknown type cannot be read.
func TestUnknownResultTypeOfAResource(t *testing.T) {
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
		switch m.Method {
		case "server/discover":
			mcptest.Reply(w, m, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"resources":{}}}`)
		case "resources/read":
			mcptest.Reply(w, m, `{"resultType":"x","contents":[{"uri":"a:b","text":"c"}]}`)
		default:
			return false
		}
		return true
	})
	library := mcptest.Open(t, mcpadapter.HTTP(s.URL, nil)).(ensemble.Library)
	contents, err := library.Read(mcptest.Within(t), "a:b")
	if mcptest.CodeOf(err) != invoker.Protocol {
		t.Errorf("read %v, %v", contents, err)
	}
}

// TestRoundWithoutQuestions: a result with only a state makes the client call again with it
// (MCP 2026-07-28, SEP-2322), a few times.
func TestRoundWithoutQuestions(t *testing.T) {
	for name, test := range map[string]struct {
		members string
		rounds  int // before the result
		sent    int
		want    invoker.Code
	}{
		"absent":      {``, 1, 2, ""},
		"null":        {`,"inputRequests":null`, 1, 2, ""},
		"without end": {``, 100, 3, invoker.ExecutionFailed},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			s := newModern(t, func(w http.ResponseWriter, m mcptest.Message) {
				if int(calls.Add(1)) <= test.rounds {
					mcptest.Reply(w, m, `{"resultType":"input_required","requestState":"s"`+test.members+`}`)
				} else {
					mcptest.Reply(w, m, `{"resultType":"complete","content":[]}`)
				}
			})
			_, err := mcptest.Tool(t, mcptest.Open(t, mcpadapter.HTTP(s.URL, nil)), "write").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
			sent := s.Received("tools/call")
			if len(sent) != test.sent || mcptest.CodeOf(err) != test.want {
				t.Errorf("the call was sent %d times: %v", len(sent), err)
			}
			for i, m := range sent {
				var params struct{ RequestState string }
				if _ = json.Unmarshal(m.Params, &params); (params.RequestState == "s") != (i > 0) {
					t.Errorf("request %d is %s", i, m.Params)
				}
			}
		})
	}
}

// TestCutStreamIsNotResumed: in the newest protocol a stream that was cut cannot be resumed, also
// if its events have IDs: the call fails alone.
func TestCutStreamIsNotResumed(t *testing.T) {
	var calls atomic.Int32
	s := newModern(t, func(w http.ResponseWriter, m mcptest.Message) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "id: 1\nretry: 1\n\n"+"id: 2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n")
		if calls.Add(1) > 1 {
			_, _ = io.WriteString(w, `data: {"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"content":[]}}`+"\n\n")
		}
	})
	write := mcptest.Tool(t, mcptest.Open(t, mcpadapter.HTTP(s.URL, nil)), "write")
	if _, err := write.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); mcptest.CodeOf(err) != invoker.OutcomeUnknown {
		t.Errorf("the call whose stream was cut: %v", err)
	}
	if _, err := write.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`)); err != nil {
		t.Errorf("the next call: %v", err)
	}
	if n := len(s.Received("GET")); n > 0 {
		t.Errorf("the client tried %d times to resume", n)
	}
}
