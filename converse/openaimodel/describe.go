// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/consort-go/consort/invoker/telemetry"
)

// Describe returns the description of the model for traces: its name, provider, address
// and settings. See [Options].Provider.
func (m *Model) Describe() telemetry.ModelInfo { return m.info }

// Describe describes the underlying model.
func (b *bound) Describe() telemetry.ModelInfo { return b.model.Describe() }

// describe builds the description from the options.
func (m *Model) describe(base *url.URL) telemetry.ModelInfo {
	o := &m.opts
	info := telemetry.ModelInfo{
		Provider: o.Provider,
		Name:     m.name,
		Address:  base.Hostname(),
		Port:     portOf(base),
		Whole:    o.NoStream,
		JSON:     o.ResponseFormat != nil,
	}
	if info.Provider == "" {
		info.Provider = providerOf(base)
	}
	if !o.extra("max_tokens") && !o.extra("max_completion_tokens") {
		info.MaxTokens = int64(o.MaxTokens)
	}
	if !o.extra("temperature") {
		info.Temperature = o.Temperature
	}
	if !o.extra("top_p") {
		info.TopP = o.TopP
	}
	if !o.extra("stop") {
		info.Stop = o.Stop
	}
	if !o.extra("seed") {
		info.Seed = o.Seed
	}
	return info
}

func portOf(base *url.URL) int {
	if port, err := strconv.Atoi(base.Port()); err == nil {
		return port
	}
	if base.Scheme == "http" {
		return 80
	}
	return 443
}

// compatible is the provider name for unknown hosts: the server is compatible with
// OpenAI's API, but its operator is unknown.
const compatible = "openai_compatible"

// providers maps hosts to the provider names of the OpenTelemetry conventions. They also
// apply to subdomains.
var providers = map[string]string{
	"api.openai.com":                    "openai",
	"openai.azure.com":                  "azure.ai.openai",
	"services.ai.azure.com":             "azure.ai.inference",
	"generativelanguage.googleapis.com": "gcp.gemini",
	"aiplatform.googleapis.com":         "gcp.vertex_ai",
	"api.anthropic.com":                 "anthropic",
	"api.cohere.ai":                     "cohere",
	"api.cohere.com":                    "cohere",
	"api.perplexity.ai":                 "perplexity",
	"api.x.ai":                          "x_ai",
	"api.deepseek.com":                  "deepseek",
	"api.groq.com":                      "groq",
	"api.mistral.ai":                    "mistral_ai",
	"api.moonshot.ai":                   "moonshot_ai",
	"api.moonshot.cn":                   "moonshot_ai",
}

// providerOf returns the provider name for the host of a server.
func providerOf(base *url.URL) string {
	for host, more := strings.ToLower(base.Hostname()), true; more; {
		if name := providers[host]; name != "" {
			return name
		}
		_, host, more = strings.Cut(host, ".")
	}
	return compatible
}

// inject adds the trace context to a request if TraceHeaders is set.
func (x *exchange) inject(req *http.Request) {
	if x.m.opts.TraceHeaders {
		telemetry.Inject(req.Context(), carrier{req.Header})
	}
}

// carrier lets a propagator write headers.
type carrier struct{ http.Header }

// Keys returns the names of the headers.
func (c carrier) Keys() []string {
	var names []string
	for name := range c.Header {
		names = append(names, name)
	}
	return names
}
