// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"net/url"

	"github.com/consort-go/consort/converse/internal/modelapi"
	"github.com/consort-go/consort/invoker/telemetry"
)

// Describe returns the description of the model for traces: its name, provider, address
// and settings. See [Options].Provider.
func (m *Model) Describe() telemetry.ModelInfo { return m.api.Info }

// describe builds the description from the options.
func (m *Model) describe(base *url.URL) telemetry.ModelInfo {
	o := &m.opts
	info := telemetry.ModelInfo{
		Provider: o.Provider,
		Name:     m.name,
		Address:  base.Hostname(),
		Port:     modelapi.PortOf(base),
		Whole:    o.NoStream,
		JSON:     o.ResponseFormat != nil,
	}
	if info.Provider == "" {
		info.Provider = modelapi.ProviderOf(base)
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
