// SPDX-License-Identifier: Apache-2.0

package dialects_test

import (
	"testing"

	"github.com/consort-go/consort/internal/testing/dialects"
)

// TestServers: the servers that the guide to models names are here.
func TestServers(t *testing.T) {
	servers := map[string]bool{}
	for _, api := range []string{"chat", "responses", "messages"} {
		for _, d := range dialects.All(t, api) {
			servers[d.Server] = true
		}
	}
	for _, name := range []string{"OpenAI", "Azure OpenAI", "vLLM", "LM Studio", "Ollama", "OpenRouter", "Anthropic", "Amazon Bedrock"} {
		if !servers[name] {
			t.Errorf("%s is missing", name)
		}
	}
}
