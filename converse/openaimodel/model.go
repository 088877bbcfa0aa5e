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

// Model is a language model behind an API of OpenAI's Chat Completions kind.
// It is safe for concurrent use.
type Model struct {
	name   string
	opts   Options
	host   string // of the API, for messages and for what is only for it
	client openai.Client
	own    *http.Transport          // nil when the caller gave an HTTP client
	redact func(text string) string // takes out what the model was given as a secret
	log    *zap.Logger
	info   telemetry.ModelInfo

	limits limits // of the server
	// usageRefused is set when the server has refused stream_options.
	usageRefused atomic.Bool
	fields       string // the members of a request that has no settings of its own
	tools        toolCache
}

var (
	_ converse.Binder    = (*Model)(nil)
	_ converse.Describer = (*Model)(nil)
	_ converse.Screener  = (*Model)(nil)
	_ converse.Limiter   = (*Model)(nil)
)

// New returns the model of that name, which the server knows it by. Nothing is
// sent before the first exchange. The error names the options that cannot be.
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

// Close frees the connections that the model keeps open for later exchanges;
// without it they are closed when they have been idle for a while. Exchanges
// that run are not disturbed, and later ones still work.
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

// Bind returns a model for one conversation, which keeps the messages that it
// has sent in the form in which they are sent: an exchange then costs what is
// new in it, and the sending. It holds about as many bytes as the largest
// request.
func (m *Model) Bind() converse.Model { return &bound{model: m} }

// bound is a [Model] for one conversation.
type bound struct {
	model      *Model
	busy       atomic.Bool
	transcript transcript // of the exchange that holds busy
}

// Exchange is that of the model. Of two at the same time, which Bind does not
// ask for, one goes without what the other keeps.
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

// Screen returns why the model cannot be offered a tool: its input schema is
// one that no adaptation makes fit, or its server does not take its name. See the
// package comment.
func (m *Model) Screen(definition *invoker.Definition) error {
	_, err := m.appendTool(nil, definition)
	return err
}

// clientOptions sets the SDK's client up. The client is made without its
// constructor, which would put the environment's keys, organization, project,
// base URL and custom headers into requests to whatever host.
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

// httpClient returns a client that stays within the origin of a request.
func (m *Model) httpClient() *http.Client {
	var client http.Client
	if m.opts.HTTPClient != nil {
		client = *m.opts.HTTPClient
	} else if transport, ok := http.DefaultTransport.(*http.Transport); ok {
		m.own = transport.Clone()
		// Conversations side by side would otherwise open a connection for
		// each exchange: the default keeps two, for a minute and a half.
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

// redactorOf returns a function that takes this model's secrets out of a text: its
// key, the values of its headers, and those of its URL's query. A server can repeat a
// key in its error.
func redactorOf(o *Options, base *url.URL) func(text string) string {
	secrets := append(slices.Collect(maps.Values(o.Headers)), o.APIKey)
	for _, values := range base.Query() {
		secrets = append(secrets, values...)
	}
	return redact.Sent(secrets...)
}

// toolCache keeps the encoded forms of the last few toolsets.
type toolCache struct {
	mu      sync.Mutex
	entries []*encodedTools // the newest last
}
