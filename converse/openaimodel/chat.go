// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"context"
	"fmt"
	"net/http"
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
	fields, err := c.m.fieldsFor(c.request)
	if err != nil {
		return nil, nil, fmt.Errorf("openaimodel: %w", err)
	}
	writer := &messageWriter{m: c.m, render: modelapi.Renderer{NoImages: c.m.opts.NoImages, Audio: c.m.opts.Audio, Images: c.transcript.Images()}}
	writer.fillSignatures, writer.fillReasoning = c.transcript.Placeholders()
	return c.transcript.Body(c.request.History, opening, writer.write, func(dst []byte) []byte {
		return c.m.appendTail(dst, c.request, fields, c.transcript.Tools(c.ctx, c.m.tools, c.request))
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
	return reply, nil
}

// Amend implements [modelapi.API]: after the server has rejected stream_options, the model
// no longer sends them, unless the caller sets them explicitly. After it has rejected a large
// image, the conversation goes on without it. After it has rejected answers of other models
// because they lack signatures or reasoning, the conversation goes on with placeholders.
func (c *chat) Amend(x *modelapi.Exchange, failed *converse.ModelError) bool {
	if !c.transcript.Shrink(failed) && !c.transcript.Fill(lacking(failed)) && !c.refusesUsage(failed) {
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

// Members of metadata for data that servers require in later requests. An invocation has
// extra_content, such as Gemini's thought signatures. A message has the reasoning_content
// that DeepSeek and Kimi require, and the reasoning_details of OpenRouter.
const (
	extraKey     = "openaimodel.extra_content"
	reasoningKey = "openaimodel.reasoning_content"
	detailsKey   = "openaimodel.reasoning_details"
)

var _ modelapi.API = (*chat)(nil)
