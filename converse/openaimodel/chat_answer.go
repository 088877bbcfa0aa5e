// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/internal/modelapi"
	"github.com/tidwall/gjson"
)

// maxCalls limits the calls of one answer.
const maxCalls = 512

// accumulator assembles an answer from the chunks of a stream, or from an answer in one
// piece, which is one large chunk. It handles the dialects of servers that claim to be
// compatible; see the package comment.
type accumulator struct {
	emit  func(converse.Delta)
	tools *converse.Toolset // offered tools; may be nil

	text      []byte
	refusal   []byte
	thought   []byte  // reasoning_content, which some servers require in later requests
	details   details // reasoning_details, likewise
	cited     []json.RawMessage
	calls     []*call
	byIndex   map[int64]*call // latest call of each index
	delta     int             // number of deltas, to recognise calls in the same delta
	finish    string          // last non-empty finish reason
	usage     *canister.Usage
	model     string
	overflown bool // more than maxCalls calls
	began     bool // part of an answer has arrived
	chosen    bool // a choice has arrived, possibly empty
	atOnce    bool // the calls have arrived in one piece
	idle      bool // the last chunk had nothing of the answer
	fault     bool // an error came instead of an answer
}

// call is one call as it arrives in the stream.
type call struct {
	id, name  string
	arguments []byte
	state     jsonState
	extra     string // extra_content, as the server wrote it
	delta     int    // the last delta that touched it
	announced bool
	renamed   bool // a name came after its arguments were complete
}

// State implements [modelapi.Accumulator].
func (a *accumulator) State() modelapi.State {
	return modelapi.State{Began: a.began, Whole: a.chosen, Complete: a.finish != "", Idle: a.idle, Fault: a.fault}
}

// Add processes a chunk, which is a JSON object; see [modelapi.Accumulator].
func (a *accumulator) Add(_ string, chunk gjson.Result) {
	a.idle = true
	chunk.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "choices":
			a.choices(value)
		case "usage":
			a.count(value)
		case "error":
			if isFault(value) {
				a.fault = true
			}
		case "object":
			if value.Str == "error" { // older vLLM
				a.fault = true
			}
		case "model":
			if value.Type == gjson.String && value.Str != "" {
				a.model = strings.Clone(value.Str) // does not keep the whole chunk in memory
			}
		}
		return true
	})
}

// brokenOff has the finish reasons that report a failure: the answer is incomplete.
// OpenRouter, DeepSeek and Zhipu send them.
var brokenOff = map[string]bool{"error": true, "insufficient_system_resource": true, "network_error": true}

// choices processes the requested choice. Servers that send several number them.
func (a *accumulator) choices(list gjson.Result) {
	if !list.IsArray() {
		return
	}
	list.ForEach(func(_, choice gjson.Result) bool {
		if choice.Get("index").Int() != 0 {
			return true
		}
		a.chosen = true
		defer a.whole(choice)
		choice.ForEach(func(key, value gjson.Result) bool {
			switch key.Str {
			case "delta":
				a.message(value, true)
				a.cite(value)
			case "message": // see whole
			case "finish_reason":
				if value.Type == gjson.String && value.Str != "" {
					a.finish, a.began, a.idle = strings.Clone(value.Str), true, false
				}
				a.fault = a.fault || brokenOff[value.Str]
			}
			return true
		})
		return true
	})
}

// whole processes the message of a choice, unless it came in pieces. MiniMax ends a
// stream with the whole message, and Perplexity repeats the message so far with each
// delta.
func (a *accumulator) whole(choice gjson.Result) {
	a.cite(choice.Get("message"))
	said := len(a.text) > 0 || len(a.refusal) > 0 || len(a.calls) > 0
	if said || choice.Get("delta").IsObject() && choice.Get("finish_reason").Str == "" {
		return
	}
	a.message(choice.Get("message"), false)
	a.atOnce = len(a.calls) > 0
}

// cite processes the sources that the text cites. Some servers repeat them.
func (a *accumulator) cite(message gjson.Result) {
	for _, source := range citations(message) {
		if len(a.cited) < maxItems && !slices.ContainsFunc(a.cited, func(known json.RawMessage) bool { return bytes.Equal(known, source) }) {
			a.cited, a.idle = append(a.cited, source), false
		}
	}
}

// message processes a piece of the message, or the whole message.
func (a *accumulator) message(delta gjson.Result, piece bool) {
	if !delta.IsObject() {
		return
	}
	a.delta++
	var reasoning string
	var calls, legacy gjson.Result
	var text, spoken, refusal string
	delta.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "content":
			said, thought := contentOf(value)
			text, reasoning = said, reasoning+thought
		case "audio": // its data is not part of the history
			spoken, a.idle = stringOf(value.Get("transcript")), false
		case "refusal":
			refusal = stringOf(value)
		case "reasoning_content", "reasoning":
			if reasoning == "" { // some servers send the same text under both names
				reasoning = stringOf(value)
			}
			if key.Str == "reasoning_content" {
				a.thought = append(a.thought, stringOf(value)...)
			}
		case "reasoning_details":
			a.details.add(value, piece)
			a.idle = a.idle && !value.Get("0").Exists()
		case "tool_calls":
			calls = value
		case "function_call":
			legacy = value
		}
		return true
	})
	if reasoning != "" {
		a.began, a.idle = true, false
		a.emit(converse.Delta{Reasoning: reasoning})
	}
	a.say(&a.text, text+spoken)
	a.say(&a.refusal, refusal)
	switch {
	case calls.IsArray():
		calls.ForEach(func(_, fragment gjson.Result) bool {
			a.fragment(fragment, fragment.Get("function"))
			return true
		})
	case calls.IsObject():
		a.fragment(calls, calls.Get("function"))
	}
	if legacy.IsObject() {
		a.fragment(gjson.Result{}, legacy)
	}
}

func (a *accumulator) say(to *[]byte, text string) {
	if text != "" {
		a.began, a.idle = true, false
		*to = append(*to, text...)
		a.emit(converse.Delta{Text: text})
	}
}

// fragment processes a piece of a call.
func (a *accumulator) fragment(piece, function gjson.Result) {
	id, name := stringOf(piece.Get("id")), stringOf(function.Get("name"))
	arguments := function.Get("arguments")
	text := stringOf(arguments)
	if arguments.IsObject() || arguments.IsArray() {
		text = arguments.Raw
	}
	extra := piece.Get("extra_content")
	index := piece.Get("index")
	numbered := index.Type == gjson.Number || index.Type == gjson.String && index.Str != ""
	c := a.callFor(index.Int(), numbered, id, name, text)
	if c == nil {
		return
	}
	c.delta, a.idle = a.delta, false
	if c.id == "" {
		c.id = id
	}
	c.renamed = c.renamed || name != "" && c.state.finished
	c.rename(name)
	c.state.add(text)
	c.arguments = append(c.arguments, text...)
	if extra.IsObject() {
		c.extra = strings.ToValidUTF8(strings.Clone(extra.Raw), "\uFFFD")
	}
	if !c.announced && c.name != "" {
		c.announced = true
		a.emit(converse.Delta{Invocation: modelapi.ToolName(a.tools, c.name)})
	}
}

// callFor returns the call that a fragment belongs to, and creates it if necessary. It
// returns nil if the fragment is empty or belongs to no call, or there are too many calls.
func (a *accumulator) callFor(index int64, numbered bool, id, name, arguments string) *call {
	var c *call
	if numbered {
		c = a.byIndex[index]
	} else if c = a.byID(id); c == nil && len(a.calls) > 0 {
		c = a.calls[len(a.calls)-1]
	}
	if text := strings.TrimSpace(arguments); c != nil && text != "" && c.isPlaceholder(numbered, id, name) {
		if !strings.HasPrefix(text, "{") {
			return nil
		}
		c.arguments, c.state = nil, jsonState{}
		return c
	}
	if c != nil && !c.ends(a.delta, numbered, id, name, arguments) {
		return c
	}
	if id == "" && name == "" && arguments == "" {
		return nil
	}
	if len(a.calls) == maxCalls {
		a.overflown = true
		return nil
	}
	fresh := &call{}
	if c != nil && name == "" {
		fresh.name = c.name // the name came earlier, as a repetition
	}
	a.calls, a.began = append(a.calls, fresh), true
	if numbered {
		if a.byIndex == nil {
			a.byIndex = map[int64]*call{}
		}
		a.byIndex[index] = fresh
	}
	return fresh
}

// byID returns the last call with that ID.
func (a *accumulator) byID(id string) *call {
	for i := len(a.calls) - 1; i >= 0 && id != ""; i-- {
		if a.calls[i].id == id {
			return a.calls[i]
		}
	}
	return nil
}

// isPlaceholder reports whether a call has the arguments {} so far, which a fragment replaces:
// Envoy AI Gateway and LiteLLM send {} first. The next call would have a name, also one without
// arguments before them, or another ID.
func (c *call) isPlaceholder(numbered bool, id, name string) bool {
	same := id == "" || id == c.id || numbered && c.id == ""
	return same && name == "" && !c.renamed && c.state.finished && string(bytes.TrimSpace(c.arguments)) == "{}"
}

// ends reports whether a fragment that looks like part of the call begins another one.
// Some servers number all calls 0, or none. Some give all calls the same ID, or each
// fragment a new one. Some repeat the name in each fragment.
func (c *call) ends(delta int, numbered bool, id, name, arguments string) bool {
	switch {
	case id != "" && c.id != "" && id != c.id:
		return name != "" || c.state.finished || !numbered
	case name != "" && c.name != "" && c.delta == delta:
		return true // no server splits a name within one delta
	case name != "" && c.state.started && name != c.name:
		return true
	}
	// After the arguments are complete, more text can only belong to the next call.
	return c.state.finished && strings.TrimSpace(arguments) != ""
}

// rename processes a piece of the name, or a repetition of it.
func (c *call) rename(name string) {
	switch {
	case name == "" || c.state.started && c.name != "":
	case strings.HasPrefix(name, c.name):
		c.name = strings.Clone(name)
	default:
		c.name += name
	}
}

// count processes the usage. Servers send it once, or the sum so far in each chunk, or
// zeros until the end. The last usage that is not zero counts. xAI counts reasoning beside
// completion_tokens and includes it only in total_tokens (docs.x.ai, Consumption and rate
// limits), as gateways to Gemini do.
func (a *accumulator) count(usage gjson.Result) {
	if !usage.IsObject() {
		return
	}
	u := canister.Usage{
		Input:        usage.Get("prompt_tokens").Int(),
		Cached:       usage.Get("prompt_tokens_details.cached_tokens").Int(),
		CacheWritten: usage.Get("prompt_tokens_details.cache_write_tokens").Int(),
		Output:       usage.Get("completion_tokens").Int(),
		Reasoning:    usage.Get("completion_tokens_details.reasoning_tokens").Int(),
	}
	if u.Cached == 0 {
		u.Cached = usage.Get("prompt_cache_hit_tokens").Int()
	}
	if total := usage.Get("total_tokens").Int(); total > 0 {
		u.Output = max(u.Output, total-u.Input)
	}
	if u.Reasoning > u.Output {
		u.Output += u.Reasoning
	}
	if u != (canister.Usage{}) {
		a.usage = &u
	}
}

// isFault distinguishes an error from the empty members that some servers send.
func isFault(value gjson.Result) bool {
	switch value.Type {
	case gjson.String:
		return value.Str != ""
	case gjson.JSON:
		some := false
		value.ForEach(func(_, member gjson.Result) bool {
			some = member.Type != gjson.Null && member.String() != ""
			return !some
		})
		return some
	}
	return value.Type == gjson.True || value.Type == gjson.Number
}

// stringOf returns a JSON string, and "" for null and other values.
func stringOf(value gjson.Result) string {
	if value.Type == gjson.String {
		return value.Str
	}
	return ""
}

// contentOf returns the text of a message's content, which is a string, null or a list of
// parts, and the text of the parts that are marked as thinking.
func contentOf(value gjson.Result) (text, thought string) {
	if !value.IsArray() {
		return stringOf(value), ""
	}
	var said, thinking strings.Builder
	value.ForEach(func(_, p gjson.Result) bool {
		if p.Get("type").Str == "thinking" {
			p.Get("thinking").ForEach(func(_, inner gjson.Result) bool {
				thinking.WriteString(stringOf(inner))
				thinking.WriteString(stringOf(inner.Get("text")))
				return true
			})
			return true
		}
		said.WriteString(stringOf(p.Get("text")))
		return true
	})
	return said.String(), thinking.String()
}

// jsonState tracks a JSON object as it arrives, reading each byte only once.
type jsonState struct {
	depth    int
	quoted   bool // inside a string
	escaped  bool // after a backslash
	started  bool // a byte other than white space has arrived
	finished bool // the outermost value has ended
}

// add reads more of the text.
func (s *jsonState) add(text string) {
	for i := range len(text) {
		switch b := text[i]; {
		case s.escaped:
			s.escaped = false
		case s.quoted:
			s.escaped, s.quoted = b == '\\', b != '"'
		case b == '"':
			s.quoted, s.started = true, true
		case b == '{' || b == '[':
			s.depth, s.started = s.depth+1, true
		case b == '}' || b == ']':
			s.depth--
			s.finished = s.finished || s.depth == 0
		case b > ' ':
			s.started = true
		}
	}
}
