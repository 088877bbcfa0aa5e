// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"net/url"
	"strconv"
	"strings"
)

// PortOf returns the port of a URL, also where it is not written.
func PortOf(base *url.URL) int {
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
	"cognitiveservices.azure.com":       "azure.ai.openai",
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

// ProviderOf returns the provider name for the host of a server.
func ProviderOf(base *url.URL) string {
	host, more := strings.ToLower(base.Hostname()), true
	if isVertex(host) {
		return "gcp.vertex_ai"
	}
	for more {
		if name := providers[host]; name != "" {
			return name
		}
		_, host, more = strings.Cut(host, ".")
	}
	return compatible
}

// isVertex reports whether a host is Vertex AI's in a region, such as
// us-central1-aiplatform.googleapis.com or aiplatform.eu.rep.googleapis.com.
func isVertex(host string) bool {
	return strings.HasSuffix(host, "-aiplatform.googleapis.com") ||
		strings.HasPrefix(host, "aiplatform.") && strings.HasSuffix(host, ".rep.googleapis.com")
}
