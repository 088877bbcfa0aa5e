// SPDX-License-Identifier: Apache-2.0

package openaimodel_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/internal/testing/modeltest"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

func head(id string) canister.Head { return canister.Head{ID: id} }

// catch returns a server that keeps the last body, and where it is kept.
func catch(t testing.TB) (url string, body *[]byte) {
	body = new([]byte)
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		*body, _ = io.ReadAll(r.Body)
		io.WriteString(w, hello)
	})
	return server.URL, body
}

// messages returns the messages that a history is sent as.
func messages(t *testing.T, options openaimodel.Options, history ...canister.Canister) string {
	t.Helper()
	url, body := catch(t)
	if got := modeltest.Run(t.Context(), newModel(t, url, options), newRequest(history...)); got.Err != nil {
		t.Fatal(got.Err)
	}
	var request struct{ Messages json.RawMessage }
	if err := json.Unmarshal(*body, &request); err != nil {
		t.Fatalf("%v: %s", err, *body)
	}
	return string(request.Messages)
}

func TestMessages(t *testing.T) {
	png := canister.ImageContent{Data: []byte("\x89PNG\r\n\x1a\n"), MIME: "image/png"}
	wav := canister.AudioContent{Data: []byte("WAV"), MIME: "audio/x-wav"}
	for _, test := range []struct {
		name    string
		options openaimodel.Options
		history []canister.Canister
		want    string
	}{
		{
			name: "texts",
			history: []canister.Canister{
				canister.Supervisor{Head: head("s"), Content: canister.Texts("Be", "brief.")},
				canister.User{Head: head("u"), Content: canister.Texts("\"<&>\"\x01\xff\u2028é")},
			},
			want: `[{"role":"system","content":"Be\nbrief."},{"role":"user","content":"\"<&>\"\u0001\ufffd` + "\u2028é" + `"}]`,
		},
		{
			name:    "developer",
			options: openaimodel.Options{SupervisorRole: "developer"},
			history: []canister.Canister{canister.Supervisor{Head: head("s"), Content: []canister.Content{png}}},
			want:    `[{"role":"developer","content":"[image/png, 8 bytes, omitted: such a message can only have text]"}]`,
		},
		{
			name: "user with everything",
			history: []canister.Canister{canister.User{Head: head("u"), Content: []canister.Content{
				canister.Text("Look:"), png, canister.ImageContent{URL: "https://x/y.png"},
				canister.ImageContent{Data: make([]byte, 12<<10), MIME: "image/tiff"}, wav,
				canister.ResourceContent{URI: "file:///a", MIME: "text/plain", Text: "words"},
				canister.ResourceContent{URI: "file:///b", MIME: "image/gif", Blob: []byte("GIF89a")},
				canister.ResourceContent{URI: "file:///c", Blob: []byte{}},
				canister.LinkContent{URI: "file:///d", Name: "d", Size: new(int64(3))},
				canister.StructuredContent{JSON: json.RawMessage(`{"a":1}`)},
			}}},
			want: `[{"role":"user","content":[{"type":"text","text":"Look:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}},` +
				`{"type":"image_url","image_url":{"url":"https://x/y.png"}},` +
				`{"type":"text","text":"[image/tiff, 12 KiB, omitted: the model's API cannot carry it]"},` +
				`{"type":"text","text":"[audio/x-wav, 3 bytes, omitted: the model cannot hear]"},` +
				`{"type":"text","text":"[resource file:///a, text/plain]\nwords"},` +
				`{"type":"text","text":"[resource file:///b]"},{"type":"image_url","image_url":{"url":"data:image/gif;base64,R0lGODlh"}},` +
				`{"type":"text","text":"[resource file:///c: data of unknown type, 0 bytes, omitted: the model's API cannot carry it]"},` +
				`{"type":"text","text":"[link file:///d, d, 3 bytes]"},{"type":"text","text":"{\"a\":1}"}]}]`,
		},
		{
			name:    "ears and no eyes",
			options: openaimodel.Options{Audio: true, NoImages: true},
			history: []canister.Canister{canister.User{
				Head: head("u"), Content: []canister.Content{png, wav, canister.ImageContent{URL: "data:image/png;base64,AAAA"}},
			}},
			want: `[{"role":"user","content":[{"type":"text","text":"[image/png, 8 bytes, omitted: the model cannot see]"},` +
				`{"type":"input_audio","input_audio":{"data":"V0FW","format":"wav"}},{"type":"text","text":"[image/png, 3 bytes, ` +
				`omitted: the model cannot see]"}]}]`,
		},
		{
			name:    "media that servers refuse",
			options: openaimodel.Options{Audio: true},
			history: []canister.Canister{canister.User{Head: head("u"), Content: []canister.Content{
				canister.ImageContent{MIME: "image/png"}, canister.ImageContent{URL: "file:///a.png"},
				canister.ImageContent{URL: "DATA:image/png;base64,AAAA"}, canister.ImageContent{URL: "data:image/png;base64,R0lGODlh"},
				canister.AudioContent{MIME: "audio/wav"},
			}}},
			want: `[{"role":"user","content":[{"type":"text","text":"[image/png, 0 bytes, omitted: the model's API cannot carry it]"},` +
				`{"type":"text","text":"[image file:///a.png, omitted: the model's server cannot fetch it]"},` +
				`{"type":"text","text":"[image/png, 3 bytes, omitted: its data is not an image]"},{"type":"image_url",` +
				`"image_url":{"url":"data:image/gif;base64,R0lGODlh"}},` +
				`{"type":"text","text":"[audio/wav, 0 bytes, omitted: the model's API cannot carry it]"}]}]`,
		},
		{
			name:    "document",
			history: []canister.Canister{canister.Document{Head: head("d"), Title: `A "b"`, URI: "file:///a", Content: canister.Texts("Words.")}},
			want:    `[{"role":"user","content":"<document title=\"A 'b'\" uri=\"file:///a\">\nWords.\n</document>"}]`,
		},
		{
			name: "calls",
			history: []canister.Canister{
				canister.Assistant{Head: head("a")},
				canister.Invocation{Head: head("i1"), Message: "a", CallID: "c1", Name: "f", Arguments: `{"x": 1}`},
				canister.Invocation{Head: head("i2"), Message: "a", CallID: "c2", Name: "functions.g h", Arguments: `{"x":`},
				canister.Invocation{Head: head("i3"), Message: "a", CallID: "c3", Arguments: ``},
				canister.Result{Head: head("r1"), Invocation: "i1", Content: canister.Texts("one")},
				canister.Result{Head: head("r2"), Invocation: "i2", Content: []canister.Content{
					canister.Text("{ \"b\": 2,\n \"a\": 1 }"), canister.StructuredContent{JSON: json.RawMessage(`{"a":1,"b":2}`)},
				}},
				canister.Result{Head: head("r3"), Invocation: "i3", Code: "TIMEOUT"},
				canister.Assistant{Head: head("b"), Content: canister.Texts("Done.")},
				canister.User{Head: head("u"), Content: canister.Texts("Thanks.")},
			},
			want: `[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}},` +
				`{"id":"c2","type":"function","function":{"name":"functions_g_h","arguments":"{\"malformed_arguments\":\"{\\\"x\\\":\"}"}},` +
				`{"id":"c3","type":"function","function":{"name":"unnamed","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"c1","content":"one"},` +
				`{"role":"tool","tool_call_id":"c2","content":"{ \"b\": 2,\n \"a\": 1 }"},` +
				`{"role":"tool","tool_call_id":"c3","content":"[the call failed without an explanation: TIMEOUT]"},` +
				`{"role":"assistant","content":"Done."},{"role":"user","content":"Thanks."}]`,
		},
		{
			name: "nothing said",
			history: []canister.Canister{
				canister.Supervisor{Head: head("s")}, canister.User{Head: head("u"), Content: canister.Texts("")},
				canister.Assistant{Head: head("a"), Finish: canister.FinishLength},
			},
			want: `[{"role":"system","content":"[empty]"},{"role":"user","content":"[empty]"},{"role":"assistant","content":"[empty]"}]`,
		},
		{
			name: "images in results",
			history: []canister.Canister{
				canister.Assistant{Head: head("a"), Content: canister.Texts("Let me look.")},
				canister.Invocation{Head: head("i1"), Message: "a", CallID: "c1", Name: "f", Arguments: `{}`},
				canister.Invocation{Head: head("i2"), Message: "a", CallID: "c2", Name: "g", Arguments: `{}`},
				canister.Result{
					Head: head("r1"), Invocation: "i1",
					Content: []canister.Content{canister.Text("Here:"), png, canister.StructuredContent{JSON: json.RawMessage(`{"n":1}`)}},
				},
				canister.Result{Head: head("r2"), Invocation: "i2"},
			},
			want: `[{"role":"assistant","content":"Let me look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"f",` +
				`"arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"g","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"c1","content":"Here:\n[image 1 of the result of call c1 (f) follows in the next user message]\n{\"n\":1}"},` +
				`{"role":"tool","tool_call_id":"c2","content":"[the tool succeeded and returned nothing]"},` +
				`{"role":"user","content":[{"type":"text","text":"[image 1 of the result of call c1 (f)]"},{"type":"image_url",` +
				`"image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}]`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := messages(t, test.options, test.history...); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestExtraContentGoesBack: what a server wants to see again it does, and no
// other server.
func TestExtraContentGoesBack(t *testing.T) {
	server := start(t, openaiserver.Script{}, nil)
	got := modeltest.Run(t.Context(), newModel(t, openaiserver.OddityURL(server.URL(), "thought-signature"), openaimodel.Options{}), newRequest())
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	call := got.Reply.Invocations[0]
	history := []canister.Canister{got.Reply.Message, call, canister.Result{Head: head("r"), Invocation: call.ID, Content: canister.Texts("x")}}
	const signature = `"extra_content":{"google":{"thought_signature":"c2lnbmF0dXJl"}}`

	modeltest.Run(t.Context(), newModel(t, server.URL(), openaimodel.Options{MaxRetries: -1}), newRequest(history...))
	requests := server.Requests()
	if body := requests[len(requests)-1].Body; !strings.Contains(string(body), signature) {
		t.Errorf("its own server gets %s", body)
	}
	if elsewhere := messages(t, openaimodel.Options{}, history...); strings.Contains(elsewhere, "extra_content") {
		t.Errorf("another server gets %s", elsewhere)
	}
}

// TestReasoningGoesBack: DeepSeek and Kimi answer 400 to a history whose
// messages have lost their reasoning_content. Others are not sent it, nor is
// reasoning that comes under another name.
func TestReasoningGoesBack(t *testing.T) {
	for name, field := range map[string]string{"needed": "reasoning_content", "not needed": "reasoning"} {
		for _, form := range []string{
			"data: {\"choices\":[{\"delta\":{\"%[1]s\":\"Look <up>\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"%[1]s\":\" \\\"it\\\".\"},\"finish_reason\":\"stop\"}]}\n\n",
			`{"choices":[{"message":{"%s":"Look <up> \"it\"."},"finish_reason":"stop"}]}`,
		} {
			var body []byte
			server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				body, _ = io.ReadAll(r.Body)
				fmt.Fprintf(w, form, field)
			})
			model := newModel(t, server.URL, openaimodel.Options{})
			got := modeltest.Run(t.Context(), model, newRequest())
			if got.Err != nil || got.Reasoning != `Look <up> "it".` {
				t.Fatal(got.Err, got.Reasoning)
			}
			modeltest.Run(t.Context(), model, newRequest(got.Reply.Message))
			var sent struct{ Messages []map[string]string }
			if err := json.Unmarshal(body, &sent); err != nil {
				t.Fatal(err)
			}
			want := ""
			if field == "reasoning_content" {
				want = got.Reasoning
			}
			if sent.Messages[0]["reasoning_content"] != want {
				t.Errorf("%s: sends %s", name, body)
			}
			if elsewhere := messages(t, openaimodel.Options{}, got.Reply.Message); strings.Contains(elsewhere, "Look") {
				t.Errorf("%s: another server gets %s", name, elsewhere)
			}
		}
	}
}

// conversation returns a history of n turns, each with parallel calls and every
// kind of content, and where each exchange ends.
func conversation(r *rand.Rand, n int) (history []canister.Canister, ends []int) {
	text := func() []canister.Content {
		contents := []canister.Content{canister.Text(strings.Repeat(fmt.Sprintf("word %d \"quoted\" é ", r.IntN(100)), 1+r.IntN(30)))}
		if r.IntN(3) == 0 {
			contents = append(contents, canister.ImageContent{Data: make([]byte, r.IntN(100)), MIME: "image/png"})
		}
		return contents
	}
	id := 0
	next := func() canister.Head { id++; return head(fmt.Sprint("c", id)) }
	for range n {
		history = append(history, canister.User{Head: next(), Content: text()})
		for range r.IntN(3) {
			ends = append(ends, len(history))
			message := canister.Assistant{Head: next(), Content: canister.Texts("Calling.")}
			history = append(history, message)
			var calls []canister.Invocation
			for range 1 + r.IntN(3) {
				call := canister.Invocation{Head: next(), Message: message.ID, Name: "f", Arguments: `{"x":1}`}
				call.CallID = "call_" + call.ID
				calls = append(calls, call)
				history = append(history, call)
			}
			for _, call := range calls {
				history = append(history, canister.Result{Head: next(), Invocation: call.ID, Content: text()})
			}
		}
		ends = append(ends, len(history))
		history = append(history, canister.Assistant{Head: next(), Content: canister.Texts("Answer.")})
	}
	return history, ends
}

// TestBoundSendsTheSame: whatever a bound model was asked before, the bytes of
// a request are those of the model itself.
func TestBoundSendsTheSame(t *testing.T) {
	url, body := catch(t)
	model := newModel(t, url, openaimodel.Options{})
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		history, ends := conversation(r, 6)
		other, _ := conversation(r, 2)
		for i, c := range other { // the same kinds of canisters under other names
			other[i] = canister.WithHead(c, head("other-"+c.Header().ID))
		}
		bound := model.Bind()
		order := slices.Clone(ends)
		if seed%2 == 1 {
			r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		for _, end := range order {
			histories := [][]canister.Canister{history[:end]}
			if r.IntN(4) == 0 {
				histories = append(histories, other[:1], history[:end])
			}
			for _, h := range histories {
				request := newRequest(h...)
				request.NoInvocations = r.IntN(2) == 0
				request.Tools = toolsets[r.IntN(len(toolsets))]
				if got := modeltest.Run(t.Context(), bound, request); got.Err != nil {
					t.Fatal(got.Err)
				}
				sent := string(*body)
				if got := modeltest.Run(t.Context(), model, request); got.Err != nil {
					t.Fatal(got.Err)
				}
				if sent != string(*body) {
					t.Fatalf("seed %d: bound sends %s\nmodel sends %s", seed, sent, *body)
				}
				if !json.Valid(*body) {
					t.Fatalf("%s", *body)
				}
			}
		}
	}
}

// TestEarlyAnswer: a transport may read a request after it has returned the
// answer, until it closes the body (see http.RoundTripper). What is written for
// the next request must not get into this one's.
func TestEarlyAnswer(t *testing.T) {
	var late []io.ReadCloser // the bodies of all requests, unread
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		late = append(late, r.Body)
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(hello)), Request: r}, nil
	})}
	url, body := catch(t)
	plain := newModel(t, url, openaimodel.Options{})
	bound := newModel(t, url, openaimodel.Options{HTTPClient: client}).Bind()
	var history []canister.Canister
	var want []string
	for i := range 5 {
		history = append(history, canister.User{Head: head(fmt.Sprint("u", i)), Content: canister.Texts("more")})
		for _, model := range []converse.Model{bound, plain} {
			if got := modeltest.Run(t.Context(), model, newRequest(history...)); got.Err != nil {
				t.Fatal(got.Err)
			}
		}
		want = append(want, string(*body))
		if i == 2 { // from here on some are read and closed, and some are not
			late[0].Close()
			late[0] = nil
		}
	}
	for i, body := range late {
		if body == nil {
			continue
		}
		if got, err := io.ReadAll(body); err != nil || string(got) != want[i] {
			t.Errorf("request %d: %v\ngot  %s\nwant %s", i, err, got, want[i])
		}
		body.Close()
	}
}

// TestEarlyRefusal: a server that answers before it has read the request, and
// hangs up, gets each request whole when it is tried again.
func TestEarlyRefusal(t *testing.T) {
	bodies := make(chan string, 1)
	server := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n%2 == 0 {
			body, _ := io.ReadAll(r.Body)
			bodies <- string(body)
			io.WriteString(w, hello)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(conn, "HTTP/1.1 503 Busy\r\nRetry-After-Ms: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
		conn.Close()
	})
	bound := newModel(t, server.URL, openaimodel.Options{}).Bind()
	url, body := catch(t)
	plain := newModel(t, url, openaimodel.Options{})
	var history []canister.Canister
	for i := range 4 {
		text := strings.Repeat(fmt.Sprint("more ", i, " "), 200_000)
		history = append(history, canister.User{Head: head(fmt.Sprint("u", i)), Content: canister.Texts(text)})
		got := modeltest.Run(t.Context(), bound, newRequest(history...))
		if got.Err != nil || len(got.Retries) != 1 {
			t.Fatalf("%v, %d retries", got.Err, len(got.Retries))
		}
		modeltest.Run(t.Context(), plain, newRequest(history...))
		if sent := <-bodies; sent != string(*body) {
			t.Fatalf("request %d has %d bytes, want %d", i, len(sent), len(*body))
		}
	}
}

var toolsets = []*converse.Toolset{{}, tools("f"), tools("f", "g"), nil}
