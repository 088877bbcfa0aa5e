// SPDX-License-Identifier: Apache-2.0

package modelapi_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/anthropicmodel"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/tidwall/gjson"
)

// reader is a transport to a server that calls the tool read once for each message of the
// user, and refuses requests as refuse says.
type reader struct {
	api    string
	status int // of refusals; 0 for 400
	refuse func(body string) (message string)
	bodies []string
}

// RoundTrip implements [http.RoundTripper].
func (s *reader) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.bodies = append(s.bodies, string(body))
	status, text := 200, s.answer(gjson.GetBytes(body, "messages"), gjson.GetBytes(body, "input"))
	if message := s.refuse(string(body)); message != "" {
		status, text = cmp.Or(s.status, 400), anthropicError("invalid_request_error", message)
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

func (s *reader) answer(messages, input gjson.Result) string {
	last := func(list gjson.Result, path string) string {
		all := list.Array()
		return all[len(all)-1].Get(path).String()
	}
	switch {
	case s.api == "messages" && strings.Contains(last(messages, "content"), "tool_result"):
		return `{"type":"message","role":"assistant","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn"}`
	case s.api == "messages":
		return fmt.Sprintf(`{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"toolu_%d","name":"local__read","input":{}}],"stop_reason":"tool_use"}`, len(s.bodies))
	case s.api == "chat" && last(messages, "content") != "Read.": // images of a result are in a message of the user
		return `{"choices":[{"message":{"role":"assistant","content":"Done."},"finish_reason":"stop"}]}`
	case s.api == "chat":
		return fmt.Sprintf(`{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"c%d","type":"function","function":{"name":"local__read","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, len(s.bodies))
	case last(input, "type") == "function_call_output":
		return `{"object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}]}`
	}
	return fmt.Sprintf(`{"object":"response","status":"completed","output":[{"type":"function_call","call_id":"c%d","name":"local__read","arguments":"{}"}]}`, len(s.bodies))
}

// reading returns a conversation whose tool read returns the next of the contents.
func reading(t *testing.T, server *reader, contents ...canister.Content) *converse.Conversation {
	t.Helper()
	return converse.New(server.model(t), server.roster(t, contents...), nil)
}

// model returns a model of the server.
func (s *reader) model(t *testing.T) (model converse.Model) {
	t.Helper()
	client := &http.Client{Transport: s}
	var err error
	if s.api == "messages" {
		model, err = anthropicmodel.New("m", &anthropicmodel.Options{HTTPClient: client, MaxRetries: -1, NoStream: true})
	} else {
		model, err = openaimodel.New("m", &openaimodel.Options{HTTPClient: client, MaxRetries: -1, API: s.api, NoStream: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// roster returns a roster whose tool read returns the next of the contents.
func (s *reader) roster(t *testing.T, contents ...canister.Content) *ensemble.Roster {
	t.Helper()
	read := 0
	tool, err := invoker.Raw(invoker.Definition{Name: "read", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *invoker.Call) (invoker.Output, error) {
		read++
		return invoker.Output{Content: contents[read-1 : read]}, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	roster, err := ensemble.NewRoster(ensemble.Local("local", tool))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { roster.Close(context.Background()) })
	return roster
}

// send sends a message and returns the bodies of the requests.
func (s *reader) send(t *testing.T, talk *converse.Conversation) []string {
	t.Helper()
	before := len(s.bodies)
	if turn, err := talk.Ask(t.Context(), canister.Text("Read.")); err != nil || turn.Text() != "Done." {
		t.Fatalf("%s: %v, %q", s.api, err, turn.Text())
	}
	return s.bodies[before:]
}

func encoded(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

// TestRefusedMedia: after a server has refused a file or an image, the conversation goes on
// with a line in its place, and with the others.
func TestRefusedMedia(t *testing.T) {
	good, bad := picture(t, "png", 20), picture(t, "png", 30)
	locked := []byte("%PDF-1.4 locked")
	for _, test := range []struct {
		name, says string
		bad        []byte
		content    canister.Content
		apis       []string
	}{
		{
			"a PDF file, with its place", "messages.6.content.0.tool_result.content.1.pdf.source.base64.data: The PDF specified is password protected.", locked,
			canister.ResourceContent{URI: "file:///a.pdf", MIME: "application/pdf", Blob: locked}, []string{"messages"},
		},
		{
			"a PDF file", "Could not process PDF", locked,
			canister.ResourceContent{URI: "file:///a.pdf", MIME: "application/pdf", Blob: locked}, []string{"messages", "responses"},
		},
		{"an image", "Could not process image", bad, canister.ImageContent{Data: bad, MIME: "image/png"}, []string{"messages", "responses", "chat"}},
	} {
		for _, api := range test.apis {
			t.Run(test.name+"/"+api, func(t *testing.T) {
				server := &reader{api: api, refuse: func(body string) string {
					if strings.Contains(body, encoded(test.bad)) {
						return test.says
					}
					return ""
				}}
				talk := reading(t, server, canister.ImageContent{Data: good, MIME: "image/png"}, test.content, canister.Text("words"))
				server.send(t, talk)
				bodies := slices.Concat(server.send(t, talk)[2:], server.send(t, talk))
				if len(bodies) != 3 {
					t.Errorf("%d requests after the refusal, want 3", len(bodies))
				}
				for _, body := range bodies {
					if !strings.Contains(body, encoded(good)) || !strings.Contains(body, "the model's server has refused it") {
						t.Errorf("%s", body)
					}
				}
			})
		}
	}
}

// TestRefusedMediaInALaterTurn: each turn has a conversation of its own, as in an engine. What
// was refused in the first is known in the second, which has a new image.
func TestRefusedMediaInALaterTurn(t *testing.T) {
	bad, good := picture(t, "png", 20), picture(t, "png", 30)
	for _, api := range []string{"messages", "responses", "chat"} {
		server := &reader{api: api, refuse: func(body string) string {
			if strings.Contains(body, encoded(bad)) {
				return "Could not process image"
			}
			return ""
		}}
		log := history.NewMemory()
		var bodies []string
		for _, data := range [][]byte{bad, good} {
			talk := converse.New(server.model(t), server.roster(t, canister.Text("words")), &converse.Options{ID: "talk", Log: log})
			if err := talk.Add(t.Context(), canister.User{Content: []canister.Content{canister.ImageContent{Data: data, MIME: "image/png"}}}); err != nil {
				t.Fatal(err)
			}
			bodies = server.send(t, talk)
		}
		if len(bodies) != 2 || !strings.Contains(bodies[1], encoded(good)) || strings.Contains(bodies[1], encoded(bad)) {
			t.Errorf("%s: %d requests, want 2 with the new image: %.2000s", api, len(bodies), bodies)
		}
	}
}

// An image that the server could not download is sent again in later turns.
func TestMediaNotDownloadedInALaterTurn(t *testing.T) {
	image, away := picture(t, "png", 20), true
	server := &reader{api: "chat", refuse: func(body string) string {
		if away && strings.Contains(body, encoded(image)) {
			return "Timeout while downloading an image"
		}
		return ""
	}}
	log := history.NewMemory()
	var bodies []string
	for _, content := range []canister.Content{canister.ImageContent{Data: image, MIME: "image/png"}, canister.Text("And now?")} {
		talk := converse.New(server.model(t), server.roster(t, canister.Text("words")), &converse.Options{ID: "talk", Log: log})
		if err := talk.Add(t.Context(), canister.User{Content: []canister.Content{content}}); err != nil {
			t.Fatal(err)
		}
		bodies, away = server.send(t, talk), false
	}
	if len(bodies) == 0 || !strings.Contains(bodies[0], encoded(image)) {
		t.Errorf("the image is left out: %.2000s", bodies)
	}
}

// TestTooManyImages: after a server has refused a request for the number of its images, the
// conversation goes on with the newest of them.
func TestTooManyImages(t *testing.T) {
	for _, api := range []string{"messages", "responses", "chat"} {
		server := &reader{api: api, refuse: func(body string) string {
			if n := strings.Count(body, "iVBOR"); n > 5 { // the beginning of a PNG in base64
				return fmt.Sprintf("Too much media: 0 document pages + %d images > 5", n)
			}
			return ""
		}}
		var images []canister.Content
		for i := range 12 {
			images = append(images, canister.ImageContent{Data: picture(t, "png", 20+i), MIME: "image/png"})
		}
		talk := reading(t, server, images...)
		refusals := 0
		for _, image := range images {
			bodies := server.send(t, talk)
			refusals += len(bodies) - 2
			if !strings.Contains(bodies[len(bodies)-1], encoded(image.(canister.ImageContent).Data)) {
				t.Errorf("%s: the newest image is left out", api)
			}
		}
		if refusals == 0 || refusals > 3 {
			t.Errorf("%s: %d refusals", api, refusals)
		}
	}
}

// TestNoImagesAtAll: after a server has said that its model takes no images, the conversation goes
// on without any.
func TestNoImagesAtAll(t *testing.T) {
	for _, test := range []struct {
		status int
		says   string
	}{
		{400, "Failed to deserialize the JSON body into the target type: messages[7]: unknown variant `image_url`, expected `text` at line 1 column 9"},
		{500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"}, // ggml-org/llama.cpp#15377
	} {
		server := &reader{api: "chat", status: test.status, refuse: func(body string) string {
			if strings.Contains(body, "iVBOR") { // the beginning of a PNG in base64
				return test.says
			}
			return ""
		}}
		talk := reading(t, server, canister.Text("words"))
		for i := range 3 {
			if err := talk.Add(t.Context(), canister.User{Content: []canister.Content{canister.ImageContent{Data: picture(t, "png", 20+i), MIME: "image/png"}}}); err != nil {
				t.Fatal(err)
			}
		}
		if bodies := server.send(t, talk); len(bodies) != 3 {
			t.Errorf("%d requests, want 3: %s", len(bodies), test.says)
		}
	}
}

// TestImageThatIsNotDownloaded: the image whose URL the refusal names is left out, and no newer one.
func TestImageThatIsNotDownloaded(t *testing.T) {
	for _, api := range []string{"messages", "responses", "chat"} {
		server := &reader{api: api, refuse: func(body string) string {
			if strings.Contains(body, `"https://a.example/old.png"`) {
				return "Error while downloading https://a.example/old.png. Upstream status code: 404."
			}
			return ""
		}}
		talk := reading(t, server, canister.Text("words"))
		for _, name := range []string{"old", "new"} {
			image := canister.ImageContent{URL: "https://a.example/" + name + ".png"}
			if err := talk.Add(t.Context(), canister.User{Content: []canister.Content{image}}); err != nil {
				t.Fatal(err)
			}
		}
		bodies := server.send(t, talk)
		if len(bodies) != 3 || !strings.Contains(bodies[2], `"https://a.example/new.png"`) {
			t.Errorf("%s: %d requests, want 3 with the new image: %s", api, len(bodies), bodies)
		}
	}
}

// TestEachImageIsRefused: a server that refuses each request is not asked without end.
func TestEachImageIsRefused(t *testing.T) {
	server := &reader{api: "messages", refuse: func(string) string { return "Could not process image" }}
	talk := reading(t, server)
	var images []canister.Content
	for i := range 50 {
		images = append(images, canister.ImageContent{Data: picture(t, "png", 20+i), MIME: "image/png"})
	}
	for _, image := range images {
		if err := talk.Add(t.Context(), canister.User{Content: []canister.Content{image}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := talk.Ask(t.Context(), canister.Text("Read.")); err == nil || len(server.bodies) > 10 {
		t.Errorf("%v after %d requests", err, len(server.bodies))
	}
}
