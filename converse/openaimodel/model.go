// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"go.uber.org/zap"
)

// Model is a language model behind an API of the OpenAI Chat Completions kind. It is safe
// for concurrent use.
type Model struct {
	name   string
	opts   Options
	host   string // host of the API, for messages and to bind data to it
	client openai.Client
	own    *http.Transport          // nil if the caller supplied an HTTP client
	redact func(text string) string // removes the secrets that were given to the model
	log    *zap.Logger
	info   telemetry.ModelInfo

	limits limits // limits of the server
	// usageRefused is set when the server has rejected stream_options.
	usageRefused atomic.Bool
	fields       string // members of a request without settings of its own
	tools        toolCache
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
	opts, base, err := settle(options)
	if err != nil {
		return nil, fmt.Errorf("openaimodel: %w", err)
	}
	m := &Model{name: name, opts: opts, host: base.Host, log: opts.Logger.With(zap.String("model", name))}
	if m.fields, err = m.opts.fields(name); err != nil {
		return nil, fmt.Errorf("openaimodel: %w", err)
	}
	m.redact = redactorOf(&opts, base)
	m.info, m.limits = m.describe(base), limitsOf(&m.opts, base)
	m.client = openai.Client{Options: m.clientOptions(base)}
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
	return func(yield func(converse.ModelEvent, error) bool) {
		m.exchange(ctx, request, new(transcript), yield)
	}
}

// Bind returns a model for one conversation. It keeps the encoded messages that it has
// sent, so that an exchange only encodes the new ones. It uses about as many bytes as the
// largest request.
func (m *Model) Bind() converse.Model { return &bound{model: m} }

// bound is a [Model] for one conversation.
type bound struct {
	model      *Model
	busy       atomic.Bool
	transcript transcript // belongs to the exchange that holds busy
}

// Exchange is like [Model.Exchange] but reuses the transcript. If two exchanges run at
// the same time, which the contract of Bind does not require, one runs without the
// transcript.
func (b *bound) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		if !b.busy.CompareAndSwap(false, true) {
			b.model.exchange(ctx, request, new(transcript), yield)
			return
		}
		defer b.busy.Store(false)
		b.model.exchange(ctx, request, &b.transcript, yield)
	}
}

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
	endpoint := *base
	endpoint.RawQuery = ""
	options := []option.RequestOption{
		option.WithBaseURL(endpoint.String()),
		option.WithHTTPClient(m.httpClient()),
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

// httpClient returns a client that follows redirects only within the origin of a request.
func (m *Model) httpClient() *http.Client {
	var client http.Client
	if m.opts.HTTPClient != nil {
		client = *m.opts.HTTPClient
	} else if transport, ok := http.DefaultTransport.(*http.Transport); ok {
		m.own = transport.Clone()
		// With the default of two idle connections, kept for a minute and a half,
		// concurrent conversations would open a connection for each exchange.
		m.own.MaxIdleConns, m.own.MaxIdleConnsPerHost = 0, 1000
		client.Transport = m.own
	}
	check := client.CheckRedirect
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		from := via[0].URL
		if len(via) > 5 || next.URL.Scheme != from.Scheme || next.URL.Host != from.Host {
			return http.ErrUseLastResponse
		}
		if check != nil {
			return check(next, via)
		}
		return nil
	}
	return &client
}

// redactorOf returns a function that removes this model's secrets from a text: its key,
// the values of its headers, and the values in its URL's query. A server can repeat a key
// in an error.
func redactorOf(o *Options, base *url.URL) func(text string) string {
	secrets := append(slices.Collect(maps.Values(o.Headers)), o.APIKey)
	for _, values := range base.Query() {
		secrets = append(secrets, values...)
	}
	return redact.Sent(secrets...)
}

// toolCache caches the encoded forms of recent toolsets.
type toolCache struct {
	mu      sync.Mutex
	entries []*encodedTools // newest last
}
