// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// floor is a loop on bare net/http, as little as such a loop can do: it keeps its history as
// the bytes of the next request, and decodes only what it needs of an answer. Its tools are
// called through go-sdk, as those of the loops on the SDKs are.
type floor struct {
	client *http.Client
	url    string
	tools  *handTools
	head   []byte // of each request: what does not change
	stream bool
}

func newFloor(tb testing.TB, url string, tools *handTools, stream bool) *floor {
	tb.Helper()
	type function struct {
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
		Parameters  any    `json:"parameters"`
	}
	type tool struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	var offered []tool
	for _, t := range tools.list {
		offered = append(offered, tool{"function", function{prefix + t.Name, t.Description, t.InputSchema}})
	}
	text, err := json.Marshal(offered)
	if err != nil {
		tb.Fatal(err)
	}
	head := fmt.Appendf(nil, `{"model":"scripted","tools":%s,`, text)
	if stream {
		head = append(head, `"stream":true,"stream_options":{"include_usage":true},`...)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 1000
	return &floor{&http.Client{Transport: transport}, url + "/chat/completions", tools, append(head, `"messages":[`...), stream}
}

// floorMessage is the message of an answer, or a piece of it.
type floorMessage struct {
	Content string      `json:"content,omitempty"`
	Calls   []floorCall `json:"tool_calls,omitempty"`
}

type floorCall struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// add adds a piece of a streamed message.
func (m *floorMessage) add(piece *floorMessage) {
	m.Content += piece.Content
	for _, c := range piece.Calls {
		for len(m.Calls) <= c.Index {
			m.Calls = append(m.Calls, floorCall{Index: len(m.Calls), Type: "function"})
		}
		whole := &m.Calls[c.Index]
		whole.ID += c.ID
		whole.Function.Name += c.Function.Name
		whole.Function.Arguments += c.Function.Arguments
	}
}

func (f *floor) turn(ctx context.Context, prompt string, onDelta func(string)) (string, error) {
	body := fmt.Appendf(bytes.Clone(f.head), `{"role":"user","content":%s}`, quoted(prompt))
	for {
		message, err := f.exchange(ctx, append(body, "]}"...), onDelta)
		if err != nil {
			return "", err
		}
		calls, err := json.Marshal(message.Calls)
		if err != nil {
			return "", err
		}
		if len(message.Calls) == 0 {
			return message.Content, nil
		}
		body = fmt.Appendf(body, `,{"role":"assistant","content":%s,"tool_calls":%s}`, quoted(message.Content), calls)
		texts := make([]string, len(message.Calls))
		err = allOf(len(texts), func(i int) (err error) {
			call := message.Calls[i].Function
			texts[i], err = f.tools.call(ctx, call.Name, call.Arguments)
			return err
		})
		if err != nil {
			return "", err
		}
		for i, text := range texts {
			body = fmt.Appendf(body, `,{"role":"tool","tool_call_id":%s,"content":%s}`, quoted(message.Calls[i].ID), quoted(text))
		}
	}
}

func (f *floor) exchange(ctx context.Context, body []byte, onDelta func(string)) (*floorMessage, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer none")
	response, err := f.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", response.StatusCode)
	}
	if f.stream {
		return readFloorStream(response.Body, onDelta)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Choices []struct{ Message floorMessage }
	}
	if err := json.Unmarshal(text, &answer); err != nil || len(answer.Choices) == 0 {
		return nil, fmt.Errorf("no answer: %w", err)
	}
	return &answer.Choices[0].Message, nil
}

func readFloorStream(body io.Reader, onDelta func(string)) (*floorMessage, error) {
	whole, lines := new(floorMessage), bufio.NewScanner(body)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok || string(data) == "[DONE]" {
			continue
		}
		var chunk struct {
			Choices []struct{ Delta floorMessage }
		}
		if err := json.Unmarshal(data, &chunk); err != nil {
			return nil, err
		}
		if len(chunk.Choices) > 0 {
			whole.add(&chunk.Choices[0].Delta)
			onDelta(chunk.Choices[0].Delta.Content)
		}
	}
	return whole, lines.Err()
}

func quoted(text string) []byte {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		panic(err) // texts can always be encoded
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}
