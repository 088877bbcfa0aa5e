// SPDX-License-Identifier: Apache-2.0

package openaiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/testing/openaiserver"
)

const offer = `"tools":[{"type":"function","function":{"name":"files__read","parameters":{"type":"object","properties":{}}}}]`

// completion is what the tests read of an answer that is not streamed.
type completion struct {
	ID, Object, Model string
	Created           int64
	Choices           []struct {
		Message struct {
			Role             string
			Content, Refusal *string
			ReasoningContent string `json:"reasoning_content"`
			ToolCalls        []struct {
				ID, Type string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		FinishReason string `json:"finish_reason"`
	}
	Usage openaiserver.Usage
}

func complete(t *testing.T, base, body string) completion {
	t.Helper()
	status, _, got, err := post(t, base, body)
	if status != 200 || err != nil {
		t.Fatalf("status %d, error %v: %s", status, err, got)
	}
	var c completion
	if err := json.Unmarshal([]byte(got), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWholeAnswer(t *testing.T) {
	server := start(t, nil,
		openaiserver.Step{Reply: openaiserver.Message{Calls: []openaiserver.Call{
			{Name: "files__read", Arguments: `{"path":"a"}`}, {ID: "mine", Name: "time__now"},
		}}},
		openaiserver.Step{Reply: openaiserver.Message{
			Text: "<done> \x00", Reasoning: "hm", Usage: &openaiserver.Usage{PromptTokens: 5, CompletionTokens: 2},
		}},
		openaiserver.Step{Reply: openaiserver.Message{Refusal: "no", Finish: "content_filter"}},
	)
	first := complete(t, server.URL(), request(userMessage, offer))
	if first.Object != "chat.completion" || first.Model != "m" || first.ID == "" || first.Created == 0 {
		t.Errorf("head: %+v", first)
	}
	choice := first.Choices[0]
	if choice.Message.Content != nil || choice.FinishReason != "tool_calls" || len(choice.Message.ToolCalls) != 2 {
		t.Errorf("choice: %+v", choice)
	}
	if c := choice.Message.ToolCalls[0]; c.ID != "call_0_0" || c.Type != "function" || c.Function.Arguments != `{"path":"a"}` {
		t.Errorf("first call: %+v", c)
	}
	if c := choice.Message.ToolCalls[1]; c.ID != "mine" || c.Function.Name != "time__now" || c.Function.Arguments != "{}" {
		t.Errorf("second call: %+v", c)
	}
	if u := first.Usage; u.PromptTokens == 0 || u.CompletionTokens == 0 || u.TotalTokens != u.PromptTokens+u.CompletionTokens {
		t.Errorf("estimated usage: %+v", u)
	}
	second := complete(t, server.URL(), request(userMessage+`,{"role":"assistant","content":"x"}`, ""))
	if m := second.Choices[0].Message; *m.Content != "<done> \x00" || m.ReasoningContent != "hm" || second.Choices[0].FinishReason != "stop" {
		t.Errorf("second answer: %+v", m)
	}
	if want := (openaiserver.Usage{PromptTokens: 5, CompletionTokens: 2, TotalTokens: 7}); second.Usage.TotalTokens != want.TotalTokens {
		t.Errorf("usage: %+v", second.Usage)
	}
	two := `,{"role":"assistant","content":"x"},{"role":"assistant","content":"y"}`
	third := complete(t, server.URL(), request(userMessage+two, ""))
	if m := third.Choices[0].Message; m.Content != nil || *m.Refusal != "no" || third.Choices[0].FinishReason != "content_filter" {
		t.Errorf("third answer: %+v", third)
	}
}

func TestStream(t *testing.T) {
	for _, pace := range []time.Duration{0, -1, time.Microsecond} {
		for _, delta := range []int{0, 1, 3, -1} {
			t.Run(fmt.Sprintf("pace %v delta %d", pace, delta), func(t *testing.T) {
				server := start(t, nil, openaiserver.Step{Reply: openaiserver.Message{
					Text: "Grüße, 世界", Reasoning: "think", Pace: pace, Delta: delta,
					Calls: []openaiserver.Call{{ID: "a", Name: "x", Arguments: `{"é":1}`}, {Name: "y"}},
				}})
				status, header, body, err := post(t, server.URL(), request(userMessage, `"stream":true,"stream_options":{"include_usage":true}`))
				if status != 200 || err != nil || !strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
					t.Fatalf("status %d, header %v, error %v", status, header, err)
				}
				got := assemble([]byte(body))
				want := openaiserver.Want{
					Text: "Grüße, 世界", Reasoning: "think", Finish: "tool_calls",
					Calls: []openaiserver.WantCall{{ID: "a", Name: "x", Arguments: `{"é":1}`}, {ID: "call_0_1", Name: "y", Arguments: "{}"}},
				}
				if got.Usage == nil || got.Usage.TotalTokens == 0 {
					t.Error("no usage")
				}
				got.Usage = nil
				if diff := differ(want, got, true); diff != "" {
					t.Error(diff)
				}
				if !strings.HasSuffix(body, "data: [DONE]\n\n") {
					t.Error("no [DONE]")
				}
				if events := strings.Count(body, "data: {"); delta == 1 && events < 9+5+7+2+4 {
					t.Errorf("%d events for deltas of one character", events)
				}
			})
		}
	}
}

func TestStreamWithoutUsage(t *testing.T) {
	server := start(t, nil, say("x"))
	if _, _, body, _ := post(t, server.URL(), request(userMessage, `"stream":true`)); strings.Contains(body, "usage") {
		t.Errorf("usage that nobody asked for: %s", body)
	}
}

func TestExpect(t *testing.T) {
	history := userMessage +
		`,{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"x","arguments":"{}"}}]},{"role":"tool",` +
		`"tool_call_id":"c","content":"rain"}`
	tests := []struct {
		name   string
		expect openaiserver.Expect
		want   string // in the error; empty means that the request fits
	}{
		{"nothing", openaiserver.Expect{}, ""},
		{"all", openaiserver.Expect{Model: "m", LastRole: "tool", Contains: []string{"rain"}, ToolMessages: 1, Offers: []string{"files__read"}}, ""},
		{"model", openaiserver.Expect{Model: "gpt"}, `expected the model "gpt", got "m"`},
		{"role", openaiserver.Expect{LastRole: "user"}, `expected the last message to have the role "user", got "tool"`},
		{"text", openaiserver.Expect{Contains: []string{"sun"}}, `expected "sun" in the new messages, got "rain"`},
		{"old text", openaiserver.Expect{Contains: []string{"hi"}}, `expected "hi"`},
		{"tools", openaiserver.Expect{ToolMessages: 2}, "expected 2 tool messages at the end, got 1"},
		{"offers", openaiserver.Expect{Offers: []string{"nope"}}, `expected the tool "nope" to be offered, got files__read`},
		{"no tools", openaiserver.Expect{NoTools: true}, "expected no tools, got files__read"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := start(t, nil, say("zero"), openaiserver.Step{Expect: test.expect, Reply: openaiserver.Message{Text: "ok"}})
			status, _, body, _ := post(t, server.URL(), request(history, offer))
			if test.want == "" {
				if status != 200 || len(server.Faults()) != 0 {
					t.Fatalf("status %d, faults %v: %s", status, server.Faults(), body)
				}
				return
			}
			message, kind, _, code := errorOf(t, body)
			if status != 400 || !strings.Contains(message, test.want) || !strings.Contains(message, "step 1") ||
				kind != "invalid_request_error" || code != "script_departed" {
				t.Errorf("status %d: %s", status, body)
			}
			if faults := server.Faults(); len(faults) != 1 || faults[0] != message {
				t.Errorf("faults %q", faults)
			}
		})
	}
}

func TestScriptEndsAndRepeats(t *testing.T) {
	said := request(userMessage+`,{"role":"assistant","content":"x"},`+userMessage, "")
	server := start(t, nil, say("only"))
	if status, _, body, _ := post(t, server.URL(), said); status != 400 || !strings.Contains(body, "the script ends after 1 steps") {
		t.Errorf("status %d: %s", status, body)
	}
	again, err := openaiserver.Start(openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{
		{Reply: openaiserver.Message{Calls: []openaiserver.Call{{Name: "x"}}}},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if id := complete(t, again.URL(), said).Choices[0].Message.ToolCalls[0].ID; id != "call_1_0" {
		t.Errorf("the id %q is not made from the position", id)
	}
}

func TestEmptyScriptAnswersEverything400(t *testing.T) {
	for _, script := range []openaiserver.Script{{}, {Repeat: true}, {Steps: []openaiserver.Step{{}}},
		{Steps: []openaiserver.Step{{Reply: openaiserver.Respond(nil)}}},
		{Steps: []openaiserver.Step{{Reply: openaiserver.Respond(func(*openaiserver.Request) openaiserver.Reply { return nil })}}}} {
		server := httptest.NewServer(openaiserver.New(script, nil))
		if status, _, body, _ := post(t, server.URL+"/v1", request(userMessage, "")); status != 400 {
			t.Errorf("status %d: %s", status, body)
		}
		server.Close()
	}
}

func TestBeforeAndFailures(t *testing.T) {
	server := start(t, nil, openaiserver.Step{
		Before: []openaiserver.Reply{
			openaiserver.RateLimited(1500 * time.Millisecond), openaiserver.RateLimited(0), openaiserver.ServerError(), openaiserver.Unauthorized(),
			openaiserver.ContextLength(), openaiserver.Failure{Status: 503, Header: http.Header{"x-should-retry": {"false"}}},
		},
		Reply: openaiserver.Message{Text: "at last"},
	})
	tests := []struct {
		status                 int
		kind, code, key, value string
	}{
		{429, "requests", "rate_limit_exceeded", "Retry-After", "2"},
		{429, "requests", "rate_limit_exceeded", "Retry-After", ""},
		{500, "server_error", "", "Content-Type", "application/json"},
		{401, "invalid_request_error", "invalid_api_key", "", ""},
		{400, "invalid_request_error", "context_length_exceeded", "", ""},
		{503, "server_error", "", "X-Should-Retry", "false"},
	}
	ids := map[string]bool{}
	for _, test := range tests {
		status, header, body, _ := post(t, server.URL(), request(userMessage, ""))
		message, kind, _, code := errorOf(t, body)
		if status != test.status || kind != test.kind || code != test.code || message == "" {
			t.Errorf("status %d: %s", status, body)
		}
		if test.key != "" && header.Get(test.key) != test.value {
			t.Errorf("%d: %s is %q", status, test.key, header.Get(test.key))
		}
		ids[header.Get("X-Request-Id")] = true
	}
	if got := *complete(t, server.URL(), request(userMessage, "")).Choices[0].Message.Content; got != "at last" {
		t.Errorf("after the failures: %q", got)
	}
	if ids[""] || len(ids) != len(tests) {
		t.Errorf("request ids: %v", ids)
	}
	if faults := server.Faults(); faults != nil {
		t.Errorf("scripted failures are no faults: %q", faults)
	}
}

func TestDoors(t *testing.T) {
	server := start(t, &openaiserver.Options{APIKey: "right", MaxBody: 200}, say("in"))
	tests := []struct {
		name, method, path, key, kind, body string
		status                              int
	}{
		{"right", "POST", "/v1/chat/completions", "right", "application/json", request(userMessage, ""), 200},
		{"charset", "POST", "/v1/chat/completions", "right", "application/json; charset=utf-8", request(userMessage, ""), 200},
		{"wrong key", "POST", "/v1/chat/completions", "wrong", "application/json", request(userMessage, ""), 401},
		{"no key", "POST", "/v1/chat/completions", "", "application/json", request(userMessage, ""), 401},
		{"path", "POST", "/v1/embeddings", "right", "application/json", "{}", 404},
		{"method", "GET", "/v1/chat/completions", "right", "", "", 405},
		{"type", "POST", "/v1/chat/completions", "right", "text/plain", request(userMessage, ""), 415},
		{"size", "POST", "/v1/chat/completions", "right", "application/json", request(userMessage, `"x":"`+strings.Repeat("x", 200)+`"`), 413},
		{"oddity", "POST", "/oddity/refusal/v1/chat/completions", "right", "application/json", request(userMessage, ""), 200},
		{"no oddity", "POST", "/oddity/nope/v1/chat/completions", "right", "application/json", request(userMessage, ""), 400},
		{"half oddity", "POST", "/oddity/refusal", "right", "application/json", request(userMessage, ""), 404},
	}
	host := strings.TrimSuffix(server.URL(), "/v1")
	faults := 0
	for _, test := range tests {
		if test.status != 200 {
			faults++
		}
		t.Run(test.name, func(t *testing.T) {
			r, _ := http.NewRequestWithContext(t.Context(), test.method, host+test.path, strings.NewReader(test.body))
			r.Header.Set("Content-Type", test.kind)
			if test.key != "" {
				r.Header.Set("Authorization", "Bearer "+test.key)
			}
			response, err := client(t).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, _ := io.ReadAll(response.Body)
			if response.StatusCode != test.status || response.Header.Get("X-Request-Id") == "" {
				t.Errorf("status %d, header %v: %s", response.StatusCode, response.Header, body)
			}
			if test.status != 200 {
				errorOf(t, string(body))
			}
			if got := len(server.Faults()); got != faults {
				t.Errorf("%d faults, want %d", got, faults)
			}
		})
	}
}

func TestRespond(t *testing.T) {
	server := start(t, nil, openaiserver.Step{Reply: openaiserver.Respond(func(r *openaiserver.Request) openaiserver.Reply {
		return openaiserver.Message{Text: strings.TrimSpace(fmt.Sprintln(r.Model, r.Position, r.Stream, r.ToolNames(),
			r.Messages[0].Text, r.Header.Get("Content-Type")))}
	})})
	parts := `{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:,"}},{"type":"text","text":"b"}]}`
	got := *complete(t, server.URL(), request(parts, offer)).Choices[0].Message.Content
	if want := "m 0 false [files__read] a\nb application/json"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRequestsAreRecorded(t *testing.T) {
	server := start(t, &openaiserver.Options{Record: 2}, say("x"))
	for i := range 3 {
		post(t, server.URL(), request(userMessage, fmt.Sprintf(`"seed":%d`, i)))
	}
	got := server.Requests()
	if len(got) != 2 || string(got[0].Body) != request(userMessage, `"seed":1`) || string(got[1].Body) != request(userMessage, `"seed":2`) {
		t.Fatalf("got %d requests: %+v", len(got), got)
	}
	if r := got[0]; r.Method != "POST" || r.Path != "/v1/chat/completions" || r.Header.Get("Content-Type") != "application/json" || r.Time.IsZero() {
		t.Errorf("recorded: %+v", r)
	}
	off := start(t, &openaiserver.Options{Record: -1}, say("x"))
	post(t, off.URL(), request(userMessage, ""))
	if n := len(off.Requests()); n != 0 {
		t.Errorf("%d requests recorded though turned off", n)
	}
}

// TestManyConversations has conversations at different positions at one time.
func TestManyConversations(t *testing.T) {
	for _, trust := range []bool{false, true} {
		server := start(t, &openaiserver.Options{Trust: trust, Record: -1}, say("answer 0"), say("answer 1"), say("answer 2"))
		c := client(t)
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				messages := userMessage
				for i := range 3 {
					response, err := c.Post(server.URL()+"/chat/completions", "application/json", strings.NewReader(request(messages, "")))
					if err != nil {
						t.Error(err)
						return
					}
					body, _ := io.ReadAll(response.Body)
					response.Body.Close()
					if want := fmt.Sprintf("answer %d", i); !strings.Contains(string(body), want) {
						t.Errorf("trust %v: want %q, got %s", trust, want, body)
					}
					messages += `,{"role":"assistant","content":"\"role\":\"assistant\""},` + userMessage
				}
			})
		}
		group.Wait()
	}
}

func TestTrustStreams(t *testing.T) {
	server := start(t, &openaiserver.Options{Trust: true}, say("hello"))
	_, _, body, _ := post(t, server.URL(), request(userMessage, `"stream":true,"stream_options":{"include_usage":true}`))
	if got := assemble([]byte(body)); got.Text != "hello" || got.Usage == nil {
		t.Errorf("got %+v", got)
	}
}

// TestCloseEndsWaits closes a server in the middle of replies that would last
// for hours.
func TestCloseEndsWaits(t *testing.T) {
	long := 2 * time.Hour
	steps := map[string]openaiserver.Reply{
		"delay":   openaiserver.Message{Text: "x", Delay: long},
		"pace":    openaiserver.Message{Text: "x", Pace: long},
		"failure": openaiserver.Failure{Delay: long},
		"pause":   openaiserver.Replay{Parts: []openaiserver.Part{{Pause: long}}},
		"stall":   openaiserver.Replay{End: openaiserver.EndStall},
		"wire":    openaiserver.Replay{Wire: true, End: openaiserver.EndStall},
	}
	for name, reply := range steps {
		t.Run(name, func(t *testing.T) {
			arrived := make(chan struct{})
			server := start(t, nil, openaiserver.Step{Reply: openaiserver.Respond(func(*openaiserver.Request) openaiserver.Reply {
				close(arrived)
				return reply
			})})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				r, _ := http.NewRequestWithContext(ctx, "POST", server.URL()+"/chat/completions", strings.NewReader(request(userMessage, `"stream":true`)))
				r.Header.Set("Content-Type", "application/json")
				response, err := client(t).Do(r)
				if err == nil {
					_, err = io.ReadAll(response.Body)
					response.Body.Close()
				}
				ended <- err
			}()
			<-arrived
			server.Close()
			server.Close()
			if err := <-ended; err == nil || ctx.Err() != nil {
				t.Errorf("the client ended with %v, the deadline with %v", err, ctx.Err())
			}
		})
	}
}

// TestCloseEndsWaitsWhenMounted has no connection whose loss would end the wait.
func TestCloseEndsWaitsWhenMounted(t *testing.T) {
	arrived, ended := make(chan struct{}), make(chan struct{})
	server := openaiserver.New(openaiserver.Script{Steps: []openaiserver.Step{{
		Reply: openaiserver.Respond(func(*openaiserver.Request) openaiserver.Reply {
			close(arrived)
			return openaiserver.Message{Delay: 2 * time.Hour}
		}),
	}}}, nil)
	go func() {
		defer close(ended)
		serveWith(server, request(userMessage, ""))
	}()
	<-arrived
	server.Close()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the handler still waits")
	}
}

func TestFaultsAreBounded(t *testing.T) {
	server := openaiserver.New(openaiserver.Script{}, nil)
	for range 150 {
		serveWith(server, request(userMessage, ""))
	}
	if n := len(server.Faults()); n != 100 {
		t.Errorf("%d faults", n)
	}
}

func TestRecordedBytesAreBounded(t *testing.T) {
	server := openaiserver.New(openaiserver.Script{Steps: []openaiserver.Step{say("x")}}, &openaiserver.Options{Trust: true})
	body := request(userMessage, `"x":"`+strings.Repeat("x", 24<<20)+`"`)
	for range 3 {
		serveWith(server, body)
	}
	if n := len(server.Requests()); n != 2 {
		t.Errorf("%d requests of 24 MiB kept", n)
	}
}

func TestClosedServerServesNobody(t *testing.T) {
	server := openaiserver.New(openaiserver.Script{}, nil)
	server.Close()
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequest("POST", "/v1/chat/completions", nil))
	if w.Code != 503 {
		t.Errorf("status %d", w.Code)
	}
}

func TestAddrInUse(t *testing.T) {
	first := start(t, nil)
	addr := strings.TrimSuffix(strings.TrimPrefix(first.URL(), "http://"), "/v1")
	if second, err := openaiserver.Start(openaiserver.Script{}, &openaiserver.Options{Addr: addr}); err == nil {
		second.Close()
		t.Error("two servers listen at one address")
	}
}
