// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi/internal/lists"
	"github.com/consort-go/consort/converse/httpapi/internal/openwaits"
	"github.com/consort-go/consort/converse/httpapi/internal/repeats"
	"github.com/consort-go/consort/converse/internal/clienttools"
	"github.com/consort-go/consort/converse/waits"
)

// clientResult is the result of a call of a client's tool, as a request brings it.
type clientResult struct {
	at      string // names it in errors
	call    string // the ID that the client got for the call
	content []canister.Content
	failed  bool
}

// checkTools returns an error that names the first tool that cannot be offered. member is the
// list of the request.
func checkTools(member string, tools []clienttools.Tool) error {
	if i, err := clienttools.Check(tools); err != nil {
		return invalid(fmt.Sprintf("%s[%d]", member, i), strings.ToUpper(err.Error()[:1])+err.Error()[1:]+".", "Change the tool, or leave it out.")
	}
	return nil
}

// functions reads the tools of a request of OpenAI's API. isNested is set if their members are
// in a member function, as in Chat Completions. With the choice "none" they are not offered.
func (m members) functions(isNested bool) ([]clienttools.Tool, error) {
	var forms lists.Of[struct {
		Type string `json:"type"`
		clienttools.Tool
		Function clienttools.Tool `json:"function"`
	}]
	if err := m.read("tools", &forms); err != nil {
		return nil, err
	}
	var tools []clienttools.Tool
	for i, form := range forms {
		if form.Type != "function" {
			return nil, unsupported(fmt.Sprintf("tools[%d].type", i), `Send tools of the type "function"; the server's own need not be sent.`)
		}
		if isNested {
			form.Tool = form.Function
		}
		tools = append(tools, form.Tool)
	}
	if err := checkTools("tools", tools); err != nil {
		return nil, err
	}
	if err := m.only("tool_choice", `"auto"`, `"none"`); err != nil || string(m["tool_choice"]) == `"none"` {
		return nil, err
	}
	return tools, nil
}

// callID returns the ID under which a client of OpenAI's API gets a call. It has the ID of the
// conversation, so that the result alone says where it belongs.
func callID(conversation, invocation string) string {
	return "call_" + conversation + "_" + derived("call", invocation)[:16]
}

// callOwned returns the conversation of a call, if it belongs to the caller.
func (h *handler) callOwned(ctx context.Context, call string) (history.Info, bool) {
	rest, isCall := strings.CutPrefix(call, "call_")
	i := strings.LastIndexByte(rest, '_')
	if !isCall || i < 1 {
		return history.Info{}, false
	}
	found, err := h.ownedBy(ctx, rest[:i])
	return found, err == nil
}

// answersToGive are the answers to waits that are made from the results of a request.
type answersToGive struct {
	answers     []canister.Answer
	invocations map[string]bool // with a result of this client
	last        int             // index of the last answer that the log has already, or -1
	unknown     []clientResult  // results of calls that are not the client's
}

// answersTo makes results into answers to waits. The turn is the last one of a conversation, and id
// returns the ID that the client has for an invocation. A result that the log has already is not
// answered again, so that a request can be repeated.
func answersTo(conversation string, turn []canister.Canister, all []clientResult, id func(invocation string) string) (g answersToGive, err error) {
	g.invocations, g.last = map[string]bool{}, -1
	asked, answered, over := map[string]canister.Wait{}, map[string]int{}, map[string]bool{}
	for i, c := range turn {
		switch c := c.(type) {
		case canister.Wait:
			if clienttools.IsCall(c) && (c.Conversation == "" || c.Conversation == conversation) {
				asked[id(c.Invocation)] = c
			}
		case canister.Answer:
			answered[c.ID], over[c.Wait] = i, true
		case canister.Result:
			over[c.Invocation] = true
		}
	}
	for _, one := range all {
		wait, isAsked := asked[one.call]
		if !isAsked { // it may be a long one of a server's tool, which AG-UI's clients send again
			g.unknown = append(g.unknown, one)
			continue
		}
		answer, err := one.answer(wait)
		i, isRepeated := answered[answer.ID]
		switch {
		case err != nil:
			return g, err
		case !isRepeated && (over[wait.ID] || over[wait.Invocation]):
			g.unknown = append(g.unknown, one)
			continue
		case g.invocations[wait.Invocation]:
			return g, invalid(one.at, "The call has two results.", "Send one.")
		case isRepeated:
			g.last = max(g.last, i)
		default:
			g.answers = append(g.answers, answer)
		}
		g.invocations[wait.Invocation] = true
	}
	return g, nil
}

// answer returns the answer that a result is. The same result has the same ID.
func (r *clientResult) answer(wait canister.Wait) (canister.Answer, error) {
	answer := canister.Answer{Wait: wait.ID, Verdict: canister.VerdictAccept, Content: r.content}
	if r.failed {
		answer.Verdict = canister.VerdictDecline
	}
	line, err := lineOf(answer, r.at)
	answer.ID = derived("result", line)
	return answer, err
}

// lineOf returns the JSON form of an answer that a request has as a part, or the error of one that is too large.
func lineOf(answer canister.Answer, part string) (string, error) {
	line, err := canister.Marshal(answer)
	switch {
	case err != nil:
		return "", invalid(part, "It cannot be stored.", "Send text in UTF-8.")
	case len(line) > maxAnswer:
		message := fmt.Sprintf("%q: It has more than %d bytes in the form in which it is stored.", part, maxAnswer)
		return "", failure(http.StatusRequestEntityTooLarge, "too_large", message, "Send less.")
	}
	return string(line), nil
}

// maxAnswer bounds an answer, and the result of a client's tool, in its JSON form, in bytes. What the engine adds to it
// has room below [waits.MaxAnswer].
const maxAnswer = waits.MaxAnswer / 2

// partKey is a member of the metadata of answers: the position where a response begins.
// Answers with the same position belong to one response.
const partKey = "io.github.consort-go/part"

// continueTurn answers waits of a conversation and returns the turn that goes on. If the request is
// repeated with its message, it returns the turn of the message.
func (h *handler) continueTurn(ctx context.Context, found history.Info, s turnRequest) (*turn, error) {
	t, err := h.continued(ctx, found)
	if err == nil && len(s.message) > 0 { // it would be refused after the answers were given
		err = mayWait(ctx)
	}
	if err != nil {
		return nil, err
	}
	id := s.callID
	if id == nil {
		id = func(invocation string) string { return callID(found.ID, invocation) }
	}
	g, err := answersTo(found.ID, t.earlier, s.returned, id)
	if err != nil {
		return nil, err
	}
	if len(g.unknown) > 0 && !s.ignoreUnknown {
		isEarlier, err := h.answeredEarlier(ctx, t, g.unknown, id)
		switch {
		case err != nil:
			return nil, err
		case len(s.message) == 0 || !isEarlier:
			return nil, noCall(g.unknown[0].at)
		case len(s.answers)+len(g.answers) == 0 && t.beganWith(s):
			t.after, t.earlier = t.after-len(t.earlier), nil
			t.repeated, t.sent = true, true
			return t, nil
		}
	}
	if answers := append(s.answers, g.answers...); len(answers) > 0 {
		left, err := t.unanswered(ctx, answers)
		if err != nil {
			return nil, err
		}
		for i, one := range left {
			one.Metadata = canister.Fields{partKey: json.RawMessage(strconv.Itoa(t.after))}
			if err := h.answerWait(ctx, found, one, &t.stale); err != nil {
				return nil, &laterError{err, left[:i]}
			}
		}
	} else if g.last >= 0 && len(s.message) == 0 { // the request is repeated
		t.after -= len(t.earlier) - g.last
		t.earlier = t.earlier[:g.last]
	}
	t.returned, t.sent = g.invocations, true
	return t, nil
}

// repeats reports whether the last turn of a conversation began with the message of a request
// whose results the log has already.
func (h *handler) repeats(ctx context.Context, found history.Info, s turnRequest) (bool, error) {
	t, err := h.continued(ctx, found)
	if err != nil || len(s.message) == 0 || len(s.answers) > 0 || !t.beganWith(s) {
		return false, err
	}
	return h.answeredEarlier(ctx, t, s.returned, func(invocation string) string { return callID(found.ID, invocation) })
}

// answeredEarlier reports whether the log has results already, before a turn.
func (h *handler) answeredEarlier(ctx context.Context, t *turn, all []clientResult, id func(invocation string) string) (bool, error) {
	begin := t.after - len(t.earlier)
	from := max(0, begin-maxEarlier)
	canisters, err := history.From(ctx, h.store, t.conversation, from)
	if err != nil {
		return false, err
	}
	g, err := answersTo(t.conversation, canisters[:min(begin-from, len(canisters))], all, id)
	return len(g.unknown)+len(g.answers) == 0, err
}

// beganWith reports whether a turn began with the message of a request, after what the request
// continues.
func (t *turn) beganWith(s turnRequest) bool {
	if len(t.earlier) == 0 || t.after-len(t.earlier) < s.from {
		return false
	}
	return repeats.Same(t.earlier[0], canister.User{Content: s.message})
}

// noCall answers a result for which no call waits.
func noCall(at string) error {
	return invalid(at, "No call of a tool of yours with this ID waits for a result.", "Send the results of the calls in the last answer, or a message.")
}

// sendMessage sends a message. It ends calls that still wait for a result of the client, which has gone
// on without them.
func (h *handler) sendMessage(ctx context.Context, id string, user canister.User) error {
	for tries := 0; ; tries++ {
		err := h.sendToEngine(engine.MustExist(ctx), id, user)
		if !errors.Is(err, engine.ErrWaiting) || tries == maxSendTries {
			return err
		}
		_, open, unread := h.state(ctx, id)
		if unread != nil {
			return unread
		}
		switch calls, others := openwaits.Split(open); {
		case len(others) > 0:
			return err
		case len(calls) == 0:
			continue // answered meanwhile: the message comes after the turn that goes on
		}
		if failed := h.endTurn(ctx, id); failed != nil {
			return failed
		}
	}
}

// maxSendTries is how often sendMessage tries again to send a message to a turn that waits for the client.
const maxSendTries = 3

// earlierMessages collects the earlier messages of a new conversation, so that each call has one result.
type earlierMessages struct {
	canisters []canister.Canister
	message   int               // index of the message that calls belong to, or -1
	open      map[string]string // invocations without a result, by the client's ID
	order     []string          // the same in order, and some that have one
}

func newEarlierMessages() *earlierMessages {
	return &earlierMessages{message: -1, open: map[string]string{}}
}

// add adds a message, or the result of a call.
func (p *earlierMessages) add(m *inputMessage, at string) error {
	if m.Role == "tool" {
		content, err := partsOf(at+".content", m.Content)
		invocation, isOpen := p.open[m.ToolCallID]
		switch {
		case err != nil:
			return err
		case !isOpen:
			return invalid(at+".tool_call_id", "No call before it has this ID, or it has a result.", "Send the message with the call, and one result.")
		}
		p.end(m.ToolCallID, canister.Result{Invocation: invocation, Content: content})
		p.message = -1
		return nil
	}
	if len(m.calls) == 0 || p.message < 0 || !isNothing(m.Content) {
		p.close()
		c, err := m.canister(at)
		if err != nil {
			return err
		}
		p.canisters, p.message = append(p.canisters, canister.WithHead(c, canister.Head{ID: newID()})), -1
		if c.Kind() == canister.KindAssistant {
			p.message = len(p.canisters) - 1
		}
	}
	for _, call := range m.calls {
		message := p.canisters[p.message].(canister.Assistant)
		message.Finish = canister.FinishInvocations
		p.canisters[p.message] = message
		if p.open[call.ID] != "" || call.ID == "" || call.Function.Name == "" {
			return invalid(at+".tool_calls", "A call has no ID or name, or the ID of another one.", "Send the calls as they were.")
		}
		one := canister.Invocation{
			Head: canister.Head{ID: newID()}, Message: message.ID, CallID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments,
		}
		p.canisters = append(p.canisters, one)
		p.open[call.ID], p.order = one.ID, append(p.order, call.ID)
	}
	return nil
}

// end adds the result of an open call.
func (p *earlierMessages) end(call string, result canister.Result) {
	result.ID = newID()
	p.canisters = append(p.canisters, result)
	delete(p.open, call)
}

// close gives each open call a result.
func (p *earlierMessages) close() {
	for _, call := range p.order {
		if p.open[call] == "" {
			continue
		}
		none := canister.Result{Invocation: p.open[call], Code: "CANCELED", Content: canister.Texts("The call has no result.")}
		p.end(call, none)
	}
	p.order, p.message = nil, -1
}

// toolCall is a call of a function in a message of Chat Completions.
type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// callForm returns the form of a call that waits for the client.
func callForm(conversation string, wait openwaits.Wait) toolCall {
	call := toolCall{ID: callID(conversation, wait.Invocation), Type: "function"}
	call.Function.Name, call.Function.Arguments = wait.Tool, wait.Arguments
	return call
}

// readCalls reads the calls of a message. most is how many it may have, and then how many the next ones may have.
func (m *inputMessage) readCalls(at string, most *int) error {
	if isNothing(m.ToolCalls) {
		return nil
	}
	err := json.Unmarshal(m.ToolCalls, (*lists.Of[toolCall])(&m.calls))
	if *most -= len(m.calls); *most < 0 || errors.Is(err, lists.ErrTooLong) {
		return lists.ErrTooLong
	}
	if m.Role != "assistant" || err != nil {
		return invalid(at+".tool_calls", "They are not the calls of a message of the assistant.", "See OpenAI's API reference.")
	}
	return nil
}
