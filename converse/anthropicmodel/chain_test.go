// SPDX-License-Identifier: Apache-2.0

package anthropicmodel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"iter"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/anthropicmodel"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history/files"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/modeltest"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/invoker"
)

// apis are the APIs that a model of a chain can have.
var apis = []string{"chat", "responses", "messages"}

// settings are what differs between the models of the cases.
type settings struct {
	name      string // default "first"
	url       string // of the server, with /v1
	key       string
	answering time.Duration // ResponseTimeout
	silent    time.Duration // IdleTimeout
	client    *http.Client
}

// modelOf makes a model that asks a server once.
func modelOf(t testing.TB, api string, s settings) converse.Model {
	t.Helper()
	if s.name == "" {
		s.name = "first"
	}
	type closer interface {
		converse.Model
		Close() error
	}
	var model closer
	var err error
	if api == "messages" {
		model, err = anthropicmodel.New(s.name, &anthropicmodel.Options{
			BaseURL: strings.TrimSuffix(s.url, "/v1"), APIKey: s.key, MaxRetries: -1, ResponseTimeout: s.answering, IdleTimeout: s.silent, HTTPClient: s.client,
		})
	} else {
		model, err = openaimodel.New(s.name, &openaimodel.Options{
			API: api, BaseURL: s.url, APIKey: s.key, MaxRetries: -1, ResponseTimeout: s.answering, IdleTimeout: s.silent, HTTPClient: s.client,
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	return model
}

func startServer(t testing.TB, steps ...openaiserver.Step) *openaiserver.Server {
	t.Helper()
	server, err := openaiserver.Start(openaiserver.Script{Steps: steps}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// spare is the second model of the chains. It counts its exchanges.
type spare int

func (s *spare) Exchange(_ context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		*s++
		yield(converse.Reply{Message: canister.Assistant{Head: canister.Head{ID: request.NewID()}, Model: "spare"}}, nil)
	}
}

// trouble is one way in which a model fails.
type trouble struct {
	reply openaiserver.Reply
	settings
	opts  converse.Options
	leave bool // the caller cancels the turn
}

func failures(list ...openaiserver.Failure) (all []trouble) {
	for _, failure := range list {
		all = append(all, trouble{reply: failure})
	}
	return all
}

func statuses(list ...int) (all []trouble) {
	for _, status := range list {
		all = append(all, trouble{reply: openaiserver.Failure{Status: status, Message: "it does not work", Code: "some_code"}})
	}
	return all
}

// cutOff returns an answer that ends too early, after some events of a stream.
func cutOff(end openaiserver.End, events ...string) openaiserver.Reply {
	return openaiserver.Replay{End: end, Parts: []openaiserver.Part{{Data: []byte(strings.Join(events, ""))}}}
}

func sse(data string) string { return "data: " + data + "\n\n" }

// reported returns an error within an answer, as each API reports it: API reference of
// OpenAI, Streaming events, error; Anthropic, Streaming messages, Error events. Of Chat
// Completions only compatible servers have it.
func reported(api, code string) openaiserver.Reply {
	switch api {
	case "messages":
		return cutOff(openaiserver.EndClean, "event: error\n", sse(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`))
	case "responses":
		return cutOff(openaiserver.EndClean, sse(`{"type":"error","code":"`+code+`","message":"Overloaded","param":null,"sequence_number":1}`))
	}
	return cutOff(openaiserver.EndClean, sse(`{"error":{"message":"Overloaded","type":"server_error","code":"`+code+`"}}`))
}

// begun returns the first events of an answer, with a piece of its text or reasoning.
func begun(api string, reasoning bool) string {
	switch {
	case api == "messages" && reasoning:
		return sse(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],`+
			`"usage":{"input_tokens":1,"output_tokens":1}}}`) +
			sse(`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`) +
			sse(`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}`)
	case api == "messages":
		return sse(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],`+
			`"usage":{"input_tokens":1,"output_tokens":1}}}`) +
			sse(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`) +
			sse(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Half"}}`)
	case api == "responses" && reasoning:
		return sse(`{"type":"response.created","response":{"id":"r","object":"response","status":"in_progress","model":"x","output":[]}}`) +
			sse(`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[]}}`) +
			sse(`{"type":"response.reasoning_summary_part.added","item_id":"rs","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}`) +
			sse(`{"type":"response.reasoning_summary_text.delta","item_id":"rs","output_index":0,"summary_index":0,"delta":"Hm"}`)
	case api == "responses":
		return sse(`{"type":"response.created","response":{"id":"r","object":"response","status":"in_progress","model":"x","output":[]}}`) +
			sse(`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"i","role":"assistant",`+
				`"status":"in_progress","content":[]}}`) +
			sse(`{"type":"response.content_part.added","item_id":"i","output_index":0,"content_index":0,"part":{"type":"output_text",`+
				`"text":"","annotations":[]}}`) +
			sse(`{"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"delta":"Half"}`)
	case reasoning:
		return sse(`{"id":"c","object":"chat.completion.chunk","model":"x","choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"Hm"}}]}`)
	}
	return sse(`{"id":"c","object":"chat.completion.chunk","model":"x","choices":[{"index":0,"delta":{"role":"assistant","content":"Half"}}]}`)
}

// pinging returns an answer that begins after 40 signs of life, each 40 ms after the other.
func pinging(api string) openaiserver.Reply {
	ping, end := ": keep-alive\n\n", begun(api, false)
	switch api {
	case "messages":
		ping += "event: ping\n" + sse(`{"type":"ping"}`)
		end += sse(`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`) + sse(`{"type":"message_stop"}`)
	case "responses":
		ping += sse(`{"type":"keepalive","sequence_number":3}`)
		end += sse(`{"type":"response.completed","response":{"object":"response","status":"completed","output":[]}}`)
	default:
		ping += sse(`{"id":"c","object":"chat.completion.chunk","model":"x","choices":[{"index":0,"delta":{}}]}`)
		end += sse(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`) + sse("[DONE]")
	}
	parts := make([]openaiserver.Part, 40)
	for i := range parts {
		parts[i] = openaiserver.Part{Data: []byte(ping), Pause: 40 * time.Millisecond}
	}
	return openaiserver.Replay{Parts: append(parts, openaiserver.Part{Data: []byte(end)})}
}

// tooLong is in the words of a server whose code for it is not known.
const tooLong = "the prompt is too long: 210000 tokens > 200000 maximum"

// troubles has what each row of the table in docs/models.md is about.
var troubles = map[string]func(t *testing.T, api string) []trouble{
	"the server cannot be reached: connection refused, no such host": func(t *testing.T, _ string) []trouble {
		closed := httptest.NewServer(nil)
		closed.Close()
		unknown := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "first.invalid", IsNotFound: true}}
		}}}
		return []trouble{{settings: settings{url: closed.URL + "/v1"}}, {settings: settings{client: unknown}}}
	},
	"no response within `response_timeout`": func(*testing.T, string) []trouble {
		return []trouble{{reply: openaiserver.Failure{Delay: time.Hour}, settings: settings{answering: 50 * time.Millisecond}}}
	},
	"the answer breaks off, or is silent for `idle_timeout`, before its first piece": func(_ *testing.T, api string) []trouble {
		return []trouble{
			{reply: cutOff(openaiserver.EndCut, ": hello\n\n")},
			{reply: cutOff(openaiserver.EndReset, ": hello\n\n")},
			{reply: cutOff(openaiserver.EndClean, ": hello\n\n")},
			{reply: cutOff(openaiserver.EndStall, ": hello\n\n"), settings: settings{silent: 50 * time.Millisecond}},
			{reply: pinging(api), settings: settings{silent: 50 * time.Millisecond}},
		}
	},
	"the server reports within the answer that it is overloaded, before its first piece": func(_ *testing.T, api string) []trouble {
		return []trouble{{reply: reported(api, "server_error")}, {reply: reported(api, "rate_limit_exceeded")}}
	},
	"status 408, 429, 500 and above, such as 503 and 529": func(*testing.T, string) []trouble {
		return append(statuses(408, 429, 500, 502, 503, 504, 529),
			failures(openaiserver.Failure{Status: 429, Message: "Request too large for m on tokens per min (TPM): Limit 30000, Requested 36741."})...)
	},
	"quota or credit is used up: status 402, or `insufficient_quota`": func(_ *testing.T, api string) []trouble {
		if api == "messages" {
			return append(statuses(402), trouble{reply: openaiserver.Failure{
				Status: 400, Message: "You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC.",
			}})
		}
		return append(
			statuses(402),
			failures(openaiserver.Failure{Status: 429, Code: "insufficient_quota"}, openaiserver.Failure{Status: 403, Code: "insufficient_quota"})...,
		)
	},
	"status 400 or 422: the request is not valid":             func(*testing.T, string) []trouble { return statuses(400, 422) },
	"status 401 or 403: the key is wrong, or may not be used": func(*testing.T, string) []trouble { return statuses(401, 403) },
	"status 404: no such model or address":                    func(*testing.T, string) []trouble { return statuses(404) },
	"status 413, or any status but 429 with `context_length_exceeded`: the request is too long": func(*testing.T, string) []trouble {
		return append(
			statuses(413),
			failures(openaiserver.ContextLength(), openaiserver.Failure{Status: 500, Message: tooLong}, openaiserver.Failure{Status: 503, Message: tooLong})...,
		)
	},
	"any other status from 300 to 499": func(*testing.T, string) []trouble {
		return append(
			statuses(405, 409, 410, 418, 424, 451, 499),
			failures(openaiserver.Failure{Status: 307, Header: http.Header{"Location": {"http://elsewhere.invalid/"}}})...,
		)
	},
	"a certificate that cannot be verified": func(t *testing.T, _ string) []trouble {
		server := httptest.NewUnstartedServer(nil)
		server.Config.ErrorLog = nil
		server.StartTLS()
		t.Cleanup(server.Close)
		return []trouble{{settings: settings{url: server.URL + "/v1"}}}
	},
	"a refusal, or an answer that was filtered": func(_ *testing.T, api string) []trouble {
		filtered := openaiserver.Message{Text: "N", Finish: "content_filter"}
		if api == "messages" {
			filtered = openaiserver.Message{Refusal: "No more."}
		}
		return []trouble{{reply: openaiserver.Message{Refusal: "No."}}, {reply: filtered}}
	},
	"a failure after the first piece of the answer, or of its reasoning": func(_ *testing.T, api string) []trouble {
		return []trouble{
			{reply: cutOff(openaiserver.EndCut, begun(api, false))}, {reply: cutOff(openaiserver.EndCut, begun(api, true))},
			{reply: cutOff(openaiserver.EndStall, begun(api, false)), settings: settings{silent: 50 * time.Millisecond}},
		}
	},
	"the turn is cancelled, or its time or budget is used up": func(*testing.T, string) []trouble {
		short := &budget.Policy{Ledger: budget.NewMemory(), Caps: []budget.Cap{{Scope: budget.Conversation, Time: 50 * time.Millisecond}}}
		few := &budget.Policy{Ledger: budget.NewMemory(), Caps: []budget.Cap{{Scope: budget.Conversation, Tokens: 10}}}
		late := openaiserver.Failure{Delay: time.Hour}
		return []trouble{
			{reply: late, leave: true}, {reply: late, opts: converse.Options{Limits: converse.Limits{Time: 50 * time.Millisecond}}},
			{reply: late, opts: converse.Options{Budget: short}}, {reply: late, opts: converse.Options{Budget: few}},
		}
	},
}

// TestChainTable: each row of the published table is true of each API.
func TestChainTable(t *testing.T) {
	page, err := os.ReadFile("../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| (.+) \| (yes|no) \|$`).FindAllStringSubmatch(string(page), -1) {
		rows[row[1]] = row[2] == "yes"
	}
	if got, want := slices.Sorted(maps.Keys(rows)), slices.Sorted(maps.Keys(troubles)); !slices.Equal(got, want) {
		t.Fatalf("the rows are\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for row, moves := range rows {
		for _, api := range apis {
			for i, trouble := range troubles[row](t, api) {
				t.Run(fmt.Sprintf("%s/%s/%d", row, api, i), func(t *testing.T) { trouble.check(t, api, moves) })
			}
		}
	}
}

// check runs a turn of a chain whose first model has the trouble.
func (x trouble) check(t *testing.T, api string, moves bool) {
	step := openaiserver.Step{Reply: x.reply}
	switch {
	case x.silent > 0:
		synctest.Test(t, func(t *testing.T) {
			server := openaiserver.New(openaiserver.Script{Steps: []openaiserver.Step{step}}, nil)
			t.Cleanup(func() { server.Close() })
			x.url, x.client = "http://first.invalid/v1", modeltest.Serve(t, server)
			x.run(t, api, moves)
		})
		return
	case x.reply != nil:
		x.url = startServer(t, step).URL()
	case x.url == "":
		x.url = "http://first.invalid/v1"
	}
	x.run(t, api, moves)
}

// run is check after the server has begun.
func (x trouble) run(t *testing.T, api string, moves bool) {
	second := new(spare)
	talk := converse.New(converse.Chain(modelOf(t, api, x.settings), second), nil, &x.opts)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	text, shown, moved, by := "", 0, 0, ""
	var failed error
	for event, err := range talk.Send(ctx, canister.Text("Hello")) {
		failed = err
		switch event := event.(type) {
		case converse.MessageStarted:
			if x.leave {
				cancel()
			}
		case converse.TextDelta:
			text += event.Text
			shown++
		case converse.ReasoningDelta:
			shown++
		case converse.ExchangeMoved:
			moved++
			if shown > 0 {
				t.Errorf("it moves after %q", text)
			}
		case converse.MessageCompleted:
			by = event.Message.Model
		}
	}
	if want := map[bool]int{true: 1}[moves]; int(*second) != want || moved != want {
		t.Errorf("the second model was asked %d times, with %d moves; want %d. %v", *second, moved, want, failed)
	}
	if moves && (failed != nil || by != "spare") {
		t.Errorf("the answer is by %q, %v", by, failed)
	}
}

// opaqueData matches the members that only their own server and model may see again.
var opaqueData = regexp.MustCompile(`"(?:encrypted_content|signature)":"([^"]+)"`)

// TestChainChangesProvider: a turn moves from one API to another between the results of
// calls and the next answer, and the next turn moves back, with images from the user and
// from tools. No server refuses anything, no call runs twice, and each sees the opaque
// data, the reasoning and the key of its own model alone.
func TestChainChangesProvider(t *testing.T) {
	for _, from := range apis {
		for _, to := range apis {
			t.Run(from+" to "+to, func(t *testing.T) { changeProvider(t, from, to) })
		}
	}
}

// rosterOf returns a roster with the ensemble "local" of these tools.
func rosterOf(t testing.TB, tools map[string]func(context.Context, *invoker.Call) (invoker.Output, error)) *ensemble.Roster {
	t.Helper()
	var invokers []invoker.Invoker
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		tool, err := invoker.Raw(invoker.Definition{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, tools[name], nil)
		if err != nil {
			t.Fatal(err)
		}
		invokers = append(invokers, tool)
	}
	roster, err := ensemble.NewRoster(ensemble.Local("local", invokers...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { roster.Close(context.Background()) })
	return roster
}

func changeProvider(t *testing.T, from, to string) {
	calls := func(name, thought string) openaiserver.Reply {
		return openaiserver.Message{Reasoning: thought, Text: "I look.", Calls: []openaiserver.Call{
			{Name: "local__look", Arguments: `{"at":"` + name + `"}`}, {Name: "local__fail", Arguments: `{}`},
		}}
	}
	down := openaiserver.Failure{Status: 529, Message: "Overloaded"}
	unasked := openaiserver.Step{Reply: openaiserver.Failure{Status: 400, Message: "this step is the other model's"}}
	first := startServer(t, openaiserver.Step{Reply: calls("first", "thought-of-first")}, openaiserver.Step{Reply: down}, unasked,
		openaiserver.Step{Reply: openaiserver.Message{Reasoning: "more of it", Text: "Back again."}})
	second := startServer(t, unasked, openaiserver.Step{Reply: calls("second", "thought-of-second")},
		openaiserver.Step{Reply: openaiserver.Message{Text: "A cat."}}, openaiserver.Step{Reply: down})
	chain := converse.Chain(
		modelOf(t, from, settings{name: "first", url: first.URL(), key: "key-of-first"}),
		modelOf(t, to, settings{name: "second", url: second.URL(), key: "key-of-second"}))

	var pixels bytes.Buffer
	if err := png.Encode(&pixels, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	picture := canister.ImageContent{MIME: "image/png", Data: pixels.Bytes()}
	made := map[string]int{}
	roster := rosterOf(t, map[string]func(context.Context, *invoker.Call) (invoker.Output, error){
		"look": func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
			made[string(call.Arguments)]++
			return invoker.Output{Content: []canister.Content{canister.Text("a picture"), picture}}, nil
		},
		"fail": func(context.Context, *invoker.Call) (invoker.Output, error) {
			return invoker.Output{}, invoker.Failf(invoker.NotFound, "There is none.")
		},
	})
	talk := converse.New(chain, roster, &converse.Options{Instructions: "Be brief."})
	for _, want := range []string{"A cat. by second", "Back again. by first"} {
		turn, err := talk.Ask(t.Context(), canister.Text("What is this?"), picture)
		if got := turn.Text() + " by " + turn.Answer.Model; err != nil || got != want {
			t.Fatalf("the answer is %s, want %s; %v", got, want, err)
		}
	}
	if want := map[string]int{`{"at":"first"}`: 1, `{"at":"second"}`: 1}; !maps.Equal(made, want) {
		t.Errorf("the calls are %v", made)
	}
	text := map[string]string{}
	for name, server := range map[string]*openaiserver.Server{"first": first, "second": second} {
		if faults := server.Faults(); len(faults) > 0 {
			t.Errorf("%s refused %q", name, faults)
		}
		for _, request := range server.Requests() {
			text[name] += fmt.Sprint(request.Header) + string(request.Body)
		}
	}
	other := map[string]string{"first": "second", "second": "first"}
	opaque := 0
	for name, all := range text {
		if strings.Contains(all, "key-of-"+other[name]) || strings.Contains(all, "thought-of-"+other[name]) {
			t.Errorf("%s got what belongs to the other", name)
		}
	}
	for _, c := range talk.History() {
		said, ok := c.(canister.Assistant)
		if !ok {
			continue
		}
		for _, member := range said.Metadata {
			for _, data := range opaqueData.FindAllStringSubmatch(string(member), -1) {
				opaque++
				if strings.Contains(text[other[said.Model]], data[1]) {
					t.Errorf("%s got the opaque data of %s: %s", other[said.Model], said.Model, data[0])
				}
			}
		}
	}
	if (from != "chat" || to != "chat") && opaque == 0 {
		t.Error("there was no opaque data")
	}
}

// childVariable has the directory and the servers of the process that TestChainKilled
// kills.
const childVariable = "CONSORT_CHAIN_CHILD"

// killable returns the conversation in a directory, whose tool "pay" writes a line to a
// file and then calls after.
func killable(t testing.TB, from, to, directory, first, second string, after func()) *converse.Conversation {
	t.Helper()
	store, err := files.Open(filepath.Join(directory, "store"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	roster := rosterOf(t, map[string]func(context.Context, *invoker.Call) (invoker.Output, error){
		"pay": func(context.Context, *invoker.Call) (invoker.Output, error) {
			file, err := os.OpenFile(filepath.Join(directory, "paid"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				return invoker.Output{}, err
			}
			defer file.Close()
			_, err = file.WriteString("paid\n")
			after()
			return invoker.Output{Content: canister.Texts("paid")}, err
		},
	})
	chain := converse.Chain(modelOf(t, from, settings{name: "first", url: first}), modelOf(t, to, settings{name: "second", url: second}))
	talk := converse.New(chain, roster, &converse.Options{ID: "talk", Log: store})
	if err := talk.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return talk
}

// TestChainChild is the process that is killed.
func TestChainChild(t *testing.T) {
	arguments := strings.Fields(os.Getenv(childVariable))
	if len(arguments) != 5 {
		t.Skip("it is the child of TestChainKilled")
	}
	talk := killable(t, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], func() {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		t.Error("it lives", err)
	})
	_, err := talk.Ask(t.Context(), canister.Text("Pay."))
	t.Error("it lives", err)
}

// TestChainKilled: a process is killed while the second model of its chain works on the
// answer, or after the call that the second model asked for. Another process continues
// with the same chain: the call is not made again, and the history names the models.
func TestChainKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts processes")
	}
	for _, to := range apis {
		for _, inCall := range []bool{true, false} {
			t.Run(fmt.Sprint(to, " ", inCall), func(t *testing.T) { chainKilled(t, "responses", to, inCall) })
		}
	}
}

func chainKilled(t *testing.T, from, to string, inCall bool) {
	down := openaiserver.Step{Reply: openaiserver.Failure{Status: 503, Message: "Overloaded"}}
	first := startServer(t, down, down, down)
	process := make(chan *os.Process, 1)
	var asked atomic.Int32
	second := startServer(t, openaiserver.Step{Reply: openaiserver.Respond(func(*openaiserver.Request) openaiserver.Reply {
		if asked.Add(1) == 1 && !inCall {
			if err := (<-process).Kill(); err != nil {
				t.Error(err)
			}
		}
		return openaiserver.Message{Reasoning: "They want it.", Calls: []openaiserver.Call{{Name: "local__pay"}}}
	})}, openaiserver.Step{Reply: openaiserver.Message{Text: "Done."}})
	directory := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChainChild$")
	child.Env = append(os.Environ(), childVariable+"="+strings.Join([]string{from, to, directory, first.URL(), second.URL()}, " "))
	var said bytes.Buffer
	child.Stdout, child.Stderr = &said, &said
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	process <- child.Process
	if err := child.Wait(); err == nil || strings.Contains(said.String(), "it lives") || asked.Load() != 1 {
		t.Fatalf("the child ended with %v after %d requests: %s", err, asked.Load(), said.String())
	}
	talk := killable(t, from, to, directory, first.URL(), second.URL(), func() {})
	turn, err := talk.Run(t.Context())
	if err != nil || turn.Text() != "Done." || turn.Answer.Model != "second" {
		t.Fatalf("the answer is %q by %q, %v", turn.Text(), turn.Answer.Model, err)
	}
	paid, err := os.ReadFile(filepath.Join(directory, "paid"))
	if err != nil || string(paid) != "paid\n" {
		t.Errorf("it was paid %q, %v", paid, err)
	}
	var kinds []string
	for _, c := range talk.History() {
		kinds = append(kinds, string(c.Kind()))
		if said, ok := c.(canister.Assistant); ok && said.Model != "second" {
			t.Errorf("a message is by %q", said.Model)
		}
		if result, ok := c.(canister.Result); ok && (result.Code == string(invoker.OutcomeUnknown)) != inCall {
			t.Errorf("the result has the code %q", result.Code)
		}
	}
	if got, want := strings.Join(kinds, " "), "user assistant invocation intent result assistant"; got != want {
		t.Errorf("the history is %s, want %s", got, want)
	}
	if faults := append(first.Faults(), second.Faults()...); len(faults) > 0 {
		t.Errorf("refused: %q", faults)
	}
}

// After the server has run a tool, neither it nor another model is asked for the same answer.
func TestToolsOfTheServerRunOnce(t *testing.T) {
	begin := sse(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],"usage":{}}}`) +
		sse(`{"type":"content_block_start","index":0,"content_block":{"type":"mcp_tool_use","id":"mcp_1","name":"open_ticket","server_name":"desk","input":{}}}`)
	result := `{"type":"mcp_tool_result","tool_use_id":"mcp_1","is_error":false,"content":[]}`
	paused := begin + sse(`{"type":"content_block_start","index":1,"content_block":`+result+`}`) +
		sse(`{"type":"message_delta","delta":{"stop_reason":"pause_turn"}}`) + sse(`{"type":"message_stop"}`)
	whole := `{"type":"message","role":"assistant","model":"x","stop_reason":"pause_turn","content":[` +
		`{"type":"mcp_tool_use","id":"mcp_1","name":"open_ticket","server_name":"desk","input":{}},` + result + `]}`
	overloaded := openaiserver.Failure{Status: 529, Message: "Overloaded"}
	for name, test := range map[string]struct {
		replies []openaiserver.Reply
		before  bool // another model has failed before
	}{
		"in a paused answer": {[]openaiserver.Reply{openaiserver.Recording([]byte(paused)), overloaded}, false},
		"in a whole one":     {[]openaiserver.Reply{openaiserver.Recording([]byte(whole)), overloaded}, false},
		"after a fallback":   {[]openaiserver.Reply{cutOff(openaiserver.EndCut, begin)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var steps []openaiserver.Step
			for _, reply := range test.replies {
				steps = append(steps, openaiserver.Step{Reply: reply})
			}
			models := []converse.Model{modelOf(t, "messages", settings{url: startServer(t, steps...).URL()})}
			if test.before {
				models = slices.Insert(models, 0, modelOf(t, "messages", settings{url: startServer(t, openaiserver.Step{Reply: overloaded}).URL()}))
			}
			var asked spare
			_, _, err := run(t.Context(), converse.Chain(append(models, &asked)...), request(user("u", "Open a ticket.")))
			failed, ok := errors.AsType[*converse.ModelError](err)
			if !ok || failed.Retryable || failed.Ran != "open_ticket" || failed.Unavailable() || asked > 0 {
				t.Errorf("%d more exchanges, %+v", asked, failed)
			}
		})
	}
}

// A chain is a model like any other, also if its first model is always unavailable.
func TestChainPassesSuite(t *testing.T) {
	unpaid := openaiserver.Failure{Status: 402}
	conversetest.TestModel(t, func(t *testing.T, lines []conversetest.Line) conversetest.Harness {
		h := newHarness(t, lines, anthropicmodel.Options{})
		server, err := openaiserver.Start(openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{{Reply: unpaid}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { server.Close() })
		h.Model = converse.Chain(converse.Chain(modelOf(t, "responses", settings{url: server.URL()}), h.Model))
		return h
	})
}
