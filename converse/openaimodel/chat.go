// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/internal/modelapi"
)

const opening = `{"messages":[`

// chat is one request to Chat Completions.
type chat struct {
	ctx        context.Context
	m          *Model
	request    *converse.Request
	transcript *modelapi.Transcript
	usage      bool // the last request has asked for the usage of a stream
	forced     bool // the last request forces a call because it must
	alternates bool // the roles of the last request alternate
}

// newRequest returns a request to the API of the model.
func (m *Model) newRequest(ctx context.Context, request *converse.Request, t *modelapi.Transcript) modelapi.API {
	if m.opts.API == apiResponses {
		return &responses{ctx: ctx, m: m, request: request, transcript: t}
	}
	return &chat{ctx: ctx, m: m, request: request, transcript: t}
}

// Encode implements [modelapi.API].
func (c *chat) Encode() ([]byte, *modelapi.BodyRef, error) {
	c.usage = !c.m.usageRefused.Load()
	c.forced = c.m.forces(c.request)
	fields, err := c.m.fieldsFor(c.request)
	if err != nil {
		return nil, nil, fmt.Errorf("openaimodel: %w", err)
	}
	c.transcript.Recall(c.m.server, c.request.History)
	writer := &messageWriter{m: c.m, render: modelapi.Renderer{NoImages: c.m.opts.NoImages, Audio: c.m.opts.Audio, Images: c.transcript.Images(), Refused: c.transcript.Refused()}}
	c.alternates = c.m.alternates.Load()
	c.transcript.Alternate(c.alternates)
	writer.alternates = c.alternates
	writer.fillSignatures, writer.fillReasoning = c.transcript.Placeholders()
	return c.transcript.Body(c.request.History, opening, writer.write, func(dst []byte) []byte {
		return c.m.appendTail(dst, c.request, c.forced, fields, c.transcript.Tools(c.ctx, c.m.tools, c.request))
	})
}

// Post implements [modelapi.API].
func (c *chat) Post(ctx context.Context, body []byte, middleware modelapi.Middleware) (*http.Response, error) {
	return c.m.request.post(ctx, body, middleware)
}

// Read implements [modelapi.API].
func (c *chat) Read(x *modelapi.Exchange, res *http.Response) (converse.Reply, error) {
	answer := &accumulator{emit: x.Delta, tools: c.request.Tools}
	if err := x.Read(res, answer); err != nil || x.Left() {
		return converse.Reply{}, err
	}
	reply, err := answer.reply(c.m.server, c.request)
	if err != nil {
		return reply, x.Broken(res, false, "%w", err)
	}
	c.transcript.Note(c.m.server, &reply.Message)
	return reply, nil
}

// Amend implements [modelapi.API]: after the server has rejected stream_options, the model
// no longer sends them, unless the caller sets them explicitly. After it has rejected an
// image, the conversation goes on without it. After it has rejected answers of other models
// because they lack signatures or reasoning, the conversation goes on with placeholders. After
// it has refused to force a call, the model no longer asks for that. After it has refused messages
// because of the order of their roles, the roles alternate.
func (c *chat) Amend(x *modelapi.Exchange, failed *converse.ModelError) bool {
	if !c.transcript.Shrink(failed) && !c.transcript.Omit(failed, x.Sent()) && !c.transcript.Fill(lacking(failed)) && !c.refusesUsage(failed) && !c.refusesOrder(failed) && !(c.forced && c.m.refusesForce(failed)) {
		return false
	}
	return x.Emit(converse.Retry{Attempt: x.Attempts(), Err: failed})
}

// refusesUsage reports whether the server has rejected stream_options, which the model then
// no longer sends.
func (c *chat) refusesUsage(failed *converse.ModelError) bool {
	if failed.Status != http.StatusBadRequest && failed.Status != http.StatusUnprocessableEntity ||
		!strings.Contains(failed.Message, "stream_options") && !strings.Contains(failed.Message, "include_usage") {
		return false
	}
	if o := &c.m.opts; o.NoStreamUsage || o.NoStream || o.extra("stream_options") || !c.usage {
		return false
	}
	c.m.usageRefused.Store(true)
	return true
}

// wrongOrder matches the refusals of messages because of the order of their roles: of the chat
// templates of Mistral, Gemma and Qwen, with status 500 from llama.cpp, of Perplexity, and of
// deepseek-reasoner.
var wrongOrder = regexp.MustCompile(`(?i)roles (must alternate|should be alternating)|successive user or assistant|system message must be at the beginning`)

// refusesOrder reports whether the server wants roles to alternate. Later requests of the model
// respect that.
func (c *chat) refusesOrder(failed *converse.ModelError) bool {
	if c.alternates || failed.Status < http.StatusBadRequest || !wrongOrder.MatchString(failed.Message) {
		return false
	}
	c.m.alternates.Store(true)
	return true
}

// Members of metadata for data that servers require in later requests. An invocation has
// extra_content, such as Gemini's thought signatures. A message has the reasoning_content
// that DeepSeek and Kimi require, and the reasoning_details of OpenRouter.
const (
	extraKey     = "openaimodel.extra_content"
	reasoningKey = "openaimodel.reasoning_content"
	detailsKey   = "openaimodel.reasoning_details"
)

var _ modelapi.API = (*chat)(nil)
