// SPDX-License-Identifier: Apache-2.0

// Package anthropicmodel is a [converse.Model] for servers that speak Anthropic's Messages:
// Anthropic itself, and those that are compatible. It is the only package that uses
// anthropic-sdk-go.
//
// The simplest use takes the key from ANTHROPIC_API_KEY:
//
//	model, err := anthropicmodel.New("claude-sonnet-5", nil)
//
// Everything else is in [Options], whose zero value is a good default.
//
// # Keys
//
// The SDK reads keys, profiles, headers and the base URL from the environment, and sends
// them to any host. This package reads only ANTHROPIC_API_KEY, and only if the base URL is
// Anthropic's own. It follows redirects only within the origin of the base URL. Errors do
// not contain APIKey or the values of Headers.
//
// # What is sent
//
// Canisters become messages. Nothing is dropped silently: content that the API cannot carry
// becomes a line of text. Supervisors at the beginning of a history are the system prompt;
// a later one is a user message with a frame, as a Document is. An Assistant and its
// Invocations are one assistant message, and their Results one user message, in the order
// of the calls, with images and PDF files inside. The API does not go on with an answer: if
// a history ends with one, a last user message asks it to.
//
// Thinking and its signature, and what tools of the server did, are stored in the metadata
// of the Assistant as anthropicmodel.content, together with the host and the model, and
// sent back only to these. Models with preserved thinking refuse thinking if something before it
// has changed: thinking from before a summary is not sent, and after a refusal none of the
// thinking so far. The metadata of the next answer then have
// anthropicmodel.thinking_omitted, so that the model of another process does not send it either. In
// the same way, anthropicmodel.media_refused has the SHA-256 of images and files that the server
// has refused.
//
// The same history and tools always produce the same bytes, and a longer history begins
// with the bytes of a shorter one: the prompt is cached with one cache_control for the whole
// request, whose place the server finds itself.
//
// # What comes back
//
// A refusal has the finish reason refusal. If the server pauses a long turn of its own tools
// (pause_turn), the model asks it to continue, and the answer is the whole. An answer is
// complete if the server sent a stop reason; anything else is an error, never a partial
// message. Retries, time limits and limits of size are those of package openaimodel.
package anthropicmodel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sync/atomic"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/internal/modelapi"
	"github.com/consort-go/consort/converse/internal/toolschema"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
)

// Model is a language model behind the Messages API. It is safe for concurrent use.
type Model struct {
	name   string
	opts   Options
	server *modelapi.Server
	post   poster
	own    *http.Transport // nil if the caller supplied an HTTP client
	api    modelapi.Model
	tools  *modelapi.Tools
	limits modelapi.Limits
	// unforced is set when the server has said that the model cannot be forced to call a
	// tool.
	unforced atomic.Bool
}

// poster sends a request: the Post method of the SDK's client. A field of the client's type
// would link the methods of all its services.
type poster func(ctx context.Context, path string, params, res any, options ...option.RequestOption) error

var (
	_ converse.Binder    = (*Model)(nil)
	_ converse.Describer = (*Model)(nil)
	_ converse.Screener  = (*Model)(nil)
	_ converse.Limiter   = (*Model)(nil)
)

// New returns the model with that name on the server. It sends nothing before the first
// exchange. The error lists the invalid options.
func New(name string, options *Options) (*Model, error) {
	if name == "" {
		return nil, errors.New("anthropicmodel: the model has no name")
	}
	if options == nil {
		options = new(Options)
	}
	opts, base, err := settle(name, *options)
	if err != nil {
		return nil, fmt.Errorf("anthropicmodel: %w", err)
	}
	m := &Model{name: name, opts: opts}
	if m.tools, err = modelapi.NewTools(opts.HostedTools, m.appendTool, opts.Logger.With(zap.String("model", name))); err != nil {
		return nil, fmt.Errorf("anthropicmodel: %w", err)
	}
	m.server = (&modelapi.Server{
		Package: "anthropicmodel", Base: base, API: "messages", Model: name, Options: &m.opts, Place: opts.Place,
		KeyVariable: modelapi.KeyVariable(keyName, options.APIKey, opts.APIKey), Members: members,
		Redact:     modelapi.Redactor(base, opts.Headers, append(redact.Members(opts.HostedTools, opts.ExtraBody), opts.APIKey)...),
		MaxRetries: opts.MaxRetries, ResponseTimeout: opts.ResponseTimeout, IdleTimeout: opts.IdleTimeout,
		MaxEventBytes: opts.MaxEventBytes, MaxAnswerBytes: opts.MaxAnswerBytes, TraceHeaders: opts.TraceHeaders,
	}).WithDefaults()
	provider := cmp.Or(opts.Provider, "anthropic")
	m.api = modelapi.Model{Server: m.server, NewRequest: m.newRequest, Info: telemetry.ModelInfo{
		Provider: provider, Name: name, Address: base.Hostname(), Port: modelapi.PortOf(base), Whole: opts.NoStream,
		JSON: len(opts.OutputSchema) > 0, MaxTokens: int64(opts.MaxTokens), Temperature: opts.Temperature, TopP: opts.TopP, Stop: opts.Stop,
	}}
	m.limits = modelapi.LimitsOf(provider).With(opts.MaxTools, opts.MaxDescription)
	m.post = (&anthropic.Client{Options: m.clientOptions(base)}).Post
	return m, nil
}

// Name returns the name of the model.
func (m *Model) Name() string { return m.name }

// Close closes the idle connections of the model. Without Close they are closed after
// being idle for a while. Running exchanges are not affected, and later ones still work.
func (m *Model) Close() error {
	if m.own != nil {
		m.own.CloseIdleConnections()
	}
	return nil
}

// Describe returns the description of the model for traces; see [converse.Describer].
func (m *Model) Describe() telemetry.ModelInfo { return m.api.Info }

// MaxTools returns how many tools the server accepts in a request; 0 if no limit is known.
func (m *Model) MaxTools() int { return m.tools.Room(m.limits.Tools) }

// Shortened describes what is shortened in a tool for the server, as a clause. It returns
// "" if the whole tool is sent.
func (m *Model) Shortened(definition *invoker.Definition) string {
	return m.limits.Shortened(definition, false)
}

// Screen returns the reason why the model cannot be offered a tool: its input schema cannot
// be adapted.
func (m *Model) Screen(definition *invoker.Definition) error {
	_, err := m.appendTool(nil, definition)
	return err
}

// Exchange sends a request and yields the answer; see [converse.Model].
func (m *Model) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return m.api.Exchange(ctx, request)
}

// Bind returns a model for one conversation. It keeps the encoded messages that it has
// sent, so that an exchange only encodes the new ones. It uses about as many bytes as the
// largest request.
func (m *Model) Bind() converse.Model { return m.api.Bind() }

// newRequest returns a request to the API.
func (m *Model) newRequest(ctx context.Context, request *converse.Request, t *modelapi.Transcript) modelapi.API {
	return &messages{ctx: ctx, m: m, request: request, transcript: t}
}

// clientOptions configures the SDK's client. The client is created without its constructor,
// which would add keys, profiles, base URL and headers from the environment to requests to
// any host.
func (m *Model) clientOptions(base *url.URL) []option.RequestOption {
	client, own := modelapi.Client(m.opts.HTTPClient)
	m.own = own
	endpoint := *base
	endpoint.RawQuery = ""
	options := []option.RequestOption{option.WithBaseURL(endpoint.String()), option.WithHTTPClient(client)}
	for name, values := range base.Query() {
		for _, value := range values {
			options = append(options, option.WithQueryAdd(name, value))
		}
	}
	if m.opts.APIKey != "" {
		options = append(options, option.WithAPIKey(m.opts.APIKey))
	}
	for name, value := range m.opts.Headers {
		options = append(options, option.WithHeader(name, value))
	}
	return options
}

// appendTool appends one tool with its adapted schema.
func (m *Model) appendTool(dst []byte, definition *invoker.Definition) ([]byte, error) {
	schema, note, err := toolschema.Adapt(definition.InputSchema, false)
	if err != nil {
		return dst, err
	}
	if err := checkProperties(schema); err != nil {
		return dst, err
	}
	description, _ := m.limits.Describe(definition, note)
	dst = jsontext.AppendMember(append(dst, '{'), "name", definition.Name)
	if description != "" {
		dst = jsontext.AppendMember(dst, "description", description)
	}
	return append(append(jsontext.AppendName(dst, "input_schema"), schema...), '}'), nil
}

// legalProperty matches the names of arguments that the API takes. It refuses a request
// with any other as a whole.
var legalProperty = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// checkProperties returns the reason why the API does not take the arguments of a tool.
func checkProperties(schema []byte) error {
	var root, properties map[string]json.RawMessage // a struct would take "Properties" for "properties"
	if err := json.Unmarshal(schema, &root); err != nil {
		return err
	}
	if given := root["properties"]; given != nil {
		if err := json.Unmarshal(given, &properties); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !legalProperty.MatchString(name) {
			return fmt.Errorf("the model's API takes names of arguments of at most 64 letters, digits, \"_\", \".\" and \"-\", and not %q", textcut.Bytes(name, 100))
		}
	}
	return nil
}
