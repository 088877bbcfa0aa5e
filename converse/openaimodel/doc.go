// SPDX-License-Identifier: Apache-2.0

// Package openaimodel is a [converse.Model] for servers that speak OpenAI's
// Chat Completions: OpenAI itself, and the many that call themselves
// compatible. It is the one doorway to openai-go.
//
// The smallest use takes the key from OPENAI_API_KEY:
//
//	model, err := openaimodel.New("gpt-5-mini", nil)
//
// and another server is a matter of its base URL:
//
//	model, err := openaimodel.New("qwen3", &openaimodel.Options{BaseURL: "http://localhost:8080/v1"})
//
// Everything else is in [Options], whose zero value is a good default.
//
// # Keys
//
// The SDK takes keys, organization, project, headers and the base URL from the
// environment and sends them to whatever host it is pointed at. This package
// takes one thing from there, OPENAI_API_KEY, and only when the base URL is
// OpenAI's own. Redirections are followed within the origin of the base URL and
// nowhere else, and errors do not repeat what a model was given as a secret.
//
// # What is sent
//
// Canisters become messages so that nothing is dropped in silence: a line
// stands for what the API cannot carry. A Supervisor is a system message, a
// Document a user message with a frame, an Assistant and its Invocations one
// assistant message, and each Result a tool message. As those carry text
// alone, the images of results follow in a user message behind the last of
// them. What a result says as text and as structured content too is sent once,
// in whatever shape it comes; a long text stays as it is, and the structured
// content refers to it. Arguments that are no JSON object go back inside of one,
// as malformed_arguments, because many servers parse the history and refuse it
// whole. For the same reason, characters that no tool's name can have go back as
// underscores.
//
// What a server wants to see again is kept in metadata, with the host, and goes
// back to that host alone: what it sends along with a call, such as Gemini's
// thought signatures, as openaimodel.extra_content of the Invocation, and the
// reasoning_content of a message, without which DeepSeek and Kimi refuse the
// history, as openaimodel.reasoning_content of the Assistant.
//
// The same history and tools give the same bytes, always. A conversation uses
// the model that [Model.Bind] returns, which keeps the messages that it has
// sent and adds to them, so that an exchange costs what is new in it.
//
// Nothing of a trace is sent to a server that Options.TraceHeaders does not
// name as one that takes part.
//
// # Tools
//
// Schemas are sent as the tool gave them where the API takes them, in canonical
// form. Where it does not, they are adapted, and accept at least what they
// accepted before: a root without properties gets some, allOf at the root is
// merged, anyOf and oneOf become one object with the members of all and a
// sentence that says the rest, $schema and $id go, local references are
// written out for servers that do not follow them (see Options.InlineRefs).
// strict is never sent, as it would make optional arguments mandatory. Where
// neither works, [Model.Screen] says why: arguments that are not an object, a
// reference to somewhere else, a schema that is too deep or too large.
//
// # What comes back
//
// Streams are read by this package and not by the SDK, whose accumulator merges
// or loses calls of several servers. Calls are told apart by index, identity,
// name and whether the arguments before are whole; they count as calls
// whatever the finish reason says. The prefix functions. of a name is left off if the
// rest is a tool on offer and the whole is not. An answer is whole when the server said why
// the model stopped, or sent [DONE]; anything else is an error, never half a
// message, and so is a reason that says that the server failed. Arguments that were cut off at the limit of tokens stay as they are,
// which is not valid JSON; a line that says so, and is not JSON either, stands
// for those of a call that was cut off before them. Neither call runs, and the
// model learns of it.
//
// Failed attempts are tried again by the SDK, and each is a [converse.Retry]
// before the wait. A stream that breaks off is tried again only as long as it
// has said nothing. A server that falls silent is not: the wait was long enough.
package openaimodel
