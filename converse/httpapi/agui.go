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
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi/internal/eventstream"
	"github.com/consort-go/consort/converse/httpapi/internal/lists"
	"github.com/consort-go/consort/converse/httpapi/internal/openwaits"
	"github.com/consort-go/consort/converse/httpapi/internal/pieces"
	"github.com/consort-go/consort/converse/internal/clienttools"
	"github.com/consort-go/consort/converse/internal/compaction"
)

// runInput is the RunAgentInput of AG-UI 1.0 (https://docs.ag-ui.com).
type runInput struct {
	Thread string          `json:"threadId"`
	Run    string          `json:"runId"`
	State  json.RawMessage `json:"state"`
	// The rest makes the message or the answers of the run. It takes much more memory than its JSON.
	Messages lists.Of[aguiMessage]      `json:"messages"`
	Tools    lists.Of[clienttools.Tool] `json:"tools"`
	Context  lists.Of[struct {
		Description string `json:"description"`
		Value       string `json:"value"`
	}] `json:"context"`
	Resume lists.Of[openwaits.Resumed] `json:"resume"`
}

// aguiMessage is a message of AG-UI.
type aguiMessage struct {
	inputMessage
	CallID string             `json:"toolCallId"`
	Error  string             `json:"error"`
	Calls  lists.Of[aguiCall] `json:"toolCalls"`
}

// aguiCall is a call of a message of the assistant.
type aguiCall struct {
	ID string `json:"id"`
}

// run serves a run of AG-UI: a message or answers go into the conversation of the thread, and
// the turn comes back as events.
func (h *handler) run(w http.ResponseWriter, r *http.Request) error {
	owner, err := h.owner(r.Context())
	if err != nil {
		return err
	}
	input, err := readRun(w, r)
	if err != nil {
		return err
	}
	end, err := h.openStream(owner, true)
	if err != nil {
		return err
	}
	defer end()
	id := "agui-" + derived("agui", owner, input.Thread)
	calls, results := knownIDs(input.Messages)
	t, err := h.startRun(r.Context(), owner, id, &input)
	if err != nil {
		return err
	}
	defer t.abandon(r.Context())
	w.Header().Set("Consort-Conversation", id)
	a := &aguiRun{turn: t, thread: input.Thread, run: input.Run, state: input.State, id: newID(), stream: eventstream.New(w, h.Heartbeat)}
	defer a.stream.Stop()
	a.body, a.calls, a.results = r.Body.(*requestBody), calls, results
	a.follow(r.Context())
	a.stream.Flush()
	return nil
}

// readRun reads the input of a run. Members that are not known are ignored, as AG-UI
// demands.
func readRun(w http.ResponseWriter, r *http.Request) (input runInput, err error) {
	if err := parse(w, r, &input); err != nil {
		return input, err
	}
	switch {
	case input.Thread == "":
		return input, invalid("threadId", "It is missing.", "Send one.")
	case len(input.Thread) > maxKey:
		return input, invalid("threadId", fmt.Sprintf("It has more than %d bytes.", maxKey), "Send a shorter one.")
	case input.Run == "":
		return input, invalid("runId", "It is missing.", "Send one.")
	}
	return input, checkTools("tools", input.Tools)
}

// startRun sends the message, or the answers, of a run. It drops the parts of the input before they can wait for a turn.
func (h *handler) startRun(ctx context.Context, owner, id string, input *runInput) (*turn, error) {
	found, err := h.store.Info(ctx, id)
	isNew := errors.Is(err, history.ErrNotFound)
	if err == nil && found.Owner == "" && owner != "" {
		// The process that began the thread ended before it recorded the owner. Only this owner
		// can have begun it, because the ID is derived from the owner.
		found.Owner, err = owner, h.store.Describe(ctx, id, history.Change{Owner: &owner})
	}
	switch {
	case err != nil && !isNew:
		return nil, err
	case !isNew && found.Owner != owner:
		return nil, noConversation()
	}
	if len(input.Resume) > 0 && isNew {
		return nil, invalid("resume", "The thread has no interrupt.", "Send a message.")
	}
	known, err := messagesIn(ctx, h.store, id, input)
	if err != nil {
		return nil, err
	}
	earlier, user, err := input.split(isNew, known)
	isResumed, returned := len(input.Resume) > 0, input.results()
	input.Messages, input.Tools, input.Context = nil, nil, nil
	if !isNew {
		t, failed := h.resume(ctx, found, returned, user.Content, input)
		if failed != nil || t != nil && (isResumed || err != nil) {
			return t, failed
		}
	}
	if err != nil {
		return nil, err
	}
	if isNew {
		return h.startNew(ctx, newConversation{id: id, owner: owner, earlier: earlier, message: user})
	}
	send := h.sendMessage
	_, canisters, err := engine.LastTurn(ctx, h.store, id, time.Now())
	if err != nil {
		return nil, err
	}
	user.ID = againID(user.ID, canisters, nextOf(h.Limits, id, canisters, time.Now()))
	t := &turn{h: h, conversation: id, id: user.ID, sent: true}
	if slices.ContainsFunc(canisters, func(c canister.Canister) bool { return c.Header().ID == user.ID }) { // its turn may have failed
		send = func(ctx context.Context, id string, user canister.User) error { // a reader that began now would get the old failure
			t.stale = h.feed.latest.Load()
			return sendTo(engine.MustExist(ctx), h.engine, id, user)
		}
		h.followed.Add(id, 1) // it waits for the turn if that is under way
		defer h.followed.Add(id, -1)
	}
	if err := h.Admit(ctx, Entry{Conversation: id, Canister: user}, func(ctx context.Context) error { return send(ctx, id, user) }); err != nil {
		return nil, err
	}
	t.after = h.before(ctx, id, user.ID, found.Length)
	if now, err := h.store.Info(ctx, id); err == nil && t.after == now.Length { // the message was there before
		t.after = h.before(ctx, id, user.ID, 0)
	}
	return t, nil
}

// againID returns the ID of a message that a run sends. If the turn of the message was cancelled, the run wants
// an answer, so the message enters again, with another ID.
func againID(id string, canisters []canister.Canister, step converse.Command) string {
	last, again := compaction.LastUserID(canisters), id
	for range 64 { // that often a message can be sent again
		next := derived("again", again)
		done, isDone := step.(converse.Done)
		switch {
		case again != last:
			again = next
		case isDone && done.Reason == converse.ReasonCancelled:
			return next
		default:
			return again
		}
	}
	return id
}

// messagesIn returns the IDs of the messages of the user in the log of a thread, if a run has several of them at its
// end. Front ends keep a message whose turn has failed or was stopped, and send it before the next one.
func messagesIn(ctx context.Context, log history.Log, thread string, input *runInput) (map[string]bool, error) {
	known := map[string]bool{}
	if n := len(input.Messages); n < 2 || input.Messages[n-2].Role != "user" {
		return known, nil
	}
	for c, err := range log.Read(ctx, thread, 0) {
		if err != nil {
			return nil, err
		}
		known[c.Header().ID] = c.Kind() == canister.KindUser
	}
	return known, nil
}

// split returns the messages before the new ones of the user, and the new ones as one. known has the IDs of the
// messages that the log has. They are skipped, except for the last message of the run, which is sent again. The earlier
// ones are read only if they begin a thread: otherwise the server has them in the log.
func (input *runInput) split(isNew bool, known map[string]bool) (earlier []canister.Canister, user canister.User, err error) {
	last := 0 // after the last message that is not the user's, or that the log has
	for i, m := range input.Messages {
		if m.Role != "user" || known[m.ID] && i < len(input.Messages)-1 {
			last = i + 1
		}
	}
	for i, m := range input.Messages {
		if i < last && !isNew || m.Role == "activity" || m.Role == "reasoning" || m.Role == "tool" || m.Role == "assistant" && isNothing(m.Content) {
			continue // the server has them in the log
		}
		m.ToolCalls = nil
		c, err := m.canister(fmt.Sprintf("messages[%d]", i))
		if err != nil {
			return nil, canister.User{}, err
		}
		if one, is := c.(canister.User); is && i >= last {
			user.Content = append(user.Content, one.Content...)
			user.ID = m.ID
			continue
		}
		earlier = append(earlier, c)
	}
	if len(user.Content) == 0 {
		return nil, user, invalid("messages", "The last message is not one of the user.", "Send a message, or answer the interrupts with resume.")
	}
	user.Metadata = clienttools.With(nil, input.Tools)
	if user.ID == "" || len(user.ID) > maxMessageID {
		user.ID = newID()
	}
	for _, known := range input.Context {
		user.Content = append(user.Content, canister.Text("Context: "+known.Description+": "+known.Value))
	}
	return earlier, user, nil
}

// knownIDs returns the IDs of the calls and of the results that the client has already, from an earlier run of its
// message. The run, which can last long, does not need its messages for more.
func knownIDs(messages []aguiMessage) (calls, results map[string]bool) {
	calls, results = map[string]bool{}, map[string]bool{}
	for _, m := range messages {
		switch m.Role {
		case "assistant":
			for _, call := range m.Calls {
				calls[call.ID] = true
			}
		case "tool":
			results[m.CallID] = true
		}
	}
	return calls, results
}

// results returns the results of the client's tools among the messages.
func (input *runInput) results() (all []clientResult) {
	for i, m := range input.Messages {
		if m.Role != "tool" {
			continue
		}
		at := fmt.Sprintf("messages[%d]", i)
		content, err := partsOf(at+".content", m.Content)
		if err != nil && m.Error == "" {
			content = canister.Texts(string(m.Content)) // the model reads its JSON
		}
		if m.Error != "" {
			content = canister.Texts(m.Error)
		}
		all = append(all, clientResult{at: at, call: m.CallID, content: content, failed: m.Error != ""})
	}
	return all
}

// resume answers the interrupts of a run, and the calls of the client's tools that have results
// among the messages. The turn is nil if there is nothing to answer. The message enters afterwards, unless the run
// answers interrupts.
func (h *handler) resume(ctx context.Context, found history.Info, returned []clientResult, message []canister.Content, input *runInput) (*turn, error) {
	asked, err := openwaits.Asked(ctx, h.store, found.ID)
	if err != nil {
		return nil, err
	}
	s := turnRequest{conversation: found.ID, ignoreUnknown: true, callID: func(invocation string) string { return invocation }}
	if s.returned = returned; len(input.Resume) == 0 {
		s.message = message
	}
	for i, entry := range input.Resume {
		wait, isAsked := openwaits.Find(asked, entry.Interrupt)
		if !isAsked || wait.Client {
			return nil, invalid(fmt.Sprintf("resume[%d].interruptId", i), "No such interrupt is open.", "Answer the interrupts of the last run.")
		}
		given, ok := entry.Answer(wait)
		if !ok {
			return nil, invalid(fmt.Sprintf("resume[%d].payload", i), "It is not an object with the member approved.", "See the responseSchema of the interrupt.")
		}
		if err := s.answer(fmt.Sprintf("resume[%d].interruptId", i), given); err != nil {
			return nil, err
		}
	}
	input.Resume = nil
	t, err := h.continueTurn(ctx, found, s)
	if err != nil || len(s.answers)+len(t.returned) > 0 {
		return t, err
	}
	return nil, nil
}

// aguiRun is a run whose events are streamed.
type aguiRun struct {
	turn           *turn
	body           *requestBody
	thread, run    string
	state          json.RawMessage // of the client; nil after the snapshot
	calls, results map[string]bool // IDs that the client has already

	stream *eventstream.Stream
	pieces pieces.Writer
	id     string // begins the IDs of the messages: an earlier run of the same turn had others
	open   string // ID of the message that is being written; empty if none is
	number int    // of messages
	isOwn  bool   // the state is this server's: the client has none, or an object
}

// event writes an event; the members come in pairs.
func (a *aguiRun) event(kind string, members ...any) error {
	return a.stream.SendForm("", map[string]any{"type": kind}, members...)
}

func (a *aguiRun) follow(ctx context.Context) {
	a.pieces.Send = a.piece
	err := errors.Join(a.event("RUN_STARTED", "threadId", a.thread, "runId", a.run), a.snapshot())
	a.state = nil
	a.body.keep(a.size())
	var ended engine.Ended
	if err == nil {
		ended, err = a.turn.follow(ctx, sink{text: a.pieces.Text, again: a.pieces.Again, added: a.add, idle: idleOf(a.stream)})
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		e := asError(err)
		_ = a.event("RUN_ERROR", "message", e.Message+" "+e.Advice, "code", e.Code)
	default:
		a.end(ended)
	}
}

// freeIDs is how many bytes of IDs a run may have without holding memory of its body.
const freeIDs = 16 << 10

// idSize is about how many bytes a map takes for an ID, besides its text.
const idSize = 48

// size returns how many bytes of its body a run holds until its end.
func (a *aguiRun) size() int64 {
	size := len(a.run) - freeIDs
	for _, ids := range []map[string]bool{a.calls, a.results} {
		for id := range ids {
			size += len(id) + idSize
		}
	}
	return int64(max(0, size))
}

// stateOf is the state of a conversation that clients see under consort.
func (a *aguiRun) stateOf(position int, status string) map[string]any {
	return map[string]any{"conversation": a.turn.conversation, "position": position, "status": status}
}

// snapshot sends the state of the client with a member for the conversation. A state that is not an
// object is sent unchanged.
func (a *aguiRun) snapshot() error {
	state := map[string]any{}
	if isNothing(a.state) || json.Unmarshal(a.state, &state) == nil && state != nil {
		a.isOwn = true
		state["consort"] = a.stateOf(a.turn.after, "running")
		return a.event("STATE_SNAPSHOT", "snapshot", state)
	}
	return a.event("STATE_SNAPSHOT", "snapshot", a.state)
}

// change sends a change of the state of the conversation.
func (a *aguiRun) change(position int, status string) error {
	if !a.isOwn {
		return nil
	}
	patch := []map[string]any{{"op": "replace", "path": "/consort", "value": a.stateOf(position, status)}}
	return a.event("STATE_DELTA", "delta", patch)
}

func (a *aguiRun) piece(text string) error {
	if text == "" {
		return nil
	}
	if a.open == "" {
		a.open = fmt.Sprintf("%s-%d", a.id, a.number)
		a.number++
		if err := a.event("TEXT_MESSAGE_START", "messageId", a.open, "role", "assistant"); err != nil {
			return err
		}
	}
	return a.event("TEXT_MESSAGE_CONTENT", "messageId", a.open, "delta", text)
}

// add sends the events that a canister of the log completes.
func (a *aguiRun) add(position int, c canister.Canister) error {
	var err error
	switch c := c.(type) {
	case canister.Assistant:
		if _, err = a.pieces.Complete(c); err == nil && a.open != "" {
			err = a.event("TEXT_MESSAGE_END", "messageId", a.open)
			a.open = ""
		}
	case canister.Invocation:
		if c.Parent == "" && !a.calls[c.ID] {
			err = errors.Join(a.event("TOOL_CALL_START", "toolCallId", c.ID, "toolCallName", c.Name),
				a.event("TOOL_CALL_ARGS", "toolCallId", c.ID, "delta", cmp.Or(c.Arguments, "{}")), a.event("TOOL_CALL_END", "toolCallId", c.ID))
		}
	case canister.Result:
		if c.Parent == "" && !a.turn.returned[c.Invocation] && !a.results[c.Invocation] {
			err = a.event("TOOL_CALL_RESULT", "messageId", "result-"+c.Invocation, "toolCallId", c.Invocation, "content", resultText(c), "role", "tool")
		}
	}
	return errors.Join(err, a.change(position, "running"))
}

// end ends the run.
func (a *aguiRun) end(ended engine.Ended) {
	status, outcome := stateDone, map[string]any{"type": "success"}
	switch ended.Reason {
	case converse.ReasonWaiting:
		interrupts := []map[string]any{}
		_, others := openwaits.Split(a.turn.waits)
		for _, wait := range others {
			interrupts = append(interrupts, openwaits.Interrupt(wait))
		}
		if status = stateWaiting; len(others) > 0 { // the others are calls that the client makes
			outcome = map[string]any{"type": "interrupt", "interrupts": interrupts}
		}
	case converse.ReasonCancelled:
		outcome = nil // AG-UI has none for it, and its clients refuse an event with another one
	}
	u := a.turn.usage()
	usage := []map[string]any{{"inputTokens": u.Input, "outputTokens": u.Output, "totalTokens": u.Total()}}
	members := []any{"threadId", a.thread, "runId", a.run, "usage", usage, "result", map[string]any{"reason": ended.Reason}}
	if outcome != nil {
		members = append(members, "outcome", outcome)
	}
	_ = errors.Join(a.change(a.turn.after+len(a.turn.canisters), status), a.event("RUN_FINISHED", members...))
}
