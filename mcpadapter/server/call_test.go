// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The older protocols are spoken as well, with what the newest one deprecates.

package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connector connects a client, nil for a plain one, to a server.
type connector = func(*server.Server, *mcp.Client) *mcp.ClientSession

// says is a tool that answers the same every time.
func says(t *testing.T, name string, output invoker.Output, err error) invoker.Invoker {
	return rawTool(t, invoker.Definition{Name: name}, func(context.Context, *invoker.Call) (invoker.Output, error) { return output, err })
}

// listed returns the tools of a server, each as its bytes were on the wire.
func listed(t *testing.T, srv *server.Server, protocol string) []string {
	t.Helper()
	in, out := io.Pipe()
	answers, answer := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(context.Background(), in, answer) }()
	lines := bufio.NewReader(answers)
	ask := func(line string) []byte {
		if _, err := io.WriteString(out, line+"\n"); err != nil {
			t.Fatal(err)
		}
		got, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	params := meta
	if protocol < "2026" {
		ask(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + protocol +
			`","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
		params = `"_meta":{}`
	}
	var message struct {
		Result struct{ Tools []json.RawMessage }
	}
	if err := json.Unmarshal(ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+params+`}}`), &message); err != nil {
		t.Fatal(err)
	}
	out.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	var tools []string
	for _, tool := range message.Result.Tools {
		tools = append(tools, string(tool))
	}
	return tools
}

// Definitions come through as their authors wrote them: the order of members,
// numbers that no float holds, and what belongs to no field.
func TestDefinitionsAreExact(t *testing.T) {
	yes := true
	nothing := func(context.Context, *invoker.Call) (invoker.Output, error) { return invoker.Output{}, nil }
	unchecked, err := invoker.Raw(invoker.Definition{Name: "unchecked", OutputSchema: json.RawMessage(`{"type":"object","maximum":1e400}`)}, nothing,
		&invoker.RawOptions{UncheckedResults: true}) // as those of other servers whose output schema cannot be used
	if err != nil {
		t.Fatal(err)
	}
	srv := newServer(t, &server.Options{OwnNames: true},
		rawTool(t, invoker.Definition{
			Name: "exact", Title: "Exact", Description: "As <it> is & was.",
			InputSchema:  json.RawMessage(`{"z":1,"type":"object","properties":{"b":{"maximum":12345678901234567890.10},"a":{}}}`),
			OutputSchema: json.RawMessage(`{"properties":{"y":{},"x":{}},"type":"object"}`),
			Hints:        invoker.Hints{ReadOnly: true, OpenWorld: &yes},
			Metadata: canister.Fields{
				"mcp/icons": json.RawMessage(`[{"src":"https://x/i.png"}]`), "mcp/_meta": json.RawMessage(`{"a/b":1.0}`),
				"mcp/annotations": json.RawMessage(`{"Title":"no","more":1,"readOnlyHint":false}`), "pins/hash": json.RawMessage(`"no"`),
			},
		}, nothing),
		rawTool(t, invoker.Definition{
			Name: "free", InputSchema: json.RawMessage(`{"description":"anything"}`), OutputSchema: json.RawMessage(`{"type":"array"}`),
		}, nothing),
		unchecked,
	)
	exact := `{"name":"exact","title":"Exact","description":"As <it> is & was.","inputSchema":{"z":1,"type":"object",` +
		`"properties":{"b":{"maximum":12345678901234567890.10},"a":{}}},"outputSchema":{"properties":{"y":{},"x":{}},"type":"object"},` +
		`"annotations":{"readOnlyHint":true,"openWorldHint":true,"Title":"no","more":1},"_meta":{"a/b":1.0},"icons":[{"src":"https://x/i.png"}]}`
	large := `{"name":"unchecked","inputSchema":{"type":"object"},"outputSchema":{"type":"object","maximum":1e400}}` // also in older protocols
	free := `{"name":"free","inputSchema":{"type":"object","description":"anything"}%s}`
	for protocol, output := range map[string]string{"2026-07-28": `,"outputSchema":{"type":"array"}`, "2025-11-25": ``} {
		tools := listed(t, srv, protocol)
		if !slices.Equal(tools, []string{exact, fmt.Sprintf(free, output), large}) {
			t.Errorf("%s: got %s", protocol, strings.Join(tools, "\n"))
		}
	}
}

// Tools have their own names if those are unique and legal, and otherwise the names that
// models know.
func TestOwnNames(t *testing.T) {
	none := invoker.Output{}
	roster, err := ensemble.NewRoster(
		ensemble.Local("a", says(t, "one", none, nil), says(t, "both", none, nil), says(t, "odd name", none, nil), says(t, "mine", none, nil), says(t, "b__both", none, nil)),
		ensemble.Local("b", says(t, "two", none, nil), says(t, "both", none, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer roster.Close(context.Background())
	srv := server.New(roster, &server.Options{OwnNames: true, PageSize: 2, Tools: []invoker.Invoker{says(t, "mine", none, nil)}})
	defer srv.Close(context.Background())
	session := connectHTTP(t, srv, mcp.NewClient(&mcp.Implementation{Name: "c"}, nil), "")
	var names []string
	for tool, err := range session.Tools(t.Context(), nil) { // page by page
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if got, want := strings.Join(names, " "), "a__b__both a__both a__mine "+ensemble.NameFor("a", "odd name")+" b__both mine one two"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := session.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: "!"}); !isRPC(err, jsonrpc.CodeInvalidParams) {
		t.Errorf("a foreign cursor: %v", err)
	}
}

// No prompt has a name that another one has, also where its own name is another's full name.
func TestOwnNamesOfPrompts(t *testing.T) {
	prompts := func(ensembleName string, names ...string) *ensemble.Ensemble {
		var library local.Library
		for _, name := range names {
			library.Prompts = append(library.Prompts, local.Prompt{
				Prompt: ensemble.Prompt{Name: name},
				Get: func(context.Context, map[string]string) (*ensemble.Messages, error) {
					return &ensemble.Messages{Description: ensembleName + "/" + name}, nil
				},
			})
		}
		return ensemble.New(ensembleName, library.Source(), nil)
	}
	roster, err := ensemble.NewRoster(prompts("a", "one", "both"), prompts("b", "two", "both", "a__both"))
	if err != nil {
		t.Fatal(err)
	}
	defer roster.Close(context.Background())
	srv := server.New(roster, &server.Options{OwnNames: true})
	defer srv.Close(context.Background())
	session := connectHTTP(t, srv, mcp.NewClient(&mcp.Implementation{Name: "c"}, nil), "")
	var got []string
	for prompt, err := range session.Prompts(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		result, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: prompt.Name})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, prompt.Name+"="+result.Description)
	}
	want := "a__both=a/both b__a__both=b/a__both b__both=b/both one=a/one two=b/two"
	if got := strings.Join(got, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func isRPC(err error, code int64) bool {
	var rpc *jsonrpc.Error
	return errors.As(err, &rpc) && rpc.Code == code
}

// Every kind of content has its block, including the members stored in the metadata.
func TestContentGoesOut(t *testing.T) {
	size := int64(3)
	extra := canister.Extra{Metadata: canister.Fields{
		"mcp/annotations": json.RawMessage(`{"priority":1}`), "mcp/_meta": json.RawMessage(`{"k":2}`), "other": json.RawMessage(`1`),
	}}
	content := []canister.Content{
		canister.TextContent{Text: "a <b>\u2028", Extra: extra},
		canister.ImageContent{Data: []byte{1}, MIME: "image/png"},
		canister.ImageContent{URL: "https://x/y.png", MIME: "image/png"},
		canister.AudioContent{Data: []byte{2}, MIME: "audio/wav", Extra: extra},
		canister.ResourceContent{
			URI: "f:/a", MIME: "text/plain", Text: "t", Extra: canister.Extra{Metadata: canister.Fields{"mcp/resource/_meta": json.RawMessage(`{"r":1}`)}},
		},
		canister.ResourceContent{URI: "f:/b", Blob: []byte{}},
		canister.LinkContent{URI: "f:/c", Size: &size, Extra: extra},
		canister.TextContent{Text: "x", Extra: canister.Extra{Metadata: canister.Fields{"mcp/block": json.RawMessage(`{"type":"text","text":"kept whole"}`)}}},
		canister.StructuredContent{JSON: json.RawMessage(`{"b":1.50,"a":2}`)},
	}
	want := `[{"type":"text","text":"a <b>` + "\u2028" + `","_meta":{"k":2},"annotations":{"priority":1}},` +
		`{"type":"image","mimeType":"image/png","data":"AQ=="},` +
		`{"type":"resource_link","mimeType":"image/png","uri":"https://x/y.png","name":"image"},` +
		`{"type":"audio","mimeType":"audio/wav","data":"Ag==","_meta":{"k":2},"annotations":{"priority":1}},` +
		`{"type":"resource","resource":{"uri":"f:/a","mimeType":"text/plain","text":"t","_meta":{"r":1}}},` +
		`{"type":"resource","resource":{"uri":"f:/b","blob":""}},` +
		`{"type":"resource_link","uri":"f:/c","name":"f:/c","size":3,"_meta":{"k":2},"annotations":{"priority":1}},` +
		`{"type":"text","text":"kept whole"}]`
	everyServing(t, func(t *testing.T, connect connector) {
		session := connect(newServer(t, nil, says(t, "all",
			invoker.Output{
				Content: content, Metadata: canister.Fields{"mcp/_meta": json.RawMessage(`{"said":1,"io.modelcontextprotocol/serverInfo":{"name":"behind"}}`)},
			}, nil)), nil)
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "local__all"})
		if err != nil {
			t.Fatal(err)
		}
		if got := jsonOf(t, result.Content); !mcptest.SameJSON(t, got, want) {
			t.Errorf("got %s", got)
		}
		if got := jsonOf(t, result.StructuredContent); got != `{"a":2,"b":1.5}` {
			t.Errorf("structured %s", got)
		}
		if result.Meta["said"] != 1.0 || strings.Contains(jsonOf(t, result.Meta), "behind") {
			t.Errorf("_meta %v", result.Meta)
		}
	})
}

// A failure is reported in words and in a form for programs; its cause stays in the log.
func TestFailuresGoOut(t *testing.T) {
	secret := errors.New("password=hunter2")
	refused := invoker.Invalid("/title", "The title is too long.")
	refused.Cause = secret
	busy := invoker.UnavailableFor(1500*time.Millisecond, "Busy.")
	own := &invoker.Failure{
		Code: invoker.ExecutionFailed, Content: []canister.Content{canister.Text("own words"), canister.StructuredContent{JSON: json.RawMessage(`{"x":1}`)}},
	}
	schema := rawTool(t, invoker.Definition{Name: "schema", OutputSchema: json.RawMessage(`{"type":"object","required":["a"]}`)},
		func(context.Context, *invoker.Call) (invoker.Output, error) { return invoker.Output{}, refused })
	everyServing(t, func(t *testing.T, connect connector) {
		none := invoker.Output{}
		session := connect(newServer(t, nil, says(t, "refused", none, refused), says(t, "busy", none, busy), says(t, "own", none, own),
			says(t, "plain", none, secret), ensembletest.Panics("panics", secret), schema), nil)
		for name, want := range map[string][3]string{ // text, structured, _meta
			"refused": {
				`The title is too long.`,
				`{"error":{"code":"INVALID_ARGUMENTS","message":"The title is too long.","pointer":"/title","retryable":false}}`, `same`,
			},
			"busy": {`Busy.`, `{"error":{"code":"UNAVAILABLE","message":"Busy.","retry_after_ms":1500,"retryable":true}}`, `same`},
			"own":  {`own words`, `{"x":1}`, `{"error":{"code":"EXECUTION_FAILED","message":"own words","retryable":false}}`},
			"schema": {
				`The title is too long.`, `null`,
				`{"error":{"code":"INVALID_ARGUMENTS","message":"The title is too long.","pointer":"/title","retryable":false}}`,
			},
			"plain":  {``, ``, ``},
			"panics": {``, ``, ``},
		} {
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "local__" + name})
			if err != nil || !result.IsError {
				t.Fatalf("%s: %s, %v", name, jsonOf(t, result), err)
			}
			if strings.Contains(jsonOf(t, result), "hunter2") {
				t.Errorf("%s tells too much: %s", name, jsonOf(t, result))
			}
			if want[0] == "" {
				continue
			}
			if want[2] == "same" {
				want[2] = want[1]
			}
			text := result.Content[0].(*mcp.TextContent).Text
			if text != want[0] || jsonOf(t, result.StructuredContent) != want[1] || jsonOf(t, result.Meta[mcpadapter.FailureKey]) != want[2] {
				t.Errorf("%s: %s", name, jsonOf(t, result))
			}
		}
		if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "nobody"}); !isRPC(err, jsonrpc.CodeInvalidParams) {
			t.Errorf("an unknown tool: %v", err)
		}
	})
}

// Progress and the log go out in order, and all of it before the result.
func TestReports(t *testing.T) {
	everyServing(t, func(t *testing.T, connect connector) {
		var mu sync.Mutex
		var got []string
		heard := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, fmt.Sprintf(format, args...))
		}
		all := make(chan struct{})
		client := mcp.NewClient(&mcp.Implementation{Name: "c"}, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
				heard("%v/%v %s", r.Params.Progress, r.Params.Total, r.Params.Message)
				if r.Params.Message == "last" {
					close(all)
				}
			},
			LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
				heard("%s %s %v", r.Params.Level, r.Params.Logger, r.Params.Data)
			},
		})
		reporter := rawTool(t, invoker.Definition{Name: "reports"}, func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
			call.Report(invoker.Progress{Done: 1, Total: 4, Message: "begun"})
			call.Note(invoker.LogEntry{Level: "debug", Data: json.RawMessage(`"not this"`)})
			call.Note(invoker.LogEntry{Level: "warning", Logger: "part", Data: json.RawMessage(`{"a":1}`)})
			call.Report(invoker.Progress{Done: 1, Total: 4, Partial: canister.Texts("a piece")})
			call.Report(invoker.Progress{Done: 3, Total: 4, Message: "last"})
			return invoker.Output{}, nil
		})
		session := connect(newServer(t, nil, reporter), client)
		_ = session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}) // none in 2026-07-28
		params := &mcp.CallToolParams{Name: "local__reports", Meta: mcp.Meta{mcp.MetaKeyLogLevel: "info"}}
		params.SetProgressToken("token")
		if _, err := session.CallTool(t.Context(), params); err != nil {
			t.Fatal(err)
		}
		<-all
		want := "1/4 begun, warning part map[a:1], 1.001/4 a piece, 3/4 last"
		mu.Lock()
		defer mu.Unlock()
		if joined := strings.Join(got, ", "); joined != want {
			t.Errorf("got %s, want %s", joined, want)
		}
	})
}

// Reports that come slowly, too, exceed the rate when the burst is used up; they are merged. Log
// lines that the client did not ask for count for nothing.
func TestReportsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reporter := rawTool(t, invoker.Definition{Name: "reports"}, func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
			for i := range 1000 {
				time.Sleep(10 * time.Millisecond)
				call.Note(invoker.LogEntry{Level: "debug", Data: json.RawMessage(`"not this"`)})
				call.Report(invoker.Progress{Done: float64(i + 1)})
			}
			return invoker.Output{}, nil
		})
		client, end := overPipes(t, false, &server.Options{Stateless: true, Tools: []invoker.Invoker{reporter}})
		defer end()
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"reports","_meta":{"progressToken":1}}}`
		response := send(t, client, "", body)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if n := strings.Count(string(text), "notifications/progress"); err != nil || n < 250 || n > 310 || !strings.Contains(string(text), `"progress":1000}`) {
			t.Errorf("%d reports, %v", n, err)
		}
	})
}

// overStdio serves a tool over pipes, in a test with synctest. send sends a request of 2026-07-28 that calls it;
// next returns the next line of the server.
func overStdio(t *testing.T, tool invoker.Invoker) (send func(more string), next func() string, end func()) {
	srv := server.New(nil, &server.Options{Tools: []invoker.Invoker{tool}})
	toServer, in := io.Pipe()
	out, fromServer := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(t.Context(), toServer, fromServer) }()
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	send = func(more string) {
		line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool.Definition().Name + `",` + more + `"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	next = func() string {
		select {
		case line := <-lines:
			return line
		case <-time.After(time.Hour):
			return "nothing"
		}
	}
	return send, next, func() {
		in.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		fromServer.Close()
		_ = srv.Close(t.Context())
	}
}

// Log lines that wait take no places of progress.
func TestProgressBehindLogLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		send, next, end := overStdio(t, rawTool(t, invoker.Definition{Name: "noisy"}, func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
			for range 1000 {
				call.Note(invoker.LogEntry{Level: "warning", Data: json.RawMessage(`"noise"`)})
			}
			call.Report(invoker.Progress{Done: 1})
			time.Sleep(time.Minute)
			return invoker.Output{}, nil
		}))
		defer end()
		send(`"_meta":{"progressToken":1,"io.modelcontextprotocol/logLevel":"info",`)
		for noise := 0; ; noise++ {
			if line := next(); strings.Contains(line, "noise") {
				continue
			} else if !strings.Contains(line, `"progressToken":1,"progress":1}`) || noise < 100 {
				t.Errorf("after %d lines: %s", noise, line)
			}
			break
		}
		if line := next(); !strings.Contains(line, `"result"`) {
			t.Errorf("the result is %s", line)
		}
	})
}

// Reports while the client has not answered yet are part of the response to the request with the answer: no request is
// being answered before.
func TestProgressBetweenRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		send, next, end := overStdio(t, rawTool(t, invoker.Definition{Name: "asks"}, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
			call.Report(invoker.Progress{Message: "before"})
			go func() {
				for i := range 30 {
					time.Sleep(time.Second)
					call.Report(invoker.Progress{Message: fmt.Sprintf("while %d.", i)})
				}
			}()
			_, err := call.Ask(ctx, &invoker.ElicitRequest{Message: "Sure?"})
			time.Sleep(time.Minute)
			return invoker.Output{}, err
		}))
		defer end()
		until := func(token, what string) (all string) {
			for {
				line := next()
				if all += line; !strings.Contains(line, "notifications/progress") {
					if !strings.Contains(line, what) {
						t.Errorf("got %s, want %s", line, what)
					}
					return all
				}
				if !strings.Contains(line, `"progressToken":`+token+`,`) {
					t.Errorf("the token is not %s: %s", token, line)
				}
			}
		}
		send(`"_meta":{"progressToken":1,`)
		asked := until("1", "requestState")
		if !strings.Contains(asked, "before") {
			t.Errorf("before the question: %s", asked)
		}
		_, state, _ := strings.Cut(asked, `"requestState":"`)
		state, _, _ = strings.Cut(state, `"`)
		time.Sleep(10*time.Second + time.Millisecond)
		send(`"requestState":"` + state + `","inputResponses":{"question-1":{"action":"decline"}},"_meta":{"progressToken":2,`)
		if got := until("2", `"complete"`); !strings.Contains(got, "while 0.") || !strings.Contains(got, "while 20.") {
			t.Errorf("after the answer: %s", got)
		}
	})
}

// A client that gives up a call ends it.
func TestCancellation(t *testing.T) {
	everyServing(t, func(t *testing.T, connect connector) {
		begun, ended := make(chan struct{}), make(chan struct{})
		wait := rawTool(t, invoker.Definition{Name: "wait"}, func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
			close(begun)
			<-ctx.Done()
			close(ended)
			return invoker.Output{}, ctx.Err()
		})
		session := connect(newServer(t, nil, wait), nil)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-begun
			cancel()
		}()
		if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "local__wait"}); err == nil {
			t.Error("no error")
		}
		soon(t, ended, "the tool was not told")
	})
}

func soon(t *testing.T, done <-chan struct{}, otherwise string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(mcptest.Patience):
		t.Fatal(otherwise)
	}
}

// A tool asks the person and the model of the client, several times, in both
// protocols; the client that has neither is not asked.
func TestToolsAsk(t *testing.T) {
	curious := rawTool(t, invoker.Definition{Name: "curious"}, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		var said []string
		for i := range 2 {
			person, err := call.Ask(ctx, &invoker.ElicitRequest{
				Message: fmt.Sprint("Which ", i), Schema: json.RawMessage(`{"type":"object","properties":{"color":{"type":"string"}}}`),
			})
			if err != nil {
				return invoker.Output{}, err
			}
			said = append(said, string(person.Action), fmt.Sprint(person.Content["color"]))
		}
		model, err := call.Sample(ctx, &invoker.SampleRequest{System: "s", Messages: []invoker.SampleMessage{{Role: "user", Content: canister.Texts("q")}}})
		if err != nil {
			return invoker.Output{}, err
		}
		return invoker.Output{Content: canister.Texts(strings.Join(append(said, model.Text, model.Model), " "))}, nil
	})
	everyServing(t, func(t *testing.T, connect connector) {
		srv := newServer(t, nil, curious)
		n := 0
		client := mcp.NewClient(&mcp.Implementation{Name: "c"}, &mcp.ClientOptions{
			ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				n++
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"color": fmt.Sprint(r.Params.Message, " blue")}}, nil
			},
			CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
				return &mcp.CreateMessageResult{
					Role: "assistant", Model: "m",
					Content: &mcp.TextContent{Text: r.Params.SystemPrompt + r.Params.Messages[0].Content.(*mcp.TextContent).Text},
				}, nil
			},
		})
		result, err := connect(srv, client).CallTool(t.Context(), &mcp.CallToolParams{Name: "local__curious", Arguments: map[string]any{"x": 1}})
		if err != nil {
			t.Fatal(err)
		}
		if got := jsonOf(t, result.Content); !strings.Contains(got, `accept Which 0 blue accept Which 1 blue sq m`) || n != 2 {
			t.Errorf("got %s after %d questions", got, n)
		}
		result, err = connect(srv, nil).CallTool(t.Context(), &mcp.CallToolParams{Name: "local__curious"})
		if !isRPC(err, mcp.CodeMissingRequiredClientCapabilities) && (err != nil || !result.IsError ||
			!strings.Contains(jsonOf(t, result.StructuredContent), "UNAVAILABLE")) {
			t.Errorf("a client without a person: %s, %v", jsonOf(t, result), err)
		}
	})
}

// An error after a report is an event of the stream that has begun, and the only response.
func TestErrorsAfterReports(t *testing.T) {
	reporting := func(name string, fail func(context.Context, *invoker.Call) error) invoker.Invoker {
		return rawTool(t, invoker.Definition{Name: name}, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
			call.Report(invoker.Progress{Message: "begun"})
			return invoker.Output{}, fail(ctx, call)
		})
	}
	v := newVictim(t, func(o *server.Options) {
		o.Tools = []invoker.Invoker{reporting("asks", func(ctx context.Context, call *invoker.Call) error {
			_, err := call.Ask(ctx, &invoker.ElicitRequest{Message: "Sure?"})
			return err
		}), reporting("gone", func(context.Context, *invoker.Call) error { return invoker.Failf(invoker.ToolNotFound, "Gone.") })}
	})
	for name, code := range map[string]string{"asks": "-32021", "gone": "-32602"} {
		call := strings.Replace(calling(`{}`), "local__whose", name, 1)
		if status, _, answer := v.post(t, call, nil); status != 400 || !strings.Contains(answer, code) {
			t.Errorf("%s without reports: status %d, %s", name, status, answer)
		}
		status, _, answer := v.post(t, strings.Replace(call, `"_meta":{`, `"_meta":{"progressToken":1,`, 1), nil)
		events := strings.Split(strings.TrimSuffix(answer, "\n\n"), "\n\n")
		if status != 200 || len(events) != 2 || !strings.Contains(events[0], "notifications/progress") {
			t.Fatalf("%s: status %d, %s", name, status, answer)
		}
		response, ok := strings.CutPrefix(events[1], "event: message\ndata: ")
		var message struct {
			ID    int
			Error struct{ Code json.Number }
		}
		if err := json.Unmarshal([]byte(response), &message); !ok || err != nil || message.ID != 1 || message.Error.Code.String() != code {
			t.Errorf("%s: %v, %s", name, err, answer)
		}
	}
}

// A call that waits for its client belongs to who began it, and is continued
// once.
func TestParkedCalls(t *testing.T) {
	ended := make(chan error, 1)
	ask := rawTool(t, invoker.Definition{Name: "ask"}, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		answer, err := call.Ask(ctx, &invoker.ElicitRequest{Message: "Sure?"})
		ended <- err
		if err != nil {
			return invoker.Output{}, err
		}
		return invoker.Output{Content: canister.Texts(string(answer.Action))}, nil
	})
	v := newVictim(t, func(o *server.Options) { o.Tools = []invoker.Invoker{ask} })
	begin := strings.Replace(strings.Replace(calling(`{}`), "local__whose", "ask", 1),
		`"io.modelcontextprotocol/clientCapabilities":{}`, `"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}`, 1)
	status, _, answer := v.post(t, begin, nil)
	var message struct {
		Result struct{ ResultType, RequestState string }
	}
	_ = json.Unmarshal([]byte(answer[strings.Index(answer, "{"):]), &message)
	if status != 200 || message.Result.ResultType != "input_required" || len(message.Result.RequestState) < 20 {
		t.Fatalf("status %d, %s", status, answer)
	}
	again := func(state, arguments string) string {
		return strings.Replace(strings.Replace(begin, `"arguments":{}`, `"arguments":`+arguments, 1), `"_meta"`,
			`"requestState":"`+state+`","inputResponses":{"question-1":{"action":"decline"}},"_meta"`, 1)
	}
	state := message.Result.RequestState
	for name, refused := range map[string]struct{ body, token string }{
		"bob":             {again(state, `{}`), bob},
		"other arguments": {again(state, `{"a":1}`), ada},
		"a guess":         {again("AAAAAAAAAAAAAAAAAAAAAAAAAA", `{}`), ada},
	} {
		if status, _, answer := v.post(t, refused.body, bearer(refused.token)); status != 400 || !strings.Contains(answer, "-32602") {
			t.Errorf("%s: status %d, %s", name, status, answer)
		}
	}
	if status, _, answer := v.post(t, again(state, `{}`), nil); status != 200 || !strings.Contains(answer, `"text":"decline"`) {
		t.Errorf("status %d, %s", status, answer)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if status, _, _ := v.post(t, again(state, `{}`), nil); status != 400 {
		t.Errorf("continued twice: status %d", status)
	}
	count := make(map[string]int)
	for _, record := range v.kept.all() {
		count[record.Code]++
	}
	if count["OK"] != 1 || count["INVALID_ARGUMENTS"] != 4 || len(count) != 2 {
		t.Errorf("kept %v", count)
	}
}

// Reports after an answer go to the progress token of the request with the answer. A client may
// have forgotten that of the first request (MCP 2026-07-28, basic/utilities/progress).
func TestProgressAfterAnswers(t *testing.T) {
	ask := rawTool(t, invoker.Definition{Name: "ask"}, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		call.Report(invoker.Progress{Message: "before"})
		_, err := call.Ask(ctx, &invoker.ElicitRequest{Message: "Sure?"})
		call.Report(invoker.Progress{Message: "after"})
		return invoker.Output{}, err
	})
	v := newVictim(t, func(o *server.Options) { o.Tools = []invoker.Invoker{ask} })
	begin := strings.Replace(strings.Replace(calling(`{}`), "local__whose", "ask", 1),
		`"io.modelcontextprotocol/clientCapabilities":{}`, `"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}`, 1)
	for _, tokens := range [][2]string{{"1", "2"}, {"1", ""}, {"", "2"}, {"", ""}} {
		ask := func(token, more string) (report, result string) {
			if token != "" {
				more += `"_meta":{"progressToken":` + token + `,`
			} else {
				more += `"_meta":{`
			}
			status, _, answer := v.post(t, strings.Replace(begin, `"_meta":{`, more, 1), nil)
			if status != 200 {
				t.Fatalf("status %d, %s", status, answer)
			}
			for event := range strings.SplitSeq(answer, "\n") {
				if data, ok := strings.CutPrefix(event, "data: "); ok {
					report, result = result, data
				}
			}
			return report, result
		}
		_, first := ask(tokens[0], "")
		var asked struct{ Result struct{ RequestState string } }
		_ = json.Unmarshal([]byte(first), &asked)
		report, result := ask(tokens[1], `"requestState":"`+asked.Result.RequestState+`","inputResponses":{"question-1":{"action":"decline"}},`)
		if want := `"progressToken":` + tokens[1] + `,"message":"after"`; strings.Contains(report, want) != (tokens[1] != "") || !strings.Contains(result, "complete") {
			t.Errorf("%q: %s, %s", tokens, report, result)
		}
	}
}

// Calls that wait for their client keep their arguments, whose memory is bounded, and the
// client can still answer them.
func TestParkedCallsAreBounded(t *testing.T) {
	ask := rawTool(t, invoker.Definition{Name: "ask"}, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		answer, err := call.Ask(ctx, &invoker.ElicitRequest{Message: "Sure?"})
		if err != nil {
			return invoker.Output{}, err
		}
		return invoker.Output{Content: canister.Texts(string(answer.Action))}, nil
	})
	v := newVictim(t, func(o *server.Options) { o.Tools, o.MaxBody, o.MaxBodies = []invoker.Invoker{ask}, 3<<19, 8<<20 })
	arguments := `{"text":"` + strings.Repeat("x", 900<<10) + `"}`
	begin := strings.Replace(strings.Replace(calling(arguments), "local__whose", "ask", 1),
		`"io.modelcontextprotocol/clientCapabilities":{}`, `"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}`, 1)
	call := func(body, want string) string {
		t.Helper()
		status, _, answer := v.post(t, body, nil)
		if status != 200 || !strings.Contains(answer, want) {
			t.Fatalf("status %d, %.300s, and not %s", status, answer, want)
		}
		return answer
	}
	var message struct{ Result struct{ RequestState string } }
	answer := call(begin, "input_required")
	if err := json.Unmarshal([]byte(answer[strings.Index(answer, "{"):]), &message); err != nil {
		t.Fatal(err)
	}
	call(begin, "input_required")
	call(begin, "UNAVAILABLE")
	call(strings.Replace(begin, `"_meta"`, `"requestState":"`+message.Result.RequestState+
		`","inputResponses":{"question-1":{"action":"decline"}},"_meta"`, 1), `"text":"decline"`)
	call(begin, "input_required")
	call(begin, "UNAVAILABLE")
}

// SetAccess changes how many calls of a client may wait for its answers, like the other requests. Calls under way
// go on, also if they ask again.
func TestSetAccessBoundsParkedCalls(t *testing.T) {
	ask := rawTool(t, invoker.Definition{Name: "ask"}, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		for range 2 {
			if _, err := call.Ask(ctx, &invoker.ElicitRequest{Message: "Sure?"}); err != nil {
				return invoker.Output{}, err
			}
		}
		return invoker.Output{Content: canister.Texts("asked twice")}, nil
	})
	var options *server.Options
	v := newVictim(t, func(o *server.Options) { o.Tools, o.Parallel, options = []invoker.Invoker{ask}, 1, o })
	begin := strings.Replace(strings.Replace(calling(`{}`), "local__whose", "ask", 1),
		`"io.modelcontextprotocol/clientCapabilities":{}`, `"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}`, 1)
	var message struct{ Result struct{ RequestState string } }
	call := func(body, want string) (state string) {
		t.Helper()
		status, _, answer := v.post(t, body, nil)
		if status != 200 || !strings.Contains(answer, want) {
			t.Fatalf("status %d, %.300s, and not %s", status, answer, want)
		}
		message.Result.RequestState = ""
		if err := json.Unmarshal([]byte(answer[strings.Index(answer, "{"):]), &message); err != nil {
			t.Fatal(err)
		}
		return message.Result.RequestState
	}
	again := func(state string, question int) string {
		return strings.Replace(begin, `"_meta"`, fmt.Sprintf(`"requestState":%q,"inputResponses":{"question-%d":{"action":"accept"}},"_meta"`, state, question), 1)
	}
	change := func(parallel int) {
		changed := *options
		changed.Parallel = parallel
		v.server.SetAccess(&changed)
	}
	const tooMany = "CANCELED"
	call(begin, "input_required")
	call(begin, tooMany)
	change(2)
	first := call(begin, "input_required")
	call(begin, tooMany)
	change(1)
	call(begin, tooMany)
	call(again(call(again(first, 1), "input_required"), 2), "asked twice")
	call(begin, tooMany)
	change(0) // the default
	call(begin, "input_required")
}

// Clients are notified of changed tools; those of 2026-07-28 if they subscribed.
func TestToolsChange(t *testing.T) {
	everyServing(t, func(t *testing.T, connect connector) {
		source := ensembletest.NewSource(ensembletest.Returns("first", "1"))
		roster, err := ensemble.NewRoster(ensemble.New("e", source, nil))
		if err != nil {
			t.Fatal(err)
		}
		srv := server.New(roster, nil)
		t.Cleanup(func() { _, _ = srv.Close(context.Background()), roster.Close(context.Background()) })
		changed := make(chan struct{}, 8)
		session := connect(srv, mcp.NewClient(&mcp.Implementation{Name: "c"}, &mcp.ClientOptions{
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
		}))
		if _, err := session.ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		source.SetTools(ensembletest.Returns("second", "2"))
		soon(t, changed, "the client was not told")
		tools, err := session.ListTools(t.Context(), nil)
		if err != nil || len(tools.Tools) != 1 || tools.Tools[0].Name != "e__second" {
			t.Errorf("got %s, %v", jsonOf(t, tools), err)
		}
		if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "e__first"}); !isRPC(err, jsonrpc.CodeInvalidParams) {
			t.Errorf("a tool that has gone: %v", err)
		}
	})
}

// A client that ends its stream gets the answers to the calls under way.
func TestEndOfStreamWithCallsUnderWay(t *testing.T) {
	gate := ensembletest.NewGate("gate", false)
	srv := newServer(t, nil, gate)
	toServer, in := io.Pipe()
	out, fromServer := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(context.Background(), toServer, fromServer) }()
	if _, err := io.WriteString(in, strings.Replace(calling(`{}`), "local__whose", "local__gate", 1)+"\n"); err != nil {
		t.Fatal(err)
	}
	<-gate.Begun
	in.Close()
	gate.Release("done")
	answer, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(answer, `"result"`) {
		t.Errorf("got %s, %v", answer, err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// Close lets calls finish as long as its context lasts, refuses new ones, and
// then ends them.
func TestClose(t *testing.T) {
	for _, patient := range []bool{true, false} {
		t.Run(fmt.Sprint("patient=", patient), func(t *testing.T) {
			gate := ensembletest.NewGate("gate", false)
			roster, _ := ensemble.NewRoster(ensemble.Local("local", gate))
			defer roster.Close(context.Background())
			srv := server.New(roster, nil)
			listener := httptest.NewServer(srv.Handler())
			defer listener.Close()
			session := connectClient(t, mcp.NewClient(&mcp.Implementation{Name: "c"}, nil),
				&mcp.StreamableClientTransport{Endpoint: listener.URL, MaxRetries: -1, DisableStandaloneSSE: true}, "2025-11-25")
			type outcome struct {
				result *mcp.CallToolResult
				err    error
			}
			came := make(chan outcome, 1)
			go func() {
				result, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: "local__gate"})
				came <- outcome{result, err}
			}()
			<-gate.Begun
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			closed := make(chan error, 1)
			go func() { closed <- srv.Close(ctx) }()
			for {
				response, err := listener.Client().Post(listener.URL, "application/json", strings.NewReader(calling(`{}`)))
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				if response.StatusCode == 503 && response.Header.Get("Retry-After") != "" {
					break
				}
			}
			if patient {
				gate.Release("done")
			} else {
				cancel()
			}
			o := <-came
			if o.err != nil || o.result.IsError == patient || !patient && !strings.Contains(jsonOf(t, o.result), "CANCELED") {
				t.Errorf("got %s, %v", jsonOf(t, o.result), o.err)
			}
			if err := <-closed; err != nil {
				t.Error(err)
			}
		})
	}
}
