// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/internal/modelapi"
	"github.com/consort-go/consort/converse/internal/toolschema"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/invoker"
	"github.com/openai/openai-go/v3/option"
	"go.uber.org/zap"
)

// Model is a language model behind an API of the OpenAI Chat Completions kind. It is safe
// for concurrent use.
type Model struct {
	name    string
	opts    Options
	server  *modelapi.Server
	request *request
	own     *http.Transport // nil if the caller supplied an HTTP client
	api     modelapi.Model
	tools   *modelapi.Tools
	limits  modelapi.Limits
	modern  bool // the server is OpenAI's or Azure's
	mistral bool // the server is Mistral's
	// enforced describes the schemas that the server can enforce.
	enforced toolschema.Enforcement
	// includeRefused is set when the server has said that the model has no encrypted
	// reasoning.
	includeRefused atomic.Bool
	// usageRefused is set when the server has rejected stream_options.
	usageRefused atomic.Bool
	// unforced is set when the server has said that the model cannot be forced to call a
	// tool.
	unforced atomic.Bool
	// alternates is set when the server has refused messages because of the order of their roles.
	alternates atomic.Bool
	fields     string // members of a request without settings of its own
}

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
		return nil, errors.New("openaimodel: the model has no name")
	}
	if options == nil {
		options = new(Options)
	}
	opts, base, err := settle(*options)
	if err != nil {
		return nil, fmt.Errorf("openaimodel: %w", err)
	}
	m := &Model{name: name, opts: opts}
	m.modern, m.mistral = isOpenAI(base) || isAzure(base), modelapi.ProviderOf(base) == "mistral_ai"
	m.enforced = toolschema.OpenAI
	if isAzure(base) {
		m.enforced = toolschema.Azure
	}
	m.enforced.Unbounded = strings.HasPrefix(name, "ft:")
	if m.fields, err = m.opts.fields(name); err != nil {
		return nil, fmt.Errorf("openaimodel: %w", err)
	}
	if m.tools, err = modelapi.NewTools(opts.HostedTools, m.appendTool, opts.Logger.With(zap.String("model", name))); err != nil {
		return nil, fmt.Errorf("openaimodel: %w", err)
	}
	m.server = (&modelapi.Server{
		Package: "openaimodel", Base: base, API: opts.API, Model: name, Options: &m.opts, Place: opts.Place,
		KeyVariable: modelapi.KeyVariable(keyName, options.APIKey, opts.APIKey), Members: members(opts.API),
		Redact:     modelapi.Redactor(base, opts.Headers, append(redact.Members(opts.HostedTools, opts.ExtraBody), opts.APIKey)...),
		MaxRetries: opts.MaxRetries, ResponseTimeout: opts.ResponseTimeout, IdleTimeout: opts.IdleTimeout,
		MaxEventBytes: opts.MaxEventBytes, MaxAnswerBytes: opts.MaxAnswerBytes, TraceHeaders: opts.TraceHeaders,
	}).WithDefaults()
	m.api = modelapi.Model{Server: m.server, Info: m.describe(base), NewRequest: m.newRequest}
	m.limits = modelapi.LimitsOf(modelapi.ProviderOf(base)).With(opts.MaxTools, opts.MaxDescription)
	clientOptions := m.clientOptions(base)
	m.request = newRequest(opts.API, m.own != nil, clientOptions) // a client of the program may change a request
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

// Exchange sends a request and yields the answer; see [converse.Model].
func (m *Model) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return m.api.Exchange(ctx, request)
}

// Bind returns a model for one conversation. It keeps the encoded messages that it has
// sent, so that an exchange only encodes the new ones. It uses about as many bytes as the
// largest request.
func (m *Model) Bind() converse.Model { return m.api.Bind() }

// Screen returns the reason why the model cannot be offered a tool: its input schema
// cannot be adapted, or the server does not accept its name. See the package comment.
func (m *Model) Screen(definition *invoker.Definition) error {
	_, err := m.appendTool(nil, definition)
	return err
}

// clientOptions configures the SDK's client. The client is created without its
// constructor, which would add keys, organization, project, base URL and custom headers
// from the environment to requests to any host.
func (m *Model) clientOptions(base *url.URL) []option.RequestOption {
	client, own := modelapi.Client(m.opts.HTTPClient)
	m.own = own
	endpoint := *base
	endpoint.RawQuery = ""
	options := []option.RequestOption{
		option.WithBaseURL(endpoint.String()),
		option.WithHTTPClient(client),
		option.WithMaxRetries(0), // the exchange repeats requests
	}
	for name, values := range base.Query() {
		for _, value := range values {
			options = append(options, option.WithQueryAdd(name, value))
		}
	}
	if m.opts.APIKey != "" {
		options = append(options, option.WithAPIKey(m.opts.APIKey))
	}
	if m.opts.Organization != "" {
		options = append(options, option.WithOrganization(m.opts.Organization))
	}
	if m.opts.Project != "" {
		options = append(options, option.WithProject(m.opts.Project))
	}
	for name, value := range m.opts.Headers {
		options = append(options, option.WithHeader(name, value))
	}
	return options
}

// MaxTools returns how many tools the server accepts in a request; 0 if no limit is
// known. See [Options].MaxTools.
func (m *Model) MaxTools() int { return m.tools.Room(m.limits.Tools) }

// Shortened describes what is shortened in a tool for the server, as a clause. It returns
// "" if the whole tool is sent.
func (m *Model) Shortened(definition *invoker.Definition) string {
	return m.limits.Shortened(definition, *m.opts.InlineRefs)
}
