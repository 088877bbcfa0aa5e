// SPDX-License-Identifier: Apache-2.0

package telemetry

import "go.opentelemetry.io/otel/attribute"

// SchemaURL is the version of the semantic conventions for general attributes,
// such as error.type. The conventions for generative AI and MCP are now in a
// separate repository, which has no versions yet: testdata has the commits that
// the names were checked against.
const SchemaURL = "https://opentelemetry.io/schemas/1.43.0"

// The attributes, in the order of the conventions' tables: GenAI, MCP, general.
const (
	keyOperation      = attribute.Key("gen_ai.operation.name")
	keyProvider       = attribute.Key("gen_ai.provider.name")
	keyConversation   = attribute.Key("gen_ai.conversation.id")
	keyAgentName      = attribute.Key("gen_ai.agent.name")
	keyRequestModel   = attribute.Key("gen_ai.request.model")
	keyMaxTokens      = attribute.Key("gen_ai.request.max_tokens")
	keyTemperature    = attribute.Key("gen_ai.request.temperature")
	keyTopP           = attribute.Key("gen_ai.request.top_p")
	keySeed           = attribute.Key("gen_ai.request.seed")
	keyOutputType     = attribute.Key("gen_ai.output.type")
	keyStop           = attribute.Key("gen_ai.request.stop_sequences")
	keyStream         = attribute.Key("gen_ai.request.stream")
	keyResponseModel  = attribute.Key("gen_ai.response.model")
	keyFinish         = attribute.Key("gen_ai.response.finish_reasons")
	keyFirstChunk     = attribute.Key("gen_ai.response.time_to_first_chunk")
	keyInput          = attribute.Key("gen_ai.usage.input_tokens")
	keyCached         = attribute.Key("gen_ai.usage.cache_read.input_tokens")
	keyCacheWritten   = attribute.Key("gen_ai.usage.cache_creation.input_tokens")
	keyOutput         = attribute.Key("gen_ai.usage.output_tokens")
	keyReasoning      = attribute.Key("gen_ai.usage.reasoning.output_tokens")
	keyTokenType      = attribute.Key("gen_ai.token.type")
	keyInstructions   = attribute.Key("gen_ai.system_instructions")
	keyInputMessages  = attribute.Key("gen_ai.input.messages")
	keyOutputMessages = attribute.Key("gen_ai.output.messages")
	keyDefinitions    = attribute.Key("gen_ai.tool.definitions")
	keyToolName       = attribute.Key("gen_ai.tool.name")
	keyToolCall       = attribute.Key("gen_ai.tool.call.id")
	keyToolText       = attribute.Key("gen_ai.tool.description")
	keyToolType       = attribute.Key("gen_ai.tool.type")
	keyArguments      = attribute.Key("gen_ai.tool.call.arguments")
	keyResult         = attribute.Key("gen_ai.tool.call.result")
	keyPrompt         = attribute.Key("gen_ai.prompt.name")

	keyMethod      = attribute.Key("mcp.method.name")
	keyProtocol    = attribute.Key("mcp.protocol.version")
	keySession     = attribute.Key("mcp.session.id")
	keyResource    = attribute.Key("mcp.resource.uri")
	keyRequestID   = attribute.Key("jsonrpc.request.id")
	keyStatusCode  = attribute.Key("rpc.response.status_code")
	keyRPCSystem   = attribute.Key("rpc.system.name")
	keyRPCMethod   = attribute.Key("rpc.method")
	keyTransport   = attribute.Key("network.transport")
	keyNetProtocol = attribute.Key("network.protocol.name")
	keyNetVersion  = attribute.Key("network.protocol.version")

	keyErrorType     = attribute.Key("error.type")
	keyExceptionType = attribute.Key("exception.type")
	keyExceptionText = attribute.Key("exception.message")
	keyServerAddress = attribute.Key("server.address")
	keyServerPort    = attribute.Key("server.port")
	keyClientAddress = attribute.Key("client.address")
	keyClientPort    = attribute.Key("client.port")

	// Attributes that the conventions do not define.
	keyEnsemble = attribute.Key("consort.ensemble")
	keyClient   = attribute.Key("consort.client.name")
	keyAlias    = attribute.Key("consort.alias") // required names older than the conventions: mcp.call, mcp.tools.list
	// The names required by the gRPC tool service for a mesh application and its
	// tool; the second has the same meaning as gen_ai.tool.name.
	keyApplication = attribute.Key("mcp.app_id")
	keyOldToolName = attribute.Key("mcp.tool_name")

	keyReason    = attribute.Key("consort.turn.reason")
	keyExchanges = attribute.Key("consort.turn.exchanges")
	keyCalls     = attribute.Key("consort.turn.invocations")
	keyTools     = attribute.Key("consort.tools.count")
	keyAside     = attribute.Key("consort.tools.aside")
	keyAttempt   = attribute.Key("consort.retry.attempt")
	keyWait      = attribute.Key("consort.retry.wait") // seconds
	keyErrorText = attribute.Key("consort.error.message")
	keyFallback  = attribute.Key("consort.fallback")
)

// exceptionEvent is the name of the span event with the cause of a failure.
const exceptionEvent = "exception"

// retried is the name of the event of a chat span that reports that an attempt
// failed and another one follows.
const retried = "consort.retry"
