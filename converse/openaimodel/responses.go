// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/internal/modelapi"
	"github.com/consort-go/consort/internal/jsontext"
)

// responses is one request to Responses. The server keeps nothing: each request has the
// whole history, and reasoning comes back encrypted.
type responses struct {
	ctx        context.Context
	m          *Model
	request    *converse.Request
	transcript *modelapi.Transcript
	included   bool // the last request has asked for encrypted reasoning
	forced     bool // the last request forces a call because it must
}

var _ modelapi.API = (*responses)(nil)

// Encode implements [modelapi.API].
func (r *responses) Encode() ([]byte, *modelapi.BodyRef, error) {
	t := r.transcript
	r.included = !r.m.includeRefused.Load()
	r.forced = r.m.forces(r.request)
	t.Recall(r.m.server, r.request.History)
	t.LeaveOut(r.request.History, 0, omittedKey)
	fields, err := t.Fields(r.request, strconv.FormatBool(r.included)+r.first(), r.fields)
	if err != nil {
		return nil, nil, fmt.Errorf("openaimodel: %w", err)
	}
	writer := &inputWriter{m: r.m, transcript: t, render: modelapi.Renderer{NoImages: r.m.opts.NoImages, Files: true, Images: t.Images(), Refused: t.Refused()}}
	return t.Body(r.request.History, `{"input":[`, writer.write, func(dst []byte) []byte {
		return r.m.appendTail(dst, r.request, r.forced, fields, t.Tools(r.ctx, r.m.tools, r.request))
	})
}

// Post implements [modelapi.API].
func (r *responses) Post(ctx context.Context, body []byte, middleware modelapi.Middleware) (*http.Response, error) {
	return r.m.request.post(ctx, body, middleware)
}

// Read implements [modelapi.API].
func (r *responses) Read(x *modelapi.Exchange, res *http.Response) (converse.Reply, error) {
	answer := &responseAnswer{emit: x.Delta, tools: r.request.Tools}
	if err := x.Read(res, answer); err != nil || x.Left() {
		return converse.Reply{}, err
	}
	if !answer.ended {
		return converse.Reply{}, x.Broken(res, true, "the stream ended before response.completed")
	}
	reply, err := answer.reply(r.m, r.request)
	if err != nil {
		return reply, x.Broken(res, false, "%w", err)
	}
	r.transcript.Note(r.m.server, &reply.Message)
	return reply, nil
}

// Amend implements [modelapi.API]. After the server has said that a model has no encrypted
// reasoning, which older models have not, the model no longer asks for it. After it has
// rejected reasoning of its own, for example because the key belongs to another
// organization by now, an image or a file, the conversation goes on without it. After it has
// refused to force a call, the model no longer asks for that.
func (r *responses) Amend(x *modelapi.Exchange, failed *converse.ModelError) bool {
	said := strings.ToLower(failed.Message)
	switch {
	case r.transcript.Shrink(failed), r.transcript.Omit(failed, x.Sent()), r.forced && r.m.refusesForce(failed):
	case failed.Status != http.StatusBadRequest && failed.Status != http.StatusOK: // in a stream
		return false
	case strings.Contains(said, "encrypted content is not supported"):
		if !r.included {
			return false
		}
		r.m.includeRefused.Store(true)
	case failed.Code == "invalid_encrypted_content", strings.Contains(said, "encrypted content") && strings.Contains(said, "could not be verified"):
		if !r.transcript.Forget(r.request.History) {
			return false
		}
	default:
		return false
	}
	return x.Emit(converse.Retry{Attempt: x.Attempts(), Err: failed})
}

// fields returns the members of the request after its input, except the tools, each
// preceded by a comma, in a fixed order.
func (r *responses) fields() (string, error) {
	o := r.m.optionsFor(r.request.Purpose)
	fields := map[string]any{"store": false}
	include := []any{}
	if r.included {
		include = append(include, "reasoning.encrypted_content")
	}
	if temperature := r.request.Temperature; temperature != nil {
		fields["temperature"] = *temperature
	} else if o.Temperature != nil {
		fields["temperature"] = *o.Temperature
	}
	if o.TopP != nil {
		fields["top_p"] = *o.TopP
	}
	limit := int64(o.MaxTokens)
	if n := r.request.MaxTokens; n > 0 && (limit == 0 || n < limit) {
		limit = min(n, math.MaxInt32)
	}
	if limit > 0 {
		fields["max_output_tokens"] = max(limit, minOutputTokens)
	}
	if reasoning := o.reasoning(); reasoning != nil {
		fields["reasoning"] = reasoning
	}
	if o.ResponseFormat != nil {
		fields["text"] = map[string]any{"format": o.ResponseFormat.textFormat()}
	}
	if o.ServiceTier != "" {
		fields["service_tier"] = o.ServiceTier
	}
	if key := r.cacheKey(); key != "" {
		fields["prompt_cache_key"] = key
	}
	maps.Copy(fields, o.ExtraBody)
	if more, ok := fields["include"].([]any); ok {
		include = append(include, more...)
	}
	delete(fields, "include")
	delete(fields, "tool_choice") // stands after the tools, and only with them
	if len(include) > 0 {
		fields["include"] = include
	}
	fields["model"] = r.m.name
	if !o.NoStream {
		fields["stream"] = true
	}
	return jsontext.Fields(fields)
}

// minOutputTokens is the least value of max_output_tokens that OpenAI accepts (API
// reference, Create a model response).
const minOutputTokens = 16

// reasoning returns the value of the member reasoning; nil if no option sets it.
func (o *Options) reasoning() map[string]any {
	reasoning := map[string]any{}
	if o.ReasoningEffort != "" {
		reasoning["effort"] = o.ReasoningEffort
	}
	if o.ReasoningSummary != "" {
		reasoning["summary"] = o.ReasoningSummary
	}
	if len(reasoning) == 0 {
		return nil
	}
	return reasoning
}

// textFormat returns the member format of text.
func (f *ResponseFormat) textFormat() any {
	if len(f.Schema) == 0 {
		return map[string]any{"type": "json_object"}
	}
	format := map[string]any{"type": "json_schema", "name": f.name(), "schema": f.Schema, "strict": f.Strict}
	if f.Description != "" {
		format["description"] = f.Description
	}
	return format
}

// cacheKey returns the key under which the server looks for the cached beginning of the
// prompt. It is the same for all requests of a conversation until it is compacted. Only
// OpenAI and Azure get one by default.
func (r *responses) cacheKey() string {
	if o := &r.m.opts; o.PromptCacheKey != "" || !r.m.modern || len(r.request.History) == 0 || r.request.History[0] == nil {
		return o.PromptCacheKey
	}
	return modelapi.MadeCallID(r.first())
}

// first returns the ID of the first canister.
func (r *responses) first() string {
	if len(r.request.History) == 0 || r.request.History[0] == nil {
		return ""
	}
	return r.request.History[0].Header().ID
}
