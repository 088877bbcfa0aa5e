// SPDX-License-Identifier: Apache-2.0

package anthropicmodel

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/internal/modelapi"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/notes"
)

// messages is one request to Messages.
type messages struct {
	ctx        context.Context
	m          *Model
	request    *converse.Request
	transcript *modelapi.Transcript
	// paused has the blocks of an answer that the server has paused; rounds is how often.
	paused    []*block
	rounds    int
	container string         // the ID of the place where the server has run code
	forced    bool           // the last request forces a call because it must
	usage     canister.Usage // of the rounds before
}

var _ modelapi.API = (*messages)(nil)

// maxRounds limits how often a paused answer is continued. An answer that is still paused
// then is incomplete.
const maxRounds = 20

// Encode implements [modelapi.API].
func (r *messages) Encode() ([]byte, *modelapi.BodyRef, error) {
	r.transcript.Recall(r.m.server, r.request.History)
	r.transcript.LeaveOut(r.request.History, r.beforeSummary(), omittedKey)
	fields, err := r.transcript.Fields(r.request, strconv.FormatBool(r.goesOnWithoutThinking()), r.fields)
	if err != nil {
		return nil, nil, fmt.Errorf("anthropicmodel: %w", err)
	}
	system, history := leading(r.request.History)
	writer := &messageWriter{m: r.m, transcript: r.transcript, render: modelapi.Renderer{NoImages: r.m.opts.NoImages, Files: true, Images: r.transcript.Images(), Refused: r.transcript.Refused()}}
	return r.transcript.Body(history, `{"messages":[`, writer.write, func(dst []byte) []byte {
		return r.appendTail(dst, writer, system, fields)
	})
}

// leading splits a history into the supervisors at its beginning and the rest.
func leading(history []canister.Canister) (system, rest []canister.Canister) {
	for i, c := range history {
		if _, ok := c.(canister.Supervisor); !ok {
			return history[:i], history[i:]
		}
	}
	return history, nil
}

// appendTail appends the rest of a body after its messages: what the server paused, or a
// request to go on with an answer, the system prompt, the fields and the tools.
func (r *messages) appendTail(dst []byte, w *messageWriter, system []canister.Canister, fields string) []byte {
	if endsWithAnswer(r.request.History) {
		dst = append(appendText(append(jsontext.AppendComma(dst), `{"role":"user","content":[`...), "[continue]"), "]}"...)
	}
	if len(r.paused) > 0 {
		dst = append(jsontext.AppendMember(append(jsontext.AppendComma(dst), '{'), "role", "assistant"), `,"content":[`...)
		for _, b := range r.paused {
			if b.canBeSent() {
				dst = append(jsontext.AppendComma(dst), b.raw()...)
			}
		}
		dst = append(dst, "]}"...)
	}
	dst = append(dst, ']')
	if len(system) > 0 {
		dst = append(dst, `,"system":[`...)
		for _, c := range system {
			text := w.render.Text(c.(canister.Supervisor).Content)
			dst = appendText(jsontext.AppendComma(dst), text)
		}
		dst = append(dst, ']')
	}
	dst = append(dst, fields...)
	if _, given := r.m.optionsFor(r.request.Purpose).ExtraBody["container"]; r.container != "" && !given { // API reference, Messages, container
		dst = jsontext.AppendMember(dst, "container", r.container)
	}
	tools := r.transcript.Tools(r.ctx, r.m.tools, r.request)
	if tools == nil {
		return append(dst, '}')
	}
	dst = append(dst, tools...)
	if choice := r.toolChoice(); choice != nil {
		text, _ := jsontext.Encode(choice) // plain JSON
		dst = append(jsontext.AppendName(dst, "tool_choice"), text...)
	}
	return append(dst, '}')
}

// endsWithAnswer reports whether a history ends with a message of the model without calls.
// The API does not go on with one.
func endsWithAnswer(history []canister.Canister) bool {
	if len(history) == 0 {
		return false
	}
	_, answer := history[len(history)-1].(canister.Assistant)
	return answer
}

// toolChoice returns the value of tool_choice; nil leaves it to the server.
func (r *messages) toolChoice() any {
	o := r.m.optionsFor(r.request.Purpose)
	if extra, given := o.ExtraBody["tool_choice"]; given && !r.request.NoInvocations {
		return extra
	}
	choice := map[string]any{"type": "auto"}
	r.forced = false
	switch name := o.ToolChoice; {
	case r.request.NoInvocations:
		return map[string]any{"type": "none"}
	case r.request.RequireInvocation && (r.m.unforced.Load() || o.Thinking != "" && o.Thinking != "off"):
		// the API refuses to force a call while the model thinks
	case r.request.RequireInvocation:
		choice["type"], r.forced = "any", true
	case name == "none":
		return map[string]any{"type": "none"}
	case name == "auto" || name == "any":
		choice["type"] = name
	case name != "":
		choice["type"], choice["name"] = "tool", name
	case o.ParallelToolCalls == nil:
		return nil
	}
	if o.ParallelToolCalls != nil {
		choice["disable_parallel_tool_use"] = !*o.ParallelToolCalls
	}
	return choice
}

// Post implements [modelapi.API].
func (r *messages) Post(ctx context.Context, body []byte, middleware modelapi.Middleware) (res *http.Response, err error) {
	once := option.WithMaxRetries(0) // the exchange repeats it
	err = r.m.post(ctx, "v1/messages", body, &res, slices.Concat([]option.RequestOption{option.WithMiddleware(middleware)}, r.m.opts.RequestOptions, []option.RequestOption{once})...)
	return res, err
}

// Read implements [modelapi.API].
func (r *messages) Read(x *modelapi.Exchange, res *http.Response) (converse.Reply, error) {
	answer := &answer{emit: x.Delta, blocks: r.paused, before: len(r.paused)}
	if err := x.Read(res, answer); err != nil || x.Left() {
		return converse.Reply{}, err
	}
	if answer.overflown {
		return converse.Reply{}, x.Broken(res, false, "the answer holds more than %d blocks", maxBlocks)
	}
	if answer.stop == "" {
		return converse.Reply{}, x.Broken(res, true, "the answer ended before the model had said why it stopped")
	}
	if answer.usage != nil {
		r.usage = r.usage.Add(*answer.usage)
		if r.rounds > 0 {
			r.usage.Context = answer.usage.Input + answer.usage.Output
		}
	}
	if answer.stop == "pause_turn" && r.rounds < maxRounds {
		r.paused, r.rounds, r.container = answer.blocks, r.rounds+1, cmp.Or(answer.container, r.container)
		x.Paid(r.usage)
		return converse.Reply{}, modelapi.ErrContinue
	}
	if r.usage != (canister.Usage{}) {
		answer.usage = &r.usage
	}
	reply := answer.reply(r.m, r.request)
	r.transcript.Note(r.m.server, &reply.Message)
	return reply, nil
}

// Amend implements [modelapi.API]. After the server has rejected thinking of its own, an image
// or a file, the conversation goes on without it. After it has refused to force a call, the
// model no longer asks for that.
func (r *messages) Amend(x *modelapi.Exchange, failed *converse.ModelError) bool {
	switch {
	case rejectsThinking(failed) && r.transcript.Forget(r.request.History):
	case r.forced && modelapi.RefusesForce(failed):
		r.m.unforced.Store(true)
	case r.transcript.Shrink(failed), r.transcript.Omit(failed, x.Sent()):
	default:
		return false
	}
	return x.Emit(converse.Retry{Attempt: x.Attempts(), Err: failed})
}

// rejectsThinking reports whether the server has rejected thinking of its own. Models with
// preserved thinking reject it if the system prompt, the tools or a message before it have
// changed since, and with it all later thinking. Without the first blocks of thinking, the
// others stay valid (platform.claude.com, Preserved thinking).
func rejectsThinking(failed *converse.ModelError) bool {
	said := strings.ToLower(failed.Message)
	return failed.Status == http.StatusBadRequest && strings.Contains(said, "thinking") &&
		(strings.Contains(said, "signature") || strings.Contains(said, "cannot be modified"))
}

// beforeSummary returns how many canisters of the history the model wrote, or received, before
// the summary at its beginning. Their thinking belongs to a conversation without it. Models
// that think with a budget do not check that, and go on with calls only if they see it.
func (r *messages) beforeSummary() int {
	history := r.request.History
	at := slices.IndexFunc(history, func(c canister.Canister) bool {
		document, ok := c.(canister.Document)
		return ok && document.Metadata[notes.CompactionKey] != nil
	})
	if at < 0 || r.m.opts.hasBudget() {
		return 0
	}
	for i, c := range history {
		if answer, ok := c.(canister.Assistant); ok && answer.Time.After(history[at].Header().Time) {
			return i
		}
	}
	return len(history)
}

// fields returns the members of the request after its messages and system prompt, except
// the tools, each preceded by a comma, in a fixed order.
func (r *messages) fields() (string, error) {
	o := r.m.optionsFor(r.request.Purpose)
	limit := int64(o.MaxTokens)
	if n := r.request.MaxTokens; n > 0 && n < limit {
		limit = min(n, math.MaxInt32)
	}
	fields := map[string]any{"max_tokens": limit}
	thinking := r.thinking(o, limit)
	if thinking != nil {
		fields["thinking"] = thinking
	}
	maps.Copy(fields, r.sampling(o, thinking != nil && thinking["type"] != "disabled"))
	if stop := slices.DeleteFunc(slices.Clone(r.request.Stop), isBlank); len(stop) > 0 {
		fields["stop_sequences"] = stop
	} else if len(o.Stop) > 0 {
		fields["stop_sequences"] = o.Stop
	}
	output := map[string]any{}
	if o.Effort != "" {
		output["effort"] = o.Effort
	}
	if len(o.OutputSchema) > 0 {
		output["format"] = map[string]any{"type": "json_schema", "schema": o.OutputSchema}
	}
	if len(output) > 0 {
		fields["output_config"] = output
	}
	if o.ServiceTier != "" {
		fields["service_tier"] = o.ServiceTier
	}
	if !o.NoCache {
		fields["cache_control"] = map[string]any{"type": "ephemeral"}
	}
	maps.Copy(fields, o.ExtraBody)
	delete(fields, "tool_choice") // stands after the tools, and only with them
	fields["model"] = r.m.name
	if !o.NoStream {
		fields["stream"] = true
	}
	return jsontext.Fields(fields)
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

// sampling returns the members that control randomness. The API takes a temperature neither
// together with top_p nor, unless it is 1, while the model thinks.
func (r *messages) sampling(o *Options, thinks bool) map[string]any {
	members := map[string]any{}
	temperature, topP := o.Temperature, o.TopP
	if r.request.Temperature != nil {
		temperature, topP = new(min(*r.request.Temperature, 1)), nil // 1 is the most that the API takes
	}
	if temperature != nil && (!thinks || *temperature == 1) {
		members["temperature"] = *temperature
	}
	if topP != nil {
		members["top_p"] = *topP
	}
	return members
}

// minThinking is the least budget of thinking that the API takes, in tokens.
const minThinking = 1024

// thinking returns the value of the member thinking; nil leaves it to the model. Thinking
// counts under the limit of the answer. If a request lowers the limit, the budget is at most
// half of it. Thinking with a budget cannot start in the middle of a turn, after calls that
// were made without it.
func (r *messages) thinking(o *Options, limit int64) map[string]any {
	switch o.Thinking {
	case "":
		return nil
	case "adaptive", "between_tools":
		return map[string]any{"type": o.Thinking}
	case "off":
		return map[string]any{"type": "disabled"}
	}
	budget, _ := strconv.ParseInt(o.Thinking, 10, 64) // checked by New
	if limit < int64(o.MaxTokens) {
		budget = min(budget, limit/2)
	}
	if budget < minThinking || r.goesOnWithoutThinking() {
		return nil
	}
	return map[string]any{"type": "enabled", "budget_tokens": budget}
}

// goesOnWithoutThinking reports whether the model thinks with a budget, and its last message
// has calls, or is paused, and does not begin with thinking that the server would see again.
func (r *messages) goesOnWithoutThinking() bool {
	if !r.m.opts.hasBudget() {
		return false
	}
	if len(r.paused) > 0 {
		return !isThinking(r.paused[0].kind)
	}
	for i := len(r.request.History) - 1; i >= 0; i-- {
		if _, ok := r.request.History[i].(canister.Assistant); !ok {
			continue
		}
		group, err := modelapi.GroupAt(r.request.History, i)
		if err != nil || len(group.Invocations) == 0 {
			return false
		}
		items := r.m.server.KeptItems(group, contentKey, r.m.name, "tool_use")
		return r.transcript.LeavesOut(group.Message) || len(items) == 0 || !isThinking(items[0].Type)
	}
	return false
}

// hasBudget reports whether the model thinks with a budget of tokens, as older models do.
func (o *Options) hasBudget() bool {
	return !slices.Contains([]string{"", "adaptive", "between_tools", "off"}, o.Thinking)
}

// isThinking reports whether a block is thinking.
func isThinking(kind string) bool { return kind == "thinking" || kind == "redacted_thinking" }

// checkThinking adds what is wrong with the option.
func (o *Options) checkThinking(add func(option, format string, args ...any)) {
	switch o.Thinking {
	case "", "off":
		return
	case "adaptive", "between_tools":
	default:
		budget, err := strconv.Atoi(o.Thinking)
		if err != nil || budget < minThinking || budget >= o.MaxTokens {
			add("Thinking", "the option Thinking is %q; it must be adaptive, between_tools, off, or a number of tokens from %d to less than MaxTokens (%d)", o.Thinking, minThinking, o.MaxTokens)
		}
	}
	if o.Temperature != nil && *o.Temperature != 1 {
		add("Temperature", "while the model thinks, the API takes only 1 for the option Temperature; remove it, or set Thinking to off")
	}
	if o.TopP != nil && *o.TopP < 0.95 {
		add("TopP", "while the model thinks, the API takes only 0.95 or more for the option TopP; remove it, or set Thinking to off")
	}
	if o.ToolChoice != "" && o.ToolChoice != "auto" && o.ToolChoice != "none" {
		add("ToolChoice", "the option ToolChoice forces a call, which the API does not allow while the model thinks; set Thinking to off, or ToolChoice to auto")
	}
}

// answerMembers are the members that are sent only in requests for an answer of the
// conversation; otherwise a summary would have the form of an answer, for example. The
// servers of mcp_servers are used by tools of the server, which other requests do not have.
var answerMembers = []string{"mcp_servers", "output_config", "stop_sequences", "tool_choice"}

// optionsFor returns the options that apply to a request with a purpose.
func (m *Model) optionsFor(purpose converse.Purpose) *Options {
	if purpose.Answers() {
		return &m.opts
	}
	o := m.opts
	o.OutputSchema, o.Stop, o.ToolChoice, o.ParallelToolCalls = nil, nil, "", nil
	o.ExtraBody = maps.Clone(o.ExtraBody)
	for _, name := range answerMembers {
		delete(o.ExtraBody, name)
	}
	return &o
}
