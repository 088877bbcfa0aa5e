// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi/internal/eventstream"
	"github.com/consort-go/consort/converse/httpapi/internal/lists"
	"github.com/consort-go/consort/converse/httpapi/internal/openwaits"
	"github.com/consort-go/consort/internal/notes"
)

// The members of a request to the Responses API, in addition to tuning.
var (
	responseMembers = []string{
		"model", "input", "instructions", "previous_response_id", "conversation", "stream", "background", "tools", "tool_choice", "text", "stream_options", "top_logprobs",
	}
	responseTuning = append([]string{"max_output_tokens", "max_tool_calls", "reasoning", "include", "truncation"}, tuning...)
)

// responseRequest is a request for a response.
type responseRequest struct {
	model, previous    string
	asked              string // the conversation whose approval request is answered; may be empty
	stream, background bool
	turn               turnRequest
}

// readResponse reads a request, except for the conversation that it continues.
func (o openAI) readResponse(w http.ResponseWriter, r *http.Request) (q responseRequest, err error) {
	m, err := readMembers(w, r, responseMembers, responseTuning)
	if err != nil {
		return q, err
	}
	var instructions string
	var conversation json.RawMessage
	for _, read := range []func() error{
		func() (err error) { q.model, err = o.model(m); return err },
		func() error { return m.read("stream", &q.stream) },
		func() error { return m.read("background", &q.background) },
		func() error { return m.read("instructions", &instructions) },
		func() error { return m.read("previous_response_id", &q.previous) },
		func() error { return m.read("conversation", &conversation) },
		func() (err error) { q.turn.tools, err = m.functions(false); return err },
		func() error { return m.only("top_logprobs", "0") },
		func() error { return m.plainText(w) },
	} {
		if err := read(); err != nil {
			return q, err
		}
	}
	if q.turn.conversation, err = conversationID(conversation); err != nil {
		return q, err
	}
	isNew := q.previous == "" && q.turn.conversation == ""
	switch {
	case q.previous != "" && q.turn.conversation != "":
		return q, invalid("conversation", "It cannot be combined with previous_response_id.", "Send one of the two.")
	case instructions != "" && isNew:
		q.turn.earlier = []canister.Canister{canister.Supervisor{Content: canister.Texts(instructions)}}
	case instructions != "":
		w.Header().Add("Consort-Ignored", "instructions")
	}
	items, err := readItems(m["input"])
	if err == nil && isNew {
		err = o.resolve(r.Context(), items)
	}
	if err != nil {
		return q, err
	}
	return q, q.readInput(items, isNew)
}

// plainText refuses a form of the output other than text. The verbosity, which clients send by default to some
// models, has no effect.
func (m members) plainText(w http.ResponseWriter) error {
	var text struct{ Format, Verbosity json.RawMessage }
	if err := m.read("text", &text); err != nil {
		return err
	}
	if text.Verbosity != nil {
		w.Header().Add("Consort-Ignored", "text.verbosity")
	}
	return members{"text": text.Format}.only("text", `{"type":"text"}`)
}

// conversationID returns the ID of the member conversation: a string or an object.
func conversationID(value json.RawMessage) (id string, err error) {
	var object struct{ ID string }
	if isNothing(value) {
		return "", nil
	}
	if json.Unmarshal(value, &id) != nil && (json.Unmarshal(value, &object) != nil || object.ID == "") {
		return "", invalid("conversation", "It is neither the ID of a conversation nor an object with an ID.", "Send the ID.")
	}
	if id == "" {
		id = object.ID
	}
	return id, nil
}

// readItems returns the items of the input, which can be a text.
func readItems(value json.RawMessage) (items []inputMessage, err error) {
	var text string
	if json.Unmarshal(value, &text) == nil {
		content, _ := json.Marshal(text) // a string has a JSON form
		return []inputMessage{{Role: "user", Content: content}}, nil
	}
	if err := json.Unmarshal(value, (*lists.Of[inputMessage])(&items)); errors.Is(err, lists.ErrTooLong) {
		return nil, err
	} else if err != nil {
		return nil, invalid("input", "It is neither a text nor a list of items.", "See OpenAI's API reference.")
	}
	return items, nil
}

// readInput reads the input: messages, answers to approval requests, or results of calls.
func (q *responseRequest) readInput(items []inputMessage, isNew bool) error {
	last := 0 // after the last item of the model
	for i, item := range items {
		if item.Role == "assistant" || slices.Contains([]string{"function_call", "mcp_call", referenceType}, item.Type) {
			last = i + 1
		}
	}
	all := newEarlierMessages()
	for i := range items {
		if err := q.readItem(&items[i], fmt.Sprintf("input[%d]", i), i >= last, isNew, all); err != nil {
			return err
		}
	}
	all.close()
	q.turn.earlier = append(q.turn.earlier, all.canisters...)
	n := len(q.turn.answers) + len(q.turn.returned)
	if isNew && q.asked != "" {
		q.turn.conversation, q.turn.earlier, isNew = q.asked, nil, false
	}
	switch {
	case len(q.turn.answers) > 0 && (isNew || len(q.turn.message) > 0):
		return invalid("input", "Approvals need previous_response_id, conversation, or the ID of an mcp_approval_request, and stand alone.", "Send the message after the answer.")
	case n == 0 && len(q.turn.message) == 0:
		return invalid("input", "It has no message of the user.", "Send one.")
	}
	return nil
}

// readItem reads an item of the input. isLast is set after the last one of the model, and isNew
// if no conversation is named, so that earlier items are the past of a new one.
func (q *responseRequest) readItem(item *inputMessage, at string, isLast, isNew bool, all *earlierMessages) error {
	switch item.Type {
	case "", "message":
		return q.readMessage(item, at, isLast, isNew, all)
	case "mcp_approval_response":
		if item.Approve == nil || item.ApprovalRequest == "" {
			return invalid(at, "It has no approval_request_id or no approve.", "Send both.")
		}
		if !isLast {
			return nil // the server has it in the log
		}
		verdict := map[bool]canister.Verdict{true: canister.VerdictAllow, false: canister.VerdictDeny}[*item.Approve]
		conversation, wait := waitOf(item.ApprovalRequest)
		q.asked = cmp.Or(conversation, q.asked)
		return q.turn.answer(at+".approval_request_id", canister.Answer{Wait: wait, Verdict: verdict, Reason: item.Reason})
	case "reasoning", "mcp_list_tools", "mcp_approval_request", referenceType:
		return nil // clients send the output of a response again
	case "function_call", "mcp_call":
		if !isNew {
			return nil // the server has it in the log
		}
		return q.readCall(item, at, all)
	case "function_call_output":
		return q.readOutput(item, at, isLast, isNew, all)
	}
	return unsupported(at+".type", "Send messages, mcp_approval_responses and function_call_outputs; previous_response_id stands for everything earlier.")
}

// readCall reads an earlier call: of a tool of the client, or of the server with its result.
func (q *responseRequest) readCall(item *inputMessage, at string, all *earlierMessages) error {
	call := toolCall{ID: item.CallID}
	call.Function.Name, call.Function.Arguments = item.Name, item.Arguments
	if item.Type == "function_call" {
		return all.add(&inputMessage{Role: "assistant", calls: []toolCall{call}}, at)
	}
	call.ID, call.Function.Name = newID(), item.Server+"__"+item.Name
	if err := all.add(&inputMessage{Role: "assistant", calls: []toolCall{call}}, at); err != nil {
		return err
	}
	result := item.Output
	if isNothing(result) {
		result = item.Error
	}
	return all.add(&inputMessage{Role: "tool", ToolCallID: call.ID, Content: result}, at)
}

// readMessage reads a message of the user, or an earlier one.
func (q *responseRequest) readMessage(item *inputMessage, at string, isLast, isNew bool, all *earlierMessages) error {
	item.ToolCalls, item.ToolCallID = nil, ""
	c, err := item.canister(at)
	switch {
	case err != nil:
		return err
	case item.Role == "user" && isLast:
		q.turn.message = append(q.turn.message, canister.ContentOf(c)...)
	case isNew:
		return all.add(item, at)
	default:
		return unsupported(at+".role", "The server has the earlier messages of the conversation: send only those of the user.")
	}
	return nil
}

// readOutput reads the result of a call of a client's tool.
func (q *responseRequest) readOutput(item *inputMessage, at string, isLast, isNew bool, all *earlierMessages) error {
	content, err := partsOf(at+".output", item.Output)
	if err != nil {
		return err
	}
	if isLast {
		q.turn.returned = append(q.turn.returned, clientResult{at: at + ".call_id", call: item.CallID, content: content})
	}
	if isNew && all.open[item.CallID] != "" {
		return all.add(&inputMessage{Role: "tool", ToolCallID: item.CallID, Content: item.Output}, at)
	}
	return nil
}

// findCall sets the conversation of a request that names none, if it brings the result of a call
// that waits there. Otherwise the results belong to the past of a new conversation.
func (o openAI) findCall(ctx context.Context, s *turnRequest) error {
	if s.conversation != "" || len(s.returned) == 0 {
		return nil
	}
	first := s.returned[0]
	found, isOwn := o.h.callOwned(ctx, first.call)
	isWaiting := false
	if isOwn {
		_, open, err := o.h.state(ctx, found.ID)
		if err != nil {
			return err
		}
		isWaiting = slices.ContainsFunc(open, func(wait openwaits.Wait) bool {
			id := callID(found.ID, wait.Invocation)
			return wait.Client && slices.ContainsFunc(s.returned, func(r clientResult) bool { return r.call == id })
		})
	}
	if isOwn && !isWaiting {
		var err error
		if isWaiting, err = o.h.repeats(ctx, found, *s); err != nil {
			return err
		}
	}
	switch {
	case isOwn && (isWaiting || len(s.message) == 0):
		s.conversation, s.earlier = found.ID, nil
	case len(s.message) == 0:
		return noCall(first.at)
	default:
		s.returned = nil
	}
	return nil
}

// responseID names a response: the conversation and the number of canisters before it.
type responseID struct {
	conversation string
	after        int
}

func (id responseID) String() string { return fmt.Sprintf("resp_%s_%d", id.conversation, id.after) }

// responseOf reads the ID of a response.
func responseOf(text string) (id responseID, ok bool) {
	rest, isResponse := strings.CutPrefix(text, "resp_")
	i := strings.LastIndexByte(rest, '_')
	if !isResponse || i < 1 {
		return id, false
	}
	after, err := strconv.ParseUint(rest[i+1:], 10, 31)
	return responseID{rest[:i], int(after)}, err == nil && history.CheckID(rest[:i]) == nil
}

// noResponse answers requests for a response that does not exist, and for a foreign one.
func noResponse(param string) error {
	return failure(http.StatusNotFound, "response_not_found", "There is no such response.", "Begin a new one.").about(param)
}

// stored returns a response from the log: the canisters after its position until the next message, or until an answer
// to a wait that begins another response. An answer from elsewhere, such as the console, continues the response.
func (o openAI) stored(ctx context.Context, text, param string) (*responseAnswer, history.Info, error) {
	id, ok := responseOf(text)
	if !ok {
		return nil, history.Info{}, noResponse(param)
	}
	found, err := o.h.ownedBy(ctx, id.conversation)
	if known := new(apiError); errors.As(err, &known) && known.status == http.StatusNotFound || err == nil && found.Length <= id.after {
		err = noResponse(param)
	}
	if err != nil {
		return nil, found, err
	}
	t := &turn{h: o.h, conversation: id.conversation, after: id.after}
	a := &responseAnswer{turn: t, id: id.String(), model: o.h.Models()[0]}
	isBegun, hasInput := false, false
	for c, err := range o.h.store.Read(ctx, id.conversation, id.after) {
		if err != nil {
			return nil, found, err
		}
		isInput := c.Kind() == canister.KindUser
		switch c := c.(type) {
		case canister.Answer: // one request can have several
			part, isPart := c.Metadata[partKey]
			isOwn := string(part) == strconv.Itoa(id.after)
			isInput, hasInput = isPart && !isOwn, hasInput || isOwn
		case canister.Assistant:
			a.model = cmp.Or(c.Model, a.model)
		}
		if isInput && isBegun {
			a.isLeft = c.Kind() == canister.KindUser
			break
		}
		isBegun = isBegun || c.Kind() != canister.KindUser && c.Kind() != canister.KindAnswer
		t.canisters = append(t.canisters, c)
	}
	if len(t.canisters) == 0 { // the conversation was deleted meanwhile
		return nil, found, noResponse(param)
	}
	isMessage := t.canisters[0].Kind() == canister.KindUser
	if !isMessage && !hasInput { // other calls of the turn can have added canisters before the answer
		return nil, found, noResponse(param)
	}
	a.created = t.canisters[0].Header().Time
	if !isMessage {
		from := max(0, id.after-maxEarlier)
		if t.earlier, err = history.From(ctx, o.h.store, id.conversation, from); err != nil {
			return nil, found, err
		}
		t.earlier = t.earlier[:min(id.after-from, len(t.earlier))]
	}
	a.items = a.toItems(t.earlier, t.canisters)
	return a, found, nil
}

// maxEarlier is how many canisters before an answer are searched for the call that it is
// about.
const maxEarlier = 512

// respond serves POST /v1/responses.
func (o openAI) respond(w http.ResponseWriter, r *http.Request) error {
	owner, err := o.h.owner(r.Context())
	if err != nil {
		return err
	}
	q, err := o.readResponse(w, r)
	if err != nil {
		return err
	}
	end, err := o.h.openStream(owner, q.stream)
	if err != nil {
		return err
	}
	defer end()
	if q.previous != "" {
		release, err := o.continueResponse(r.Context(), &q)
		defer release()
		if err != nil {
			return err
		}
	}
	if err := o.findCall(r.Context(), &q.turn); err != nil {
		return err
	}
	if len(q.turn.answers) > 0 {
		if err := o.adjustVerdicts(r.Context(), &q.turn); err != nil {
			return err
		}
	}
	t, err := o.start(w, r, q.turn)
	if err != nil {
		return err
	}
	q.turn = turnRequest{} // the turn can last long
	if q.background {      // the turn goes on without the client
		defer t.answered(r.Context())
	} else {
		defer t.abandon(r.Context())
	}
	a := &responseAnswer{
		turn: t, id: responseID{t.conversation, t.after}.String(), model: q.model, previous: q.previous, background: q.background, created: time.Now(), status: "in_progress",
		items: []map[string]any{},
	}
	switch {
	case q.stream:
		return a.streamTo(r.Context(), eventstream.New(w, o.h.Heartbeat))
	case q.background:
		writeJSON(w, http.StatusOK, a.form())
		return nil
	}
	ended, err := t.follow(r.Context(), sink{})
	if err != nil && !errors.Is(err, errFailed) {
		return err
	}
	a.finish(ended, err)
	writeJSON(w, http.StatusOK, a.form())
	return nil
}

// continueResponse sets the conversation that a request continues; the caller must call release. If it
// went on after the previous response, or another request is continuing it there, the request continues
// a fork.
func (o openAI) continueResponse(ctx context.Context, q *responseRequest) (release func(), err error) {
	release = func() {}
	previous, found, err := o.stored(ctx, q.previous, "previous_response_id")
	if err != nil {
		return release, err
	}
	end := previous.turn.after + len(previous.turn.canisters)
	q.turn.conversation, q.turn.from = found.ID, end
	if len(q.turn.answers)+len(q.turn.returned) > 0 {
		return release, nil
	}
	if key := (responseID{found.ID, end}).String(); end >= found.Length && o.h.claimed.Claim(key) {
		release = func() { o.h.claimed.Add(key, -1) }
		if found, err = o.h.store.Info(ctx, found.ID); err != nil || end >= found.Length {
			return release, err
		}
	}
	if isDone, err := o.isDoneAt(ctx, found.ID, end); err != nil || !isDone {
		return release, errors.Join(err, failure(http.StatusConflict, "response_not_completed", "The previous response is not completed.", "Wait for its end, or cancel it."))
	}
	return release, o.fork(ctx, found.ID, end, &q.turn)
}

// isDoneAt reports whether the beginning of a conversation ends with a turn that is over.
func (o openAI) isDoneAt(ctx context.Context, id string, length int) (bool, error) {
	canisters, err := history.From(ctx, o.h.store, id, 0)
	if err != nil {
		return false, err
	}
	_, isDone := nextOf(o.h.Limits, id, canisters[:min(length, len(canisters))], time.Now()).(converse.Done)
	return isDone, nil
}

// adjustVerdicts turns a refusal into the verdict that its wait has for it.
func (o openAI) adjustVerdicts(ctx context.Context, s *turnRequest) error {
	found, err := o.h.ownedBy(ctx, s.conversation)
	if err != nil {
		return err
	}
	asked, err := openwaits.Asked(ctx, o.h.store, found.ID)
	for i, given := range s.answers {
		wait, isAsked := openwaits.Find(asked, given.Wait)
		switch {
		case !isAsked: // continueTurn refuses it
		case given.Verdict == canister.VerdictDeny:
			s.answers[i].Verdict = openwaits.Refusals[wait.For]
		case wait.For == canister.WaitElicitation:
			return invalid("input", "A question of a tool cannot be approved.", "POST /api/conversations/"+found.ID+"/waits/"+wait.ID+" with the answer, or decline with approve false.")
		}
	}
	return err
}

// response writes a stored response.
func (o openAI) response(w http.ResponseWriter, r *http.Request) error {
	for name := range r.URL.Query() {
		if name != "include" && name != "include[]" {
			return unsupported(name, "Follow the conversation with GET /api/conversations/{id}/events.")
		}
	}
	a, found, err := o.stored(r.Context(), r.PathValue("id"), "id")
	if err != nil {
		return err
	}
	return o.writeStored(w, r, a, found)
}

// writeStored writes a stored response.
func (o openAI) writeStored(w http.ResponseWriter, r *http.Request, a *responseAnswer, found history.Info) error {
	if err := o.setStatus(r.Context(), a, found); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, a.form())
	return nil
}

// setStatus sets the status of a stored response.
func (o openAI) setStatus(ctx context.Context, a *responseAnswer, found history.Info) error {
	a.status = "completed"
	for _, c := range a.turn.canisters {
		if message, is := c.(canister.Assistant); is {
			a.ended(cmp.Or(converse.Reason(notes.Limit([]canister.Canister{c})), reasonOf(message.Finish)))
		}
	}
	if a.isLeft {
		turn := append(slices.Clone(a.turn.earlier), a.turn.canisters...)
		step, isDone := nextOf(o.h.Limits, found.ID, turn, turn[len(turn)-1].Header().Time).(converse.Done)
		switch {
		case !isDone:
			a.status, a.incomplete, a.failed = "failed", "", errLeft
		case step.Reason.Limited():
			a.ended(step.Reason)
		}
	}
	if a.turn.after+len(a.turn.canisters) < found.Length {
		return nil
	}
	now := time.Now()
	start, canisters, err := engine.LastTurn(ctx, o.h.store, found.ID, now)
	if err != nil {
		return err
	}
	switch step := nextOf(o.h.Limits, found.ID, canisters, now).(type) {
	case converse.Done:
		if step.Reason.Limited() {
			a.ended(step.Reason)
		}
	case converse.Await:
		a.addWaits(openwaits.Open(found.ID, canisters, now))
	default:
		a.status, a.incomplete = "in_progress", ""
		if ended, hasEnded := givenUp(o.h.engine, found.ID, start, canisters); hasEnded && ended.Error == "" {
			a.ended(ended.Reason)
		} else if hasEnded {
			a.status, a.failed = "failed", errFailed
		}
	}
	return nil
}

// errLeft says that a turn had failed, or was not over yet, when the next message came.
var errLeft = failure(http.StatusBadGateway, "turn_failed", "The turn was not completed before the next message of the conversation.", "Read the conversation.")

// reasonOf returns the reason of a turn whose last message has a finish.
func reasonOf(finish canister.Finish) converse.Reason {
	switch finish {
	case canister.FinishLength:
		return converse.ReasonLength
	case canister.FinishContentFilter:
		return converse.ReasonContentFilter
	case canister.FinishCancelled:
		return converse.ReasonCancelled
	}
	return converse.ReasonAnswered
}

// cancelResponse ends a response that is in progress.
func (o openAI) cancelResponse(w http.ResponseWriter, r *http.Request) error {
	a, found, err := o.stored(r.Context(), r.PathValue("id"), "id")
	if err != nil {
		return err
	}
	if a.turn.after+len(a.turn.canisters) >= found.Length { // the log may have grown since
		if err := o.h.endTurn(r.Context(), found.ID); err != nil {
			return err
		}
		if a, found, err = o.stored(r.Context(), r.PathValue("id"), "id"); err != nil {
			return err
		}
	}
	return o.writeStored(w, r, a, found)
}
