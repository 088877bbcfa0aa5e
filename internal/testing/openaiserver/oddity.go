// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Oddity is an unusual answer to a request with "stream": true, of a kind that real
// servers of an API send, with the result that a correct client must produce.
type Oddity struct {
	// Name is short and can be used in a URL, for example "index-missing".
	Name string
	// About says what is unusual, and where it was seen if only in one place.
	About string
	// Replay is the answer.
	Replay Replay
	// Want is the result that a correct client must produce.
	Want Want
}

// Want is the result that a correct client must produce from an answer.
type Want struct {
	Text      string
	Refusal   string
	Reasoning string
	Calls     []WantCall
	// Finish is the last finish_reason that is not empty, as it was sent. Calls must be
	// run whatever its value is.
	Finish string
	// Usage is the token count to report; nil if none was sent. Only the prompt,
	// completion and total tokens are given.
	Usage *Usage
	// Problem is the kind of error that ends the exchange, if any. Text is then the text
	// that had arrived, and Calls is nil: no call may run.
	Problem Problem
	// Message is a part of the server's message that the error must contain.
	Message string
}

// WantCall is a call that a correct client finds in an answer.
type WantCall struct {
	// ID is the ID of the call; empty means that the client must make up an ID that
	// differs from the IDs of all other calls.
	ID   string
	Name string
	// Arguments is the text of the arguments, or "{}" if the server sent none.
	Arguments string
	// Broken says that Arguments is not valid JSON: the client must tell the model.
	Broken bool
	// Extra is the value of extra_content, which the client must send back with the call.
	Extra json.RawMessage
}

// Problem is a kind of error that an exchange ends with.
type Problem string

// The kinds of problems.
const (
	// NoProblem: the answer is complete.
	NoProblem Problem = ""
	// Interrupted: the stream ended before the answer did.
	Interrupted Problem = "interrupted"
	// NotAStream: the body is neither an event stream nor a completion.
	NotAStream Problem = "not a stream"
	// ServerSaid: the server reported an error in the body.
	ServerSaid Problem = "server said"
)

//go:embed oddities
var oddityFiles embed.FS

// oddity is an entry of a table of oddities.
type oddity struct {
	name, about string
	want        Want
	size        int // of the parts in bytes; zero means one part
	end         End
	data        []byte // the body; nil means the recorded file
	kind        string // the content type of data; empty means text/event-stream
}

// hugeDelta is the number of characters of text in the oddity "huge-delta".
const hugeDelta = 1 << 20

// Oddities returns the oddities of Chat Completions, in a fixed order. The caller may modify
// the result.
func Oddities() []Oddity { return oddities(chatAPI) }

// ResponsesOddities returns the oddities of Responses.
func ResponsesOddities() []Oddity { return oddities(responsesAPI) }

// MessagesOddities returns the oddities of Anthropic's Messages, with the finish reasons of
// Chat Completions, and "refusal".
func MessagesOddities() []Oddity { return oddities(messagesAPI) }

func oddities(kind api) []Oddity {
	table := oddityTable(kind)
	all := make([]Oddity, len(table))
	for i, o := range table {
		all[i] = Oddity{Name: o.name, About: o.about, Replay: o.replay(), Want: o.want}
	}
	return all
}

func oddityTable(kind api) []oddity {
	switch kind {
	case responsesAPI:
		return slices.Concat(responsesOddities(), responsesTextOddities(), responsesCallOddities(), responsesEndOddities())
	case messagesAPI:
		return slices.Concat(messagesOddities(), messagesTextOddities(), messagesCallOddities(), messagesEndOddities())
	}
	return slices.Concat(callOddities(), argumentOddities(), finishOddities(), contentOddities(),
		chunkOddities(), lineOddities(), endOddities())
}

// findOddity returns the replay of the named oddity of an API.
func findOddity(kind api, name string) (Replay, error) {
	table := oddityTable(kind)
	i := slices.IndexFunc(table, func(o oddity) bool { return o.name == name })
	if i < 0 {
		return Replay{}, fmt.Errorf("there is no oddity %q", name)
	}
	return table[i].replay(), nil
}

func (o *oddity) replay() Replay {
	body, header := o.body()
	return Replay{Header: header, Parts: Split(body, o.size), End: o.end}
}

// body reads the recorded body. The file extension determines its content type.
func (o *oddity) body() ([]byte, http.Header) {
	if o.data != nil {
		return o.data, http.Header{"Content-Type": {cmp.Or(o.kind, "text/event-stream")}}
	}
	if o.name == "huge-delta" {
		return hugeBody(), nil
	}
	for _, kind := range []struct{ ending, contentType string }{
		{".sse", "text/event-stream"},
		{".json", "application/json"},
		{".html", "text/html; charset=utf-8"},
	} {
		if body, err := oddityFiles.ReadFile("oddities/" + o.name + kind.ending); err == nil {
			return body, http.Header{"Content-Type": {kind.contentType}}
		}
	}
	return nil, nil // a test checks that each oddity has its file
}

func hugeBody() []byte {
	return bytes.Join([][]byte{
		[]byte(`data: {"id":"chatcmpl-7","object":"chat.completion.chunk","created":1767225600,"model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":"`),
		bytes.Repeat([]byte("a"), hugeDelta),
		[]byte("\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"),
	}, nil)
}

// OddityURL returns the base URL for an oddity: there, the server answers every request
// with the named oddity. Base is the base URL of the server, from [Server.URL] or
// [Process].
func OddityURL(base, name string) string {
	return strings.TrimSuffix(base, "/v1") + "/oddity/" + url.PathEscape(name) + "/v1"
}

// splitOddity splits the name of an oddity off a path.
func splitOddity(path string) (name, rest string) {
	after, ok := strings.CutPrefix(path, "/oddity/")
	if !ok {
		return "", path
	}
	name, rest, _ = strings.Cut(after, "/")
	return name, "/" + rest
}
