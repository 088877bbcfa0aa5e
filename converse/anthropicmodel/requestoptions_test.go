// SPDX-License-Identifier: Apache-2.0

package anthropicmodel_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/anthropicmodel"
	"github.com/tidwall/gjson"
)

// cloudServer answers like Amazon Bedrock (InvokeModelWithResponseStream): the model is in
// the path and not in the body, and each event is base64 in a frame. The frames are lines
// here. The first request finds it overloaded.
func cloudServer(t *testing.T) (base string, calls *int) {
	calls = new(int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*calls++
		switch {
		case r.URL.Path != "/model/anthropic.claude/invoke-with-response-stream", gjson.GetBytes(body, "model").Exists(),
			gjson.GetBytes(body, "anthropic_version").Str == "", r.Header.Get("Authorization") != "signed", r.Header.Get("X-Api-Key") != "":
			t.Errorf("%s %v: %s", r.URL.Path, r.Header, body)
			http.Error(w, `{"message":"ValidationException"}`, http.StatusBadRequest)
			return
		case *calls == 1:
			http.Error(w, `{"message":"Too many requests"}`, http.StatusTooManyRequests)
			return
		}
		w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
		for _, event := range []string{
			`{"type":"message_start","message":{"model":"claude"}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Rain."}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}`, `{"type":"message_stop"}`,
		} {
			fmt.Fprintln(w, base64.StdEncoding.EncodeToString([]byte(event)))
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, calls
}

// toCloud adapts requests and answers, as the options of the SDK's package bedrock do.
func toCloud(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body.Close()
	r.URL.Path = "/model/" + gjson.GetBytes(body, "model").Str + "/invoke-with-response-stream"
	members := map[string]any{}
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, err
	}
	delete(members, "model")
	delete(members, "stream")
	members["anthropic_version"] = "bedrock-2023-05-31"
	body, _ = json.Marshal(members) // it was JSON
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(string(body))), int64(len(body))
	r.Header.Set("Authorization", "signed")
	res, err := next(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		res.Body = io.NopCloser(strings.NewReader(`{"type":"error","error":{"type":"rate_limit_error","message":"slower, please"}}`))
		return res, nil
	}
	var events strings.Builder
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		data, _ := base64.StdEncoding.DecodeString(lines.Text())
		fmt.Fprintf(&events, "event: %s\ndata: %s\n\n", gjson.GetBytes(data, "type").Str, data)
	}
	res.Body.Close()
	res.Body = io.NopCloser(strings.NewReader(events.String()))
	return res, nil
}

// An option of the SDK that fails, as one without credentials does, ends the exchange.
func TestRequestOptionsThatFail(t *testing.T) {
	base, calls := cloudServer(t)
	model := newModel(t, "anthropic.claude", base, anthropicmodel.Options{RequestOptions: []option.RequestOption{option.WithBaseURL(":")}})
	if _, _, err := run(t.Context(), model, request(user("u", "Weather?"))); err == nil || *calls != 0 {
		t.Errorf("%v after %d calls", err, *calls)
	}
}

// TestRequestOptions: the SDK's options for a cloud see requests in Anthropic's form, and
// what they make of an answer is read like any other.
func TestRequestOptions(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-elsewhere")
	base, calls := cloudServer(t)
	options := anthropicmodel.Options{RequestOptions: []option.RequestOption{option.WithMiddleware(toCloud)}}
	if _, err := anthropicmodel.New("anthropic.claude", &options); err == nil || !strings.Contains(err.Error(), "BaseURL is not set") {
		t.Errorf("without a BaseURL: %v", err)
	}
	model := newModel(t, "anthropic.claude", base, options).Bind()
	retries := 0
	var reply converse.Reply
	for event, err := range model.Exchange(t.Context(), request(user("u", "Weather?"))) {
		if err != nil {
			t.Fatal(err)
		}
		switch event := event.(type) {
		case converse.Retry:
			if retries++; !strings.Contains(event.Err.Error(), "slower, please") {
				t.Errorf("the error is not the adapted one: %v", event.Err)
			}
		case converse.Reply:
			reply = event
		}
	}
	text, _ := json.Marshal(reply.Message.Content)
	if retries != 1 || *calls != 2 || !strings.Contains(string(text), "Rain.") {
		t.Errorf("%d retries, %d calls, %s", retries, *calls, text)
	}
}
