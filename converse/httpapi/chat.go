// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi/internal/chattags"
	"github.com/consort-go/consort/converse/httpapi/internal/eventstream"
	"github.com/consort-go/consort/converse/httpapi/internal/lists"
	"github.com/consort-go/consort/converse/httpapi/internal/openwaits"
	"github.com/consort-go/consort/converse/httpapi/internal/pieces"
	"github.com/consort-go/consort/converse/internal/clienttools"
	"github.com/consort-go/consort/internal/openstreams"
)

// The members of a Chat Completions request. chatMembers have an effect; tuning
// only says how a model writes, which the configuration of the server decides.
var (
	chatMembers = []string{
		"model", "messages", "stream", "stream_options", "n", "tools", "tool_choice", "functions", "response_format", "modalities", "logprobs", "stop",
	}
	tuning = []string{
		"temperature", "top_p", "max_tokens", "max_completion_tokens", "presence_penalty", "frequency_penalty", "seed", "user", "metadata", "store",
		"reasoning_effort", "parallel_tool_calls", "function_call", "service_tier", "safety_identifier", "prompt_cache_key",
		"prompt_cache_retention", "verbosity", "logit_bias", "top_k", "min_p", "repetition_penalty",
	}
)

// chatRequest is a request for a chat completion.
type chatRequest struct {
	model    string
	stream   bool
	usage    bool // the stream has the usage at its end
	messages []inputMessage
	tools    []clienttools.Tool
}

// readChat reads a request.
func (o openAI) readChat(w http.ResponseWriter, r *http.Request) (c chatRequest, err error) {
	m, err := readMembers(w, r, chatMembers, tuning)
	if err != nil {
		return c, err
	}
	var options struct {
		Usage bool `json:"include_usage"`
	}
	for _, read := range []func() error{
		func() (err error) { c.model, err = o.model(m); return err },
		func() error { return m.read("stream", &c.stream) },
		func() error { return m.read("stream_options", &options) },
		func() error { return m.read("messages", (*lists.Of[inputMessage])(&c.messages)) },
		func() error { return m.only("n", "1") },
		func() (err error) { c.tools, err = m.functions(true); return err },
		func() error { return m.only("functions", "[]") },
		func() error { return m.only("response_format", `{"type":"text"}`) },
		func() error { return m.only("modalities", `["text"]`) },
		func() error { return m.only("logprobs", "false") },
		func() error { return m.only("stop", "[]") },
	} {
		if err := read(); err != nil {
			return c, err
		}
	}
	if n := len(c.messages); n == 0 || c.messages[n-1].Role != "user" && c.messages[n-1].Role != "tool" {
		return c, invalid("messages", "The last message is not one of the user, or the result of a tool.", `Send a list whose last message has the role "user" or "tool".`)
	}
	calls := lists.Most
	for i := range c.messages {
		if err := c.messages[i].readCalls(fmt.Sprintf("messages[%d]", i), &calls); err != nil {
			return c, err
		}
	}
	c.usage = options.Usage
	return c, nil
}

// chat answers a request for a chat completion. The messages say which stored conversation
// they continue.
func (o openAI) chat(w http.ResponseWriter, r *http.Request) error {
	owner, err := o.h.owner(r.Context())
	if err != nil {
		return err
	}
	request, err := o.readChat(w, r)
	if err != nil {
		return err
	}
	end, err := o.h.openStream(owner, request.stream)
	if err != nil {
		return err
	}
	defer end()
	s, release, err := o.findChat(r.Context(), owner, request.messages)
	if err != nil {
		return err
	}
	defer release()
	said := newChatDigest(owner, request.messages)
	s.tools, request.messages, request.tools = request.tools, nil, nil // the request can wait for a turn, which can last long
	t, err := o.start(w, r, s)
	if err != nil {
		return err
	}
	defer t.abandon(r.Context())
	a := &chatAnswer{turn: t, request: request, id: fmt.Sprintf("chatcmpl-%s-%d", t.conversation, t.after), created: time.Now().Unix()}
	if request.stream {
		a.stream = eventstream.New(w, o.h.Heartbeat)
		defer a.stream.Stop()
	}
	if err := a.follow(r.Context()); err != nil {
		if a.stream != nil && a.stream.HasBegun() {
			a.stream.Send("", "", asError(openstreams.Explain(r.Context(), err)).body())
			a.stream.Flush()
			return nil
		}
		return err
	}
	if said.add("assistant", strings.TrimSpace(a.text)); !a.isCancelled { // the log does not have its text then
		o.remember(r.Context(), t, said.tag(), a.question)
	}
	if !request.stream {
		writeJSON(w, http.StatusOK, a.completion())
		return nil
	}
	a.end()
	return nil
}

// findChat returns how a request continues: with the conversation whose answer is the last
// one of the messages, or with a new one that begins with them.
func (o openAI) findChat(ctx context.Context, owner string, messages []inputMessage) (s turnRequest, release func(), err error) {
	release = func() {}
	last := 0 // after the last answer
	for i, m := range messages {
		if m.Role == "assistant" {
			last = i + 1
		}
	}
	all := newEarlierMessages()
	earlierErr, err := s.readMessages(messages, last, all)
	if err != nil {
		return s, release, err
	}
	if last > 0 {
		if done, err := o.findCalls(ctx, messages[last-1].calls, &s); done || err != nil {
			return s, release, err
		}
	}
	switch {
	case earlierErr != nil:
		return s, release, earlierErr
	case len(s.returned) > 0 && len(s.message) == 0:
		return s, release, noCall(s.returned[0].at)
	case len(s.message) == 0:
		return s, release, invalid("messages", "The last message is empty.", "Send a text.")
	}
	s.returned = nil // they belong to the past
	if last > 0 {
		if isFound, leave, err := o.findTagged(ctx, owner, messages, last, &s); isFound || err != nil {
			return s, leave, err
		}
	}
	s.earlier = all.canisters
	return s, release, nil
}

// findTagged sets the conversation that ended with the messages up to the last answer, and reports whether there is
// one that the request continues; the caller must call leave then. The answer to a question needs only the question:
// some clients change the messages before it, such as instructions that say what time it is.
func (o openAI) findTagged(ctx context.Context, owner string, messages []inputMessage, last int, s *turnRequest) (isFound bool, leave func(), err error) {
	past := newChatDigest(owner, messages[:last])
	tag, question := past.tag(), questionIn(&messages[last-1])
	isReply := question != "" && isAnswer(canister.TextOf(s.message))
	isOnlyUser := !slices.ContainsFunc(messages[last:], func(m inputMessage) bool { return m.Role != "user" })
	found, end, is := o.tagged(ctx, owner, tag)
	if !is && isReply {
		found, end, is = o.tagged(ctx, owner, chattags.Question(question))
	}
	switch {
	case is && isOnlyUser && o.h.claimed.Claim(tag):
		if err := o.continueChat(ctx, found, end, question, s); err != nil {
			o.h.claimed.Add(tag, -1)
			return false, nil, err
		}
		return true, func() { o.h.claimed.Add(tag, -1) }, nil
	case isReply:
		return false, nil, notAsked()
	}
	return false, nil, nil
}

// readMessages reads the messages of a request: those after the last answer into s, and the
// others, with the results, into the past of a new conversation. earlierErr says why they cannot
// be its past.
func (s *turnRequest) readMessages(messages []inputMessage, last int, all *earlierMessages) (earlierErr, err error) {
	for i := range messages {
		m, at := &messages[i], fmt.Sprintf("messages[%d]", i)
		switch {
		case i >= last && m.Role == "user":
			c, err := m.canister(at)
			if err != nil {
				return nil, err
			}
			s.message = append(s.message, canister.ContentOf(c)...)
			continue
		case i >= last && m.Role == "tool":
			content, err := partsOf(at+".content", m.Content)
			if err != nil {
				return nil, err
			}
			s.returned = append(s.returned, clientResult{at: at + ".tool_call_id", call: m.ToolCallID, content: content})
		}
		if err := all.add(m, at); err != nil && earlierErr == nil {
			earlierErr = err
		}
	}
	all.close()
	return earlierErr, nil
}

// findCalls sets the conversation whose last answer has calls of the client, and reports whether
// there is one that the request continues.
func (o openAI) findCalls(ctx context.Context, calls []toolCall, s *turnRequest) (bool, error) {
	if len(calls) == 0 {
		return false, nil
	}
	found, isOwn := o.h.callOwned(ctx, calls[0].ID)
	if !isOwn {
		return false, nil
	}
	_, open, err := o.h.state(ctx, found.ID)
	if err != nil {
		return false, err
	}
	waiting, others := openwaits.Split(open)
	isOpen := slices.ContainsFunc(waiting, func(wait openwaits.Wait) bool {
		id := callID(found.ID, wait.Invocation)
		return slices.ContainsFunc(calls, func(call toolCall) bool { return call.ID == id })
	})
	if !isOpen && len(s.message) > 0 {
		repeated, err := o.h.repeats(ctx, found, *s)
		if repeated {
			s.conversation = found.ID
		}
		return repeated, err // otherwise the conversation has gone on
	}
	s.conversation = found.ID
	if len(s.message) > 0 && len(others) > 0 {
		s.answers, err = parseAnswers(found.ID, others, sendResults, canister.TextOf(s.message))
		s.message = nil
	}
	return true, err
}

// answersIn returns the answers that a message gives to the waits of a conversation. The question, which is empty if
// the chat has shown none, must be about these waits. Chat programs have no other way to answer. Other messages are
// refused while it waits.
func (o openAI) answersIn(ctx context.Context, of history.Info, question, text string) ([]canister.Answer, error) {
	sets, err := openwaits.Asked(ctx, o.h.store, of.ID)
	if err != nil {
		return nil, err
	}
	for _, asked := range slices.Backward(sets) {
		_, others := openwaits.Split(asked)
		isAsked := questionOf(others) == question
		// The log may have some of its answers: those before one that could not be given.
		others = slices.DeleteFunc(others, func(wait openwaits.Wait) bool {
			_, isOpen := openwaits.Find(sets[len(sets)-1:], wait.ID)
			return !isOpen
		})
		if isAsked && len(others) > 0 {
			return parseAnswers(of.ID, others, "", text)
		}
	}
	if question != "" && isAnswer(text) {
		return nil, notAsked()
	}
	_, waiting, err := o.h.state(ctx, of.ID)
	if err != nil {
		return nil, err
	}
	_, others := openwaits.Split(waiting)
	return parseAnswers(of.ID, others, notShown, text)
}

// chatAnswer is the answer to one request.
type chatAnswer struct {
	turn    *turn
	request chatRequest
	stream  *eventstream.Stream // nil if the answer is whole
	id      string
	created int64

	text     string
	calls    []toolCall // of the client's tools, which wait
	question string     // the ID of the question at the end of the text; may be empty
	reason   string     // finish_reason

	isCancelled bool
}

// follow collects the text of the turn, and streams it if it is to be streamed.
func (a *chatAnswer) follow(ctx context.Context) error {
	isFirst := true
	message := &pieces.Writer{}
	message.Send = func(piece string) error {
		if piece == "" {
			return nil
		}
		if isFirst && a.text != "" {
			piece = "\n\n" + piece // between the messages of the model
		}
		isFirst = false
		a.text += piece
		return a.chunk(map[string]any{"content": piece}, nil)
	}
	to := sink{added: func(_ int, c canister.Canister) error {
		complete, is := c.(canister.Assistant)
		if !is {
			return nil
		}
		_, err := message.Complete(complete)
		isFirst = true
		return err
	}}
	if a.stream != nil {
		to.text, to.again, to.idle = message.Text, message.Again, idleOf(a.stream)
		if err := a.chunk(map[string]any{"role": "assistant", "content": ""}, nil); err != nil {
			return err
		}
	}
	ended, err := a.turn.follow(ctx, to)
	if err != nil {
		return err
	}
	a.reason = finishOf(ended.Reason)
	switch a.isCancelled = ended.Reason == converse.ReasonCancelled; {
	case a.isCancelled && a.text == "":
		return errCancelled
	case ended.Reason != converse.ReasonWaiting:
		return nil
	}
	waiting, others := openwaits.Split(a.turn.waits)
	if len(waiting) == 0 {
		isFirst, a.question = true, questionOf(others)
		return message.Send(waitText(others))
	}
	a.reason = "tool_calls" // the others are asked for when these have results
	for _, wait := range waiting {
		a.calls = append(a.calls, callForm(a.turn.conversation, wait))
	}
	return nil
}

// errCancelled answers a request whose turn was cancelled before the model had said anything: an empty answer
// would look like one of the model.
var errCancelled = failure(http.StatusConflict, "cancelled", "The turn was cancelled before it had an answer.", "Send another message.")

func finishOf(reason converse.Reason) string {
	switch {
	case isLimit(reason):
		return "length"
	case reason == converse.ReasonContentFilter:
		return "content_filter"
	}
	return "stop"
}

// form returns the members that a chunk and a whole answer share.
func (a *chatAnswer) form(object string, choice map[string]any) map[string]any {
	choice["index"], choice["logprobs"] = 0, nil
	return map[string]any{"id": a.id, "object": object, "created": a.created, "model": a.request.model, "choices": []any{choice}}
}

// chunk streams a change of the message.
func (a *chatAnswer) chunk(delta map[string]any, finish any) error {
	if a.stream == nil {
		return nil
	}
	form := a.form("chat.completion.chunk", map[string]any{"delta": delta, "finish_reason": finish})
	if a.request.usage {
		form["usage"] = nil
	}
	return a.stream.SendForm("", form)
}

// end ends the stream of an answer. What it writes fails only if the client has gone.
func (a *chatAnswer) end() {
	for i, call := range a.calls {
		delta := map[string]any{"index": i, "id": call.ID, "type": call.Type, "function": call.Function}
		_ = a.chunk(map[string]any{"tool_calls": []any{delta}}, nil)
	}
	_ = a.chunk(map[string]any{}, a.reason)
	if a.request.usage {
		form := a.form("chat.completion.chunk", map[string]any{})
		_ = a.stream.SendForm("", form, "choices", []any{}, "usage", a.usage())
	}
	a.stream.Send("", "", []byte("[DONE]"))
	a.stream.Flush()
}

// completion returns the answer that is not streamed.
func (a *chatAnswer) completion() map[string]any {
	message := map[string]any{"role": "assistant", "content": a.text, "refusal": nil}
	if len(a.calls) > 0 {
		message["tool_calls"] = a.calls
		if a.text == "" {
			message["content"] = nil
		}
	}
	form := a.form("chat.completion", map[string]any{"message": message, "finish_reason": a.reason})
	form["usage"] = a.usage()
	return form
}

func (a *chatAnswer) usage() map[string]any {
	u := a.turn.usage()
	return map[string]any{
		"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"prompt_tokens_details":     map[string]any{"cached_tokens": u.Cached},
		"completion_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning},
	}
}
