// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"bytes"
	"encoding/json"
	"iter"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/consort-go/consort/internal/jsontext"
)

// rendered holds the parts of a message in JSON that do not depend on the request: the
// "choices" member of each chunk and of the whole answer. The other members (id, time,
// model, usage) are added when it is sent.
type rendered struct {
	message    Message
	chunks     [][]byte
	whole      []byte
	usage      *Usage
	completion int // estimated tokens of the completion
	pace       time.Duration
	delay      time.Duration
}

// hole is the placeholder in rendered JSON for the position in the conversation. A zero
// byte cannot occur in JSON.
const hole = 0

const defaultDelta = 16

// wireDelta is a message of an answer, or a piece of one.
type wireDelta struct {
	Role      string      `json:"role,omitempty"`
	Content   *string     `json:"content,omitempty"`
	Refusal   *string     `json:"refusal,omitempty"`
	Reasoning string      `json:"reasoning_content,omitempty"`
	Calls     []deltaCall `json:"tool_calls,omitempty"`
}

type deltaCall struct {
	Index    *int            `json:"index,omitempty"`
	ID       string          `json:"id,omitempty"`
	Type     string          `json:"type,omitempty"`
	Function deltaFunction   `json:"function"`
	Extra    json.RawMessage `json:"extra_content,omitempty"`
}

type deltaFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// render prepares a message so that it can be sent any number of times.
func render(m Message) *rendered {
	m = m.joined()
	r := &rendered{message: m, usage: m.Usage, pace: m.Pace, delay: m.Delay}
	finish := m.Finish
	if finish == "" {
		finish = "stop"
		if len(m.Calls) > 0 {
			finish = "tool_calls"
		}
	}
	size := m.Delta
	if size == 0 {
		size = defaultDelta
	}
	r.addChunk(wireDelta{Role: "assistant", Content: new(string)}, "")
	for piece := range pieces(m.Reasoning, size) {
		r.addChunk(wireDelta{Reasoning: piece}, "")
	}
	for piece := range pieces(m.Text, size) {
		r.addChunk(wireDelta{Content: &piece}, "")
	}
	for piece := range pieces(m.Refusal, size) {
		r.addChunk(wireDelta{Refusal: &piece}, "")
	}
	calls := m.wireCalls()
	for i, c := range calls {
		head := c
		head.Index, head.Function.Arguments = &i, ""
		r.addChunk(wireDelta{Calls: []deltaCall{head}}, "")
		for piece := range pieces(c.Function.Arguments, size) {
			r.addChunk(wireDelta{Calls: []deltaCall{{Index: &i, Function: deltaFunction{Arguments: piece}}}}, "")
		}
		r.completion += len(c.Function.Name) + len(c.Function.Arguments)
	}
	r.addChunk(wireDelta{}, finish)
	r.whole = renderWhole(m, calls, finish)
	r.completion = 1 + (r.completion+len(m.Text)+len(m.Reasoning)+len(m.Refusal))/4
	return r
}

// wireCalls converts the calls to their wire form.
func (m *Message) wireCalls() []deltaCall {
	calls := make([]deltaCall, len(m.Calls))
	for i, c := range m.Calls {
		if c.ID == "" {
			c.ID = idMark + strconv.Itoa(i)
		}
		if c.Arguments == "" {
			c.Arguments = "{}"
		}
		calls[i] = deltaCall{ID: c.ID, Type: "function", Function: deltaFunction{Name: c.Name, Arguments: c.Arguments}, Extra: c.Extra}
	}
	return calls
}

// idMark begins an ID that the position completes. Its private-use characters keep it
// apart from the text of scripts.
const idMark = "call_\uE000consort\uE001_"

// encode writes JSON as OpenAI does, without escaping for HTML, and with holes.
func encode(v any) []byte {
	text, _ := jsontext.Encode(v) // only strings and numbers: cannot fail
	return bytes.ReplaceAll(text, []byte(idMark), []byte{'c', 'a', 'l', 'l', '_', hole, '_'})
}

// addChunk renders one chunk of a stream.
func (r *rendered) addChunk(delta wireDelta, finish string) {
	var choice struct {
		Index        int       `json:"index"`
		Delta        wireDelta `json:"delta"`
		Logprobs     *struct{} `json:"logprobs"`
		FinishReason *string   `json:"finish_reason"`
	}
	choice.Delta = delta
	if finish != "" {
		choice.FinishReason = &finish
	}
	r.chunks = append(r.chunks, encode([]any{choice}))
}

// renderWhole renders the choices of an answer that is not streamed.
func renderWhole(m Message, calls []deltaCall, finish string) []byte {
	var choice struct {
		Index   int `json:"index"`
		Message struct {
			Role      string      `json:"role"`
			Content   *string     `json:"content"`
			Refusal   *string     `json:"refusal"`
			Reasoning string      `json:"reasoning_content,omitempty"`
			Calls     []deltaCall `json:"tool_calls,omitempty"`
		} `json:"message"`
		Logprobs     *struct{} `json:"logprobs"`
		FinishReason string    `json:"finish_reason"`
	}
	to := &choice.Message
	to.Role, to.Reasoning, to.Calls = "assistant", m.Reasoning, calls
	if m.Text != "" || len(calls) == 0 && m.Refusal == "" {
		to.Content = &m.Text
	}
	if m.Refusal != "" {
		to.Refusal = &m.Refusal
	}
	choice.FinishReason = finish
	return encode([]any{choice})
}

// pieces cuts text into pieces of size characters; a negative size returns it whole.
func pieces(text string, size int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			n := cutAt(text, size)
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
	}
}

// cutAt returns where the first size characters of text end.
func cutAt(text string, size int) int {
	if size < 0 {
		return len(text)
	}
	n := 0
	for ; size > 0 && n < len(text); size-- {
		_, width := utf8.DecodeRuneInString(text[n:])
		n += width
	}
	return n
}

// play renders and sends the message. New renders the messages of a script in advance.
func (m Message) play(x *exchange) { render(m).play(x) }

// play sends the message whole or as a stream, as the request asks.
func (r *rendered) play(x *exchange) {
	switch x.request.api {
	case responsesAPI:
		r.message.playResponse(x)
		return
	case messagesAPI:
		r.message.playMessages(x)
		return
	}
	if !x.wait(r.delay) {
		return
	}
	if x.request.Stream {
		r.stream(x)
		return
	}
	body := x.head(nil, "", "chat.completion")
	body = fill(append(body, `"choices":`...), r.whole, x.request.Position)
	body = append(body, `,"usage":`...)
	body = append(r.appendUsage(body, x), "}\n"...)
	x.w.Header().Set("Content-Type", "application/json")
	x.w.Write(body) // the client may have gone
}

// flushAt is how many bytes of an unpaced stream are written at once.
const flushAt = 32 << 10

// stream sends the message as server-sent events.
func (r *rendered) stream(x *exchange) {
	header := x.w.Header()
	header.Set("Content-Type", "text/event-stream; charset=utf-8")
	header.Set("Cache-Control", "no-cache")
	prefix := x.head(nil, "data: ", "chat.completion.chunk")
	end := "}\n\n"
	if x.request.includeUsage {
		end = `,"usage":null}` + "\n\n"
	}
	var buffer []byte
	for _, chunk := range r.chunks {
		buffer = append(buffer, prefix...)
		buffer = append(buffer, `"choices":`...)
		buffer = fill(buffer, chunk, x.request.Position)
		buffer = append(buffer, end...)
		if r.pace == 0 && len(buffer) < flushAt {
			continue
		}
		if !x.send(buffer) || !x.wait(r.pace) {
			return
		}
		buffer = buffer[:0]
	}
	if x.request.includeUsage {
		buffer = append(buffer, prefix...)
		buffer = append(buffer, `"choices":[],"usage":`...)
		buffer = append(r.appendUsage(buffer, x), "}\n\n"...)
	}
	x.w.Write(append(buffer, "data: [DONE]\n\n"...)) // the client may have gone
}

// send writes and flushes data. It returns false if the client has gone.
func (x *exchange) send(data []byte) bool {
	if _, err := x.w.Write(data); err != nil {
		return false
	}
	return http.NewResponseController(x.w).Flush() == nil
}

// head appends the beginning of an answer object, up to its choices.
func (x *exchange) head(to []byte, before, object string) []byte {
	to = append(to, before...)
	to = append(to, `{"id":"chatcmpl-`...)
	to = strconv.AppendUint(to, x.serial, 10)
	to = append(to, `","object":"`...)
	to = append(to, object...)
	to = append(to, `","created":`...)
	to = strconv.AppendInt(to, x.server.created, 10)
	to = append(to, `,"model":`...)
	to = append(to, encode(x.request.Model)...)
	return append(to, ',')
}

// fill appends rendered JSON with its holes filled.
func fill(to, from []byte, position int) []byte {
	for {
		i := bytes.IndexByte(from, hole)
		if i < 0 {
			return append(to, from...)
		}
		to = append(to, from[:i]...)
		to = strconv.AppendInt(to, int64(position), 10)
		from = from[i+1:]
	}
}

// appendUsage writes the usage object.
func (r *rendered) appendUsage(to []byte, x *exchange) []byte {
	u := Usage{PromptTokens: 1 + len(x.request.Body)/4, CompletionTokens: r.completion}
	if r.usage != nil {
		u = *r.usage
	}
	if u.TotalTokens == 0 {
		u.TotalTokens = u.PromptTokens + u.CompletionTokens
	}
	for _, member := range []struct {
		name  string
		value int
	}{
		{`{"prompt_tokens":`, u.PromptTokens},
		{`,"completion_tokens":`, u.CompletionTokens},
		{`,"total_tokens":`, u.TotalTokens},
		{`,"prompt_tokens_details":{"cached_tokens":`, u.CachedTokens},
		{`,"cache_write_tokens":`, u.CacheWriteTokens},
		{`},"completion_tokens_details":{"reasoning_tokens":`, u.ReasoningTokens},
	} {
		to = append(to, member.name...)
		to = strconv.AppendInt(to, int64(member.value), 10)
	}
	return append(to, "}}"...)
}
