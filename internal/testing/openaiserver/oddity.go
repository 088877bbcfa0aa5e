// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Oddity is an answer to a request with "stream": true, odd in a way that
// servers in the world are odd in, and what a correct client makes of it.
type Oddity struct {
	// Name is short and fit for a URL, such as "index-missing".
	Name string
	// About says what is odd, and where it was seen when it was one place.
	About string
	// Replay is the answer.
	Replay Replay
	// Want is what a correct client makes of it.
	Want Want
}

// Want is what a correct client makes of an answer.
type Want struct {
	Text      string
	Refusal   string
	Reasoning string
	Calls     []WantCall
	// Finish is the last finish_reason that says something, as it was sent.
	// Calls are to be run whatever it says.
	Finish string
	// Usage is the count to report; nil when none came. Only the prompt,
	// completion and total tokens are given.
	Usage *Usage
	// Problem is the kind of error that the exchange ends with, if any. Text
	// is then what had arrived. Calls is then nil: none may run.
	Problem Problem
	// Message is a part of the server's own words that the error must show.
	Message string
}

// WantCall is a call that a correct client finds in an answer.
type WantCall struct {
	// ID is the identity; empty means that the client must make one up which
	// differs from those of all other calls.
	ID   string
	Name string
	// Arguments is the text of the arguments, "{}" where the server sent none.
	Arguments string
	// Broken tells that Arguments is not valid JSON: the model is to be told.
	Broken bool
	// Extra is what came as extra_content and must go back with the call.
	Extra json.RawMessage
}

// Problem is a kind of error that an exchange ends with.
type Problem string

// The problems.
const (
	// NoProblem: the answer is complete.
	NoProblem Problem = ""
	// Interrupted: the stream ended before the answer did.
	Interrupted Problem = "interrupted"
	// NotAStream: the body is no event stream, and no completion either.
	NotAStream Problem = "not a stream"
	// ServerSaid: the server reported an error in the body.
	ServerSaid Problem = "server said"
)

//go:embed oddities
var oddityFiles embed.FS

// oddity is an oddity as it stands in the table.
type oddity struct {
	name, about string
	want        Want
	size        int // of the parts in bytes; zero means one part
	end         End
}

// hugeDelta is how many characters of text the oddity "huge-delta" has.
const hugeDelta = 1 << 20

// Oddities returns all oddities, in a fixed order. The caller may change what it
// gets.
func Oddities() []Oddity {
	table := oddityTable()
	all := make([]Oddity, len(table))
	for i, o := range table {
		all[i] = Oddity{Name: o.name, About: o.about, Replay: o.replay(), Want: o.want}
	}
	return all
}

func oddityTable() []oddity {
	return slices.Concat(callOddities(), argumentOddities(), finishOddities(), contentOddities(),
		chunkOddities(), lineOddities(), endOddities())
}

// findOddity returns the replay of the oddity of that name.
func findOddity(name string) (Replay, error) {
	table := oddityTable()
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

// body reads the recorded body, whose file ending tells its type.
func (o *oddity) body() ([]byte, http.Header) {
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
	return nil, nil // a test checks that each has its file
}

func hugeBody() []byte {
	return bytes.Join([][]byte{
		[]byte(`data: {"id":"chatcmpl-7","object":"chat.completion.chunk","created":1767225600,"model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":"`),
		bytes.Repeat([]byte("a"), hugeDelta),
		[]byte("\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"),
	}, nil)
}

// OddityURL is the base URL under which a server with the base URL base, from
// [Server.URL] or [Process], answers every request with the oddity of that name.
func OddityURL(base, name string) string {
	return strings.TrimSuffix(base, "/v1") + "/oddity/" + url.PathEscape(name) + "/v1"
}

// splitOddity takes the name of an oddity out of a path.
func splitOddity(path string) (name, rest string) {
	after, ok := strings.CutPrefix(path, "/oddity/")
	if !ok {
		return "", path
	}
	name, rest, _ = strings.Cut(after, "/")
	return name, "/" + rest
}
