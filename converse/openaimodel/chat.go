// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/internal/modelapi"
	"github.com/openai/openai-go/v3/option"
)

const opening = `{"messages":[`

// transcript is a conversation in the form in which it is sent, with the encoded tools of
// the previous exchange. They are kept here because the model's cache is too small for
// many rosters.
type transcript struct {
	messages modelapi.Transcript
	offered  *converse.Toolset
	tools    *encodedTools
}

// chat is one request to Chat Completions.
type chat struct {
	ctx        context.Context
	m          *Model
	request    *converse.Request
	transcript *transcript
	usage      bool // the last request has asked for the usage of a stream
}

// exchange runs one exchange from the request to the reply.
func (m *Model) exchange(ctx context.Context, request *converse.Request, t *transcript, yield func(converse.ModelEvent, error) bool) {
	if request == nil || request.NewID == nil {
		yield(nil, errors.New("openaimodel: the request, or its NewID, is nil"))
		return
	}
	var api modelapi.API = &chat{ctx: ctx, m: m, request: request, transcript: t}
	if m.opts.API == apiResponses {
		api = &responses{ctx: ctx, m: m, request: request, transcript: t}
	}
	m.server.Exchange(ctx, api, yield)
}

// Encode implements [modelapi.API].
func (c *chat) Encode() ([]byte, *modelapi.BodyRef, error) {
	c.usage = !c.m.usageRefused.Load()
	fields, err := c.m.fieldsFor(c.request)
	if err != nil {
		return nil, nil, fmt.Errorf("openaimodel: %w", err)
	}
	t := c.transcript
	if t.offered != c.request.Tools {
		t.offered, t.tools = c.request.Tools, c.m.encode(c.ctx, c.request)
	}
	writer := &messageWriter{m: c.m, render: modelapi.Renderer{NoImages: c.m.opts.NoImages, Audio: c.m.opts.Audio}}
	return t.messages.Body(c.request.History, opening, writer.write, func(dst []byte) []byte {
		return c.m.appendTail(dst, c.request, fields, t.tools)
	})
}

// Post implements [modelapi.API].
func (c *chat) Post(ctx context.Context, body []byte, retries int, middleware modelapi.Middleware) (res *http.Response, err error) {
	err = c.m.client.Post(ctx, "chat/completions", body, &res, option.WithMiddleware(middleware), option.WithMaxRetries(retries))
	return res, err
}

// Read implements [modelapi.API].
func (c *chat) Read(x *modelapi.Exchange, res *http.Response) (converse.Reply, error) {
	answer := &accumulator{emit: x.Delta, tools: c.request.Tools}
	if err := x.Read(res, answer); err != nil || x.Left() {
		return converse.Reply{}, err
	}
	reply, err := answer.reply(c.m.server, c.request.NewID)
	if err != nil {
		return reply, x.Broken(res, false, "%w", err)
	}
	return reply, nil
}

// Amend implements [modelapi.API]: after the server has rejected stream_options, the model
// no longer sends them. If the caller sets stream_options explicitly, the error says so.
func (c *chat) Amend(x *modelapi.Exchange, failed *converse.ModelError) bool {
	if failed.Status != http.StatusBadRequest && failed.Status != http.StatusUnprocessableEntity ||
		!strings.Contains(failed.Message, "stream_options") && !strings.Contains(failed.Message, "include_usage") {
		return false
	}
	o := &c.m.opts
	if o.NoStreamUsage || o.NoStream || o.extra("stream_options") || !c.usage {
		failed.Message += " [the server rejects stream_options: set model.stream_usage = false (Options.NoStreamUsage), and omit it from extra_body]"
		return false
	}
	c.m.usageRefused.Store(true)
	return x.Emit(converse.Retry{Attempt: x.Attempts(), Err: failed})
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
