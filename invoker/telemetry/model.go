// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"

	"go.opentelemetry.io/otel/attribute"
)

// ModelInfo describes the model; unknown fields are empty.
type ModelInfo struct {
	Provider string // name in the conventions, such as "openai"
	Name     string // name in the request
	Address  string // host of the server
	Port     int
	Whole    bool // answers are not streamed
	JSON     bool // answers are requested as JSON

	// The settings of the model. A request's own settings take precedence.
	MaxTokens         int64
	Temperature, TopP *float64
	Stop              []string
	Seed              *int64
}

// attributes returns the attributes that every measurement of a chat has.
func (m ModelInfo) attributes() []attribute.KeyValue {
	list := make([]attribute.KeyValue, 0, 8)
	list = append(list, keyOperation.String("chat"), m.provider())
	if m.Name != "" {
		list = append(list, keyRequestModel.String(m.Name))
	}
	return appendAddress(list, Peer{Address: m.Address, Port: m.Port}, keyServerAddress, keyServerPort)
}

// provider returns the provider attribute, which is required for a chat.
func (m ModelInfo) provider() attribute.KeyValue {
	return keyProvider.String(cmp.Or(m.Provider, otherProvider))
}

// otherProvider is the provider name if none is given.
const otherProvider = "unknown"
