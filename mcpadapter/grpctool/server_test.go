// SPDX-License-Identifier: Apache-2.0

package grpctool_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"github.com/consort-go/consort/mcpadapter/server"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// registered serves a server of tools on a real socket, and ends it with the test.
func registered(t *testing.T, server *grpctool.Server, options ...grpc.ServerOption) string {
	t.Helper()
	at := newSite(t, func() *grpc.Server {
		on := grpc.NewServer(options...)
		server.Register(on)
		return on
	})
	t.Cleanup(func() { _ = server.Close(context.Background()) })
	return at.address
}

// raw is a client of the bare service, under its original name.
func raw(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func callOriginal(t *testing.T, conn *grpc.ClientConn, request *toolspb.ToolCallRequest) *toolspb.ToolCallResponse {
	t.Helper()
	response := new(toolspb.ToolCallResponse)
	if err := conn.Invoke(within(t), "/"+grpctool.OriginalService+"/CallTool", request, response); err != nil {
		t.Fatal(err)
	}
	return response
}

func rosterOf(t *testing.T, ensembles ...*ensemble.Ensemble) *ensemble.Roster {
	t.Helper()
	roster, err := ensemble.NewRoster(ensembles...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = roster.Close(context.Background()) })
	return roster
}

func listed(t *testing.T, address string, options *grpctool.Options) []string {
	t.Helper()
	listing, err := opened(t, grpctool.Source(address, options)).List(within(t))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, inv := range listing.Invokers {
		names = append(names, inv.Definition().Name)
	}
	return names
}

// Tools are offered by the names that models know, or by their own where those
// are unique; the category is the ensemble, unless the tool has one.
func TestNamesAndCategories(t *testing.T) {
	categorized := ensembletest.Returns("find", "found")
	categorized.Def.Metadata = canister.Fields{invoker.CategoryKey: json.RawMessage(`"search"`)}
	roster := rosterOf(t,
		ensemble.Local("one", ensembletest.Returns("same", "1"), ensembletest.Returns("first", "1"), ensembletest.Returns("two__same", "1"), categorized),
		ensemble.Local("two", ensembletest.Returns("same", "2"), ensembletest.Returns("own", "2")),
	)
	tools := []invoker.Invoker{ensembletest.Returns("own", "0")}
	long := registered(t, grpctool.NewServer(roster, &grpctool.ServerOptions{Tools: tools}))
	if got, want := listed(t, long, plaintext()), []string{"one__find", "one__first", "one__same", "one__two__same", "own", "two__own", "two__same"}; !slices.Equal(got, want) {
		t.Errorf("names of models: %q, want %q", got, want)
	}
	short := registered(t, grpctool.NewServer(roster, &grpctool.ServerOptions{Tools: tools, OwnNames: true}))
	if got, want := listed(t, short, plaintext()), []string{"find", "first", "one__same", "one__two__same", "own", "two__own", "two__same"}; !slices.Equal(got, want) {
		t.Errorf("own names: %q, want %q", got, want)
	}
	for category, want := range map[string][]string{"two": {"two__own", "two__same"}, "search": {"find"}, "none": nil, "grpctool": nil} {
		if got := listed(t, short, &grpctool.Options{Plaintext: true, Category: category}); !slices.Equal(got, want) {
			t.Errorf("category %q: %q, want %q", category, got, want)
		}
	}
	output, err := tool(t, opened(t, grpctool.Source(short, plaintext())), "own").Invoke(within(t), &invoker.Call{})
	if err != nil || canister.TextOf(output.Content) != "0" {
		t.Errorf("own answered %v, %v", output, err)
	}
}

// What a tool says arrives as it was, and in one JSON value for clients that
// know no more than the original contract.
func TestContentOverTheWire(t *testing.T) {
	size := int64(3)
	for name, c := range map[string]struct {
		content []canister.Content
		result  string
	}{
		"nothing":   {nil, `null`},
		"a text":    {canister.Texts("warm"), `"warm"`},
		"two texts": {canister.Texts("warm", "dry"), `"warm\ndry"`},
		"no UTF-8":  {canister.Texts("caf\xe9"), `"caf\ufffd"`},
		"a value":   {[]canister.Content{canister.StructuredContent{JSON: json.RawMessage(`{"n":12345678901234567890}`)}}, `{"n":12345678901234567890}`},
		"a string":  {[]canister.Content{canister.StructuredContent{JSON: json.RawMessage(`"s"`)}}, `"s"`},
		"null":      {[]canister.Content{canister.StructuredContent{JSON: json.RawMessage(`null`)}}, `null`},
		"a value in both": {
			[]canister.Content{canister.Text("4 degrees"), canister.StructuredContent{JSON: json.RawMessage(`{"degrees":4}`)}}, `{"degrees":4}`,
		},
		"an image": {
			[]canister.Content{canister.ImageContent{Data: []byte{1, 2}, MIME: "image/png"}}, `"[image, image/png, 2 bytes, that cannot be shown here]"`,
		},
		"the rest": {[]canister.Content{
			canister.AudioContent{Data: []byte{1}, MIME: "audio/wav"},
			canister.ResourceContent{URI: "file:///a", Blob: []byte{}},
			canister.ResourceContent{URI: "file:///b", Text: "b"},
			canister.LinkContent{URI: "file:///c", Name: "c", Size: &size},
		}, `"[audio, audio/wav, 1 bytes, that cannot be shown here]\n[the resource file:///a, , 0 bytes, that cannot be shown ` +
			`here]\nb\n[the resource file:///c, c]"`},
	} {
		t.Run(name, func(t *testing.T) {
			says := ensembletest.NewTool("says", func(context.Context, *invoker.Call) (invoker.Output, error) {
				return invoker.Output{Content: c.content}, nil
			})
			address := registered(t, grpctool.NewServer(nil, &grpctool.ServerOptions{Tools: []invoker.Invoker{says}}))
			output, err := tool(t, opened(t, grpctool.Source(address, plaintext())), "says").Invoke(within(t), &invoker.Call{})
			if err != nil || !reflect.DeepEqual(output.Content, c.content) {
				t.Errorf("%#v arrived as %#v, %v", c.content, output.Content, err)
			}
			if response := callOriginal(t, raw(t, address), &toolspb.ToolCallRequest{ToolName: "says"}); !response.Success || response.ResultJson != c.result {
				t.Errorf("the result is %s, want %s", response.ResultJson, c.result)
			}
		})
	}
}

// Failures arrive as they were; clients of the original contract get its codes.
func TestFailuresOverTheWire(t *testing.T) {
	for _, c := range []struct {
		failure *invoker.Failure
		code    toolspb.ErrorCode
	}{
		{invoker.Invalid("/title", "The title is taken."), toolspb.ErrorCode_ERROR_CODE_INVALID_ARGUMENTS},
		{invoker.UnavailableFor(2*time.Second, "The database is down."), toolspb.ErrorCode_ERROR_CODE_SERVICE_UNAVAILABLE},
		{invoker.Failf(invoker.NotFound, "There is no farmer WM-1."), toolspb.ErrorCode_ERROR_CODE_INTERNAL_ERROR},
		{invoker.Failf(invoker.Conflict, "Somebody else was faster."), toolspb.ErrorCode_ERROR_CODE_INTERNAL_ERROR},
		{invoker.Failf(invoker.Timeout, "It took too long."), toolspb.ErrorCode_ERROR_CODE_INTERNAL_ERROR},
		{
			&invoker.Failure{Code: invoker.ExecutionFailed, Message: "no", Content: canister.Texts("It broke.", "Twice.")},
			toolspb.ErrorCode_ERROR_CODE_INTERNAL_ERROR,
		},
	} {
		address := registered(t, grpctool.NewServer(nil, &grpctool.ServerOptions{Tools: []invoker.Invoker{ensembletest.Fails("fails", c.failure)}}))
		got := failed(t, tool(t, opened(t, grpctool.Source(address, plaintext())), "fails"), &invoker.Call{})
		if got.Code != c.failure.Code || got.Pointer != c.failure.Pointer || got.RetryAfter != c.failure.RetryAfter || got.Retryable != c.failure.Retryable {
			t.Errorf("%+v arrived as %+v", c.failure, got)
		}
		want := c.failure.Content
		if want == nil {
			want = canister.Texts(c.failure.Message)
		}
		if !reflect.DeepEqual(got.Content, want) {
			t.Errorf("%+v arrived with %+v", c.failure, got.Content)
		}
		response := callOriginal(t, raw(t, address), &toolspb.ToolCallRequest{ToolName: "fails", ArgumentsJson: "{}"})
		if response.Success || response.ErrorCode != c.code || response.ErrorMessage != canister.TextOf(want) {
			t.Errorf("%v is %v by the original contract", c.failure, response)
		}
	}
}

// A string of protobuf is UTF-8, and what tools say need not be.
func TestNoUTF8(t *testing.T) {
	fails := ensembletest.Fails("fails", invoker.Failf(invoker.NotFound, "no caf\xe9"))
	fails.Def.Description = "Looks for a caf\xe9."
	value := ensembletest.NewTool("value", func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{Content: []canister.Content{canister.StructuredContent{JSON: json.RawMessage("\"caf\xe9\"")}}}, nil
	})
	server := grpctool.NewServer(nil, &grpctool.ServerOptions{Tools: []invoker.Invoker{fails, value}})
	connection := opened(t, grpctool.Source(registered(t, server), plaintext()))
	inv := tool(t, connection, "fails")
	if got := inv.Definition().Description; got != "Looks for a caf\ufffd." {
		t.Errorf("the description is %q", got)
	}
	if failure := failed(t, inv, &invoker.Call{}); failure.Code != invoker.NotFound || failure.Message != "no caf\ufffd" {
		t.Errorf("got %+v", failure)
	}
	if output, err := tool(t, connection, "value").Invoke(within(t), &invoker.Call{}); err != nil || len(output.Content) != 1 {
		t.Errorf("got %v, %v", output, err)
	}
}

// What the server itself has to say by the original contract.
func TestOriginalErrors(t *testing.T) {
	panics := ensembletest.Panics("panics", "an internal secret")
	hidden := ensembletest.Fails("hidden", errors.New("an internal secret"))
	big := ensembletest.Returns("big", strings.Repeat("x", 2<<10))
	server := grpctool.NewServer(nil, &grpctool.ServerOptions{Tools: []invoker.Invoker{echoTool(t), panics, hidden, big}, MaxMessage: 1 << 10})
	conn := raw(t, registered(t, server))
	for name, c := range map[string]struct {
		arguments string
		code      toolspb.ErrorCode
		says      string
	}{
		"absent": {"{}", toolspb.ErrorCode_ERROR_CODE_TOOL_NOT_FOUND, `"absent"`},
		"echo":   {`{"text":7}`, toolspb.ErrorCode_ERROR_CODE_INVALID_ARGUMENTS, "/text"},
		"panics": {"{}", toolspb.ErrorCode_ERROR_CODE_INTERNAL_ERROR, ""},
		"hidden": {"{}", toolspb.ErrorCode_ERROR_CODE_INTERNAL_ERROR, ""},
		"big":    {"{}", toolspb.ErrorCode_ERROR_CODE_INTERNAL_ERROR, "1024 are allowed"},
	} {
		response := callOriginal(t, conn, &toolspb.ToolCallRequest{ToolName: name, ArgumentsJson: c.arguments})
		if response.Success || response.ErrorCode != c.code || !strings.Contains(response.ErrorMessage, c.says) ||
			response.ErrorMessage == "" || strings.Contains(response.String(), "secret") {
			t.Errorf("%s: %v", name, response)
		}
	}
	if response := callOriginal(t, conn, &toolspb.ToolCallRequest{
		ToolName: "echo", ArgumentsJson: "no JSON",
	}); response.ErrorCode != toolspb.ErrorCode_ERROR_CODE_INVALID_ARGUMENTS {
		t.Errorf("arguments that are no JSON: %v", response)
	}
}

// A tool that serves another server's tools stays its server.
func TestRosterOfAServer(t *testing.T) {
	address := registered(t, grpctool.NewServer(nil, &grpctool.ServerOptions{Tools: ensembletest.ServerTools()}))
	farm := ensemble.New("farm", grpctool.Source(address, plaintext()), nil)
	again := registered(t, grpctool.NewServer(rosterOf(t, farm), nil))
	output, err := tool(t, opened(t, grpctool.Source(again, plaintext())), "farm__echo").Invoke(within(t), &invoker.Call{Arguments: []byte(`{"text":"twice"}`)})
	if err != nil || canister.TextOf(output.Content) != "twice" {
		t.Errorf("got %v, %v", output, err)
	}
}

// A client chooses IDs of calls only among its own.
func TestCallIdentities(t *testing.T) {
	var mu sync.Mutex
	var ids []string
	notes := ensembletest.NewTool("notes", func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		mu.Lock()
		defer mu.Unlock()
		ids = append(ids, call.ID)
		return invoker.Output{}, nil
	})
	open := registered(t, grpctool.NewServer(nil, &grpctool.ServerOptions{Tools: []invoker.Invoker{notes}}))
	closed := registered(t, grpctool.NewServer(nil,
		&grpctool.ServerOptions{Tools: []invoker.Invoker{notes}, Tokens: []grpctool.BearerToken{{Token: "a"}, {Token: "b"}}}))
	call := func(address, token, key string) {
		t.Helper()
		inv := tool(t, opened(t, grpctool.Source(address, &grpctool.Options{Plaintext: true, BearerToken: token})), "notes")
		if _, err := inv.Invoke(within(t), &invoker.Call{ID: key}); err != nil {
			t.Fatal(err)
		}
	}
	call(closed, "a", "key")
	call(closed, "a", "key")
	call(closed, "b", "key")
	call(open, "", "key")
	call(open, "", "key")
	if ids[0] != ids[1] {
		t.Errorf("one client's key came to %q and %q", ids[0], ids[1])
	}
	others := slices.Clone(ids[1:])
	slices.Sort(others)
	if len(slices.Compact(others)) != 4 {
		t.Errorf("identities that are not the same client's: %q", ids[1:])
	}
}

// records is a sink of audit records.
type records struct {
	mu   sync.Mutex
	kept []audit.Record
}

func (r *records) Record(_ context.Context, record *audit.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, *record)
	return nil
}

func TestAuditAndForgery(t *testing.T) {
	user := invoker.NewTrusted[string]("user_id")
	mine, err := invoker.New("mine", "Says whose.", func(ctx context.Context, _ struct{}) (string, error) {
		whose, _ := user.From(ctx)
		return whose, nil
	}, &invoker.Options{Needs: []invoker.Need{user}})
	if err != nil {
		t.Fatal(err)
	}
	kept := new(records)
	server := grpctool.NewServer(rosterOf(t, ensemble.Local("local", mine)), &grpctool.ServerOptions{
		Tokens: []grpctool.BearerToken{{Token: "ada-token", Name: "laptop", Trusted: []invoker.Value{user.Value("ada")}}, {Token: "nobody-token"}},
		Audit:  audit.New(kept, &audit.Options{Identity: []string{"user_id"}}),
	})
	address := registered(t, server)
	call := func(token, arguments string) (invoker.Output, error) {
		inv := tool(t, opened(t, grpctool.Source(address, &grpctool.Options{Plaintext: true, BearerToken: token, Caller: "advisor"})), "local__mine")
		return inv.Invoke(within(t), &invoker.Call{Arguments: []byte(arguments)})
	}
	output, err := call("ada-token", `{}`)
	if err != nil || canister.TextOf(output.Content) != "ada" {
		t.Errorf("got %v, %v", output, err)
	}
	_, err = call("nobody-token", `{}`)
	if failure := invoker.AsFailure(err); failure == nil || failure.Code != invoker.Unauthorized {
		t.Errorf("without an identity: %v", err)
	}
	forged := callAs(t, address, "ada-token", &toolspb.ToolCallRequest{ToolName: "local__mine", ArgumentsJson: `{"user_id":"ben"}`})
	if forged.ErrorCode != toolspb.ErrorCode_ERROR_CODE_INVALID_ARGUMENTS {
		t.Errorf("a forged identity: %v", forged)
	}
	if len(kept.kept) != 3 {
		t.Fatalf("%d records", len(kept.kept))
	}
	first, last := kept.kept[0], kept.kept[2]
	if first.Asker != "grpc" || first.Client != "advisor" || first.ClientName != "laptop" || kept.kept[1].ClientName != "" ||
		first.Ensemble != "local" || first.Tool != "mine" || first.Code != audit.OK || string(first.Identity["user_id"]) != `"ada"` || first.Invocation == "" {
		t.Errorf("the first record is %+v", first)
	}
	if !slices.Equal(last.Forged, []string{"user_id"}) {
		t.Errorf("the forgery is recorded as %+v", last)
	}
}

func TestParallel(t *testing.T) {
	gate := ensembletest.NewGate("gate", false)
	address := registered(t, grpctool.NewServer(nil, &grpctool.ServerOptions{Tools: []invoker.Invoker{gate}, Parallel: 1}))
	inv := tool(t, opened(t, grpctool.Source(address, plaintext())), "gate")
	ended := make(chan error, 1)
	ctx := within(t)
	go func() {
		_, err := inv.Invoke(ctx, &invoker.Call{})
		ended <- err
	}()
	await(t, "the first call", gate.Begun)
	if failure := failed(t, inv, &invoker.Call{}); failure.Code != invoker.Unavailable || failure.RetryAfter != time.Second {
		t.Errorf("the second call: %+v", failure)
	}
	gate.Release("through")
	if err := await(t, "the end of the first call", ended); err != nil {
		t.Error(err)
	}
	go gate.Release("through")
	if _, err := inv.Invoke(within(t), &invoker.Call{}); err != nil {
		t.Errorf("the call after that: %v", err)
	}
}

// A change of a tool's hints holds for its calls, also if no client lists the tools again: rules
// are about them.
func TestCallsHaveTheHintsOfNow(t *testing.T) {
	tool := func(readOnly bool) invoker.Invoker {
		write := ensembletest.Returns("write", "written")
		write.Def.Hints.ReadOnly = readOnly
		return write
	}
	source := ensembletest.NewSource(tool(true))
	var hinted atomic.Bool
	server := grpctool.NewServer(rosterOf(t, ensemble.New("files", source, nil)), &grpctool.ServerOptions{
		Invoke: func(_ context.Context, call *server.ToolCall) (invoker.Output, error) {
			hinted.Store(call.Item.Hints.ReadOnly)
			return invoker.Output{}, nil
		},
	})
	address := registered(t, server)
	listed(t, address, plaintext())
	conn := raw(t, address)
	readOnly := func() bool {
		if response := callOriginal(t, conn, &toolspb.ToolCallRequest{ToolName: "files__write"}); !response.GetSuccess() {
			t.Fatalf("the call failed: %v", response)
		}
		return hinted.Load()
	}
	if !readOnly() {
		t.Fatal("the tool is not read-only")
	}
	source.SetTools(tool(false))
	for deadline := time.Now().Add(10 * time.Second); readOnly(); {
		if time.Now().After(deadline) {
			t.Fatal("calls have the old hints")
		}
	}
}
