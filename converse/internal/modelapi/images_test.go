// SPDX-License-Identifier: Apache-2.0

package modelapi_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/anthropicmodel"
	"github.com/consort-go/consort/converse/openaimodel"
)

// picky is a transport to a server that refuses requests with one of the images.
type picky struct {
	large  []byte
	says   string // of a refusal
	answer string
	bodies []string
}

// RoundTrip implements [http.RoundTripper].
func (p *picky) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	p.bodies = append(p.bodies, string(body))
	status, text := 200, p.answer
	if strings.Contains(string(body), base64.StdEncoding.EncodeToString(p.large)) {
		status, text = 400, anthropicError("invalid_request_error", p.says)
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// webp begins an image of 3000 × 20 pixels (RFC 9649, section 2.7.1).
const webp = "RIFF\x16\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\xb7\x0b\x00\x13\x00\x00"

// picture returns an image of a width and 20 pixels height.
func picture(t *testing.T, kind string, width int) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch plain := image.NewGray(image.Rect(0, 0, width, 20)); kind {
	case "png":
		err = png.Encode(&b, plain)
	case "jpeg":
		err = jpeg.Encode(&b, plain, nil)
	case "gif":
		err = gif.Encode(&b, plain, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestLargeImages: after a server has refused an image for its size, the conversation goes
// on without those that are larger than the server said, and with the others.
func TestLargeImages(t *testing.T) {
	const (
		pixels = "messages.7.content.2.image.source.base64.data: " +
			"At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"
		size = "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 5316852 bytes > 200 bytes"
	)
	for _, test := range []struct {
		name, mime, says, reads string
		large                   []byte
	}{
		{"PNG", "image/png", pixels, "3000 × 20 pixels, and the model's server takes 2000", picture(t, "png", 3000)},
		{"JPEG", "image/jpeg", pixels, "3000 × 20 pixels", picture(t, "jpeg", 3000)},
		{"GIF", "image/gif", pixels, "3000 × 20 pixels", picture(t, "gif", 3000)},
		{"WebP", "image/webp", pixels, "3000 × 20 pixels", []byte(webp)},
		{"bytes", "image/jpeg", size, "the model's server takes 150 bytes", picture(t, "jpeg", 1000)},
	} {
		t.Run(test.name, func(t *testing.T) {
			for api, answer := range map[string]string{
				"messages": `{"type":"message","role":"assistant","content":[{"type":"text","text":"Yes."}],"stop_reason":"end_turn",` +
					`"usage":{"input_tokens":1,"output_tokens":1}}`,
				"chat": `{"choices":[{"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}]}`,
				"responses": `{"object":"response","status":"completed","output":[{"type":"message","role":"assistant",` +
					`"content":[{"type":"output_text","text":"Yes.","annotations":[]}]}]}`,
			} {
				server := &picky{large: test.large, says: test.says, answer: answer}
				client, small := &http.Client{Transport: server}, picture(t, "png", 20)
				var model converse.Model
				var err error
				if api == "messages" {
					model, err = anthropicmodel.New("m", &anthropicmodel.Options{HTTPClient: client, MaxRetries: -1})
				} else {
					model, err = openaimodel.New("m", &openaimodel.Options{HTTPClient: client, MaxRetries: -1, API: api})
				}
				if err != nil {
					t.Fatal(err)
				}
				talk := converse.New(model, nil, nil)
				for range 2 {
					for _, err := range talk.Send(t.Context(), canister.ImageContent{Data: test.large, MIME: test.mime}, canister.ImageContent{Data: small, MIME: "image/png"}) {
						if err != nil {
							t.Fatalf("%s: %v", api, err)
						}
					}
				}
				if len(server.bodies) != 3 {
					t.Fatalf("%s: %d requests, want 3", api, len(server.bodies))
				}
				for _, body := range server.bodies[1:] {
					if !strings.Contains(body, test.reads) || !strings.Contains(body, base64.StdEncoding.EncodeToString(small)) {
						t.Errorf("%s: the request is %s", api, body)
					}
				}
			}
		})
	}
}

// TestLowerAndLowerLimits: a server that tells a lower limit each time is not asked without end.
func TestLowerAndLowerLimits(t *testing.T) {
	requests := 0
	server := transport(func(r *http.Request) (*http.Response, error) {
		requests++
		text := anthropicError("invalid_request_error", fmt.Sprintf("image exceeds 5 MB maximum: 5316852 bytes > %d bytes", 5000-requests))
		return &http.Response{StatusCode: 400, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
	})
	model, err := anthropicmodel.New("m", &anthropicmodel.Options{HTTPClient: &http.Client{Transport: server}, MaxRetries: -1})
	if err != nil {
		t.Fatal(err)
	}
	talk := converse.New(model, nil, nil)
	if _, err := talk.Ask(t.Context(), canister.ImageContent{Data: picture(t, "png", 20), MIME: "image/png"}); err == nil {
		t.Error("a server that refuses each request has answered")
	}
	if requests > 10 {
		t.Errorf("%d requests", requests)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
