// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// instruments are the histograms of the conventions.
type instruments struct {
	agent         metric.Float64Histogram
	chat          metric.Float64Histogram
	firstChunk    metric.Float64Histogram
	tokens        metric.Int64Histogram
	tool          metric.Float64Histogram
	request       metric.Float64Histogram
	serving       metric.Float64Histogram
	clientSession metric.Float64Histogram
	serverSession metric.Float64Histogram
	connect       metric.Float64Histogram
}

// The bucket boundaries that the conventions recommend: seconds for turns, for
// exchanges and tools, and for MCP, and numbers of tokens.
var (
	turnSeconds = []float64{0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6}
	chatSeconds = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	mcpSeconds  = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
	tokenCounts = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)

func newInstruments(meter metric.Meter) (made instruments, err error) {
	var problems []error
	seconds := func(name, description string, bounds []float64) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(bounds...))
		problems = append(problems, err)
		return h
	}
	made.agent = seconds("gen_ai.invoke_agent.duration", "Duration of a turn of a conversation.", turnSeconds)
	made.chat = seconds("gen_ai.client.operation.duration", "Duration of an exchange with a model.", chatSeconds)
	made.firstChunk = seconds("gen_ai.client.operation.time_to_first_chunk", "Time until the first piece of an answer arrived.", chatSeconds)
	made.tool = seconds("gen_ai.execute_tool.duration", "Duration of an invocation of a tool.", chatSeconds)
	made.request = seconds("mcp.client.operation.duration", "Duration of a request to a server.", mcpSeconds)
	made.serving = seconds("mcp.server.operation.duration", "Duration of a request of a client.", mcpSeconds)
	made.clientSession = seconds("mcp.client.session.duration", "Duration of a connection to a server.", mcpSeconds)
	made.serverSession = seconds("mcp.server.session.duration", "Duration of a client's session.", mcpSeconds)
	made.connect = seconds("consort.connect.duration", "Duration of an attempt to connect an ensemble.", mcpSeconds)
	made.tokens, err = meter.Int64Histogram("gen_ai.client.token.usage", metric.WithUnit("{token}"),
		metric.WithDescription("Tokens of an exchange with a model."), metric.WithExplicitBucketBoundaries(tokenCounts...))
	return made, errors.Join(append(problems, err)...)
}
