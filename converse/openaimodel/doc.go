// SPDX-License-Identifier: Apache-2.0

// Package openaimodel is a [converse.Model] for servers that speak OpenAI's Responses or
// Chat Completions: OpenAI itself, and the many that call themselves compatible. It is the
// only package that uses openai-go.
//
// The simplest use takes the key from OPENAI_API_KEY:
//
//	model, err := openaimodel.New("gpt-5-mini", nil)
//
// For another server, set its base URL:
//
//	model, err := openaimodel.New("qwen3", &openaimodel.Options{BaseURL: "http://localhost:8080/v1"})
//
// Everything else is in [Options], whose zero value is a good default.
//
// # Keys
//
// The SDK reads keys, organization, project, headers and the base URL from the
// environment, and sends them to any host. This package reads only OPENAI_API_KEY, and
// only if the base URL is OpenAI's own. It follows redirects only within the origin of
// the base URL. Errors do not contain the secrets that were given to the model.
//
// # APIs
//
// OpenAI and Azure get Responses, which their current models require for tools; other
// servers get Chat Completions. Options.API decides otherwise. With Responses the server
// keeps nothing: each request has the whole history. Encrypted reasoning, and what tools of
// the server did, are stored in the metadata of the Assistant as openaimodel.output,
// together with the host and the model, and sent back only to these. Results carry images
// and PDF files. A tool is strict if its schema can be enforced as it is. What follows is
// about both APIs, and where they differ, about Chat Completions.
//
// # What is sent
//
// Canisters become messages. Nothing is dropped silently: content that the API cannot
// carry becomes a line of text. A Supervisor is a system message, a Document is a user
// message with a frame, an Assistant and its Invocations are one assistant message, and
// each Result is a tool message. Tool messages can only contain text, so images of
// results are sent in a user message after the last of them. If a result has the same
// content as text and as structured content, it is sent once, in whatever form it has; a
// long text stays as it is, and the structured content refers to it. Arguments that are
// not a JSON object are wrapped in one, as malformed_arguments, because many servers
// parse the history and reject it as a whole. For the same reason, characters that are
// not allowed in tool names become underscores.
//
// Some servers require data from earlier answers. It is stored in metadata together with
// the host, and sent back only to that host. Data of a call, such as Gemini's thought
// signatures, is stored as openaimodel.extra_content of the Invocation. The
// reasoning_content of a message, without which DeepSeek and Kimi reject the history, is
// stored as openaimodel.reasoning_content of the Assistant, and the reasoning_details
// that OpenRouter requires as openaimodel.reasoning_details. The latter are sent back only
// with the same model, because the host of a router stands for several providers. If a
// server rejects answers of other models because they lack its signatures or reasoning,
// the history is sent again with placeholders. If it refuses an image or a file, a line of text
// replaces it, and the next answer has its SHA-256 as openaimodel.media_refused, so that the
// model of another process does not send it either.
//
// If a server refuses the order of roles, messages of the user in a row become one from then on,
// and a Supervisor after the first messages is part of it, with a frame.
//
// The same history and tools always produce the same bytes. A conversation uses the model
// that [Model.Bind] returns. It keeps the messages that it has sent and appends to them,
// so that an exchange encodes only the new messages.
//
// Trace headers are sent only if Options.TraceHeaders is set.
//
// # Tools
//
// Schemas that the API accepts are sent unchanged, in canonical form. Other schemas are
// adapted so that they accept at least the same arguments: a root without properties gets
// some, allOf at the root is merged, anyOf and oneOf become one object with the members
// of all branches and a sentence that states the remaining conditions, $schema and $id
// are removed, and local references are inlined for servers that do not follow them (see
// Options.InlineRefs). strict is never sent, as it would make optional arguments
// mandatory. If a schema cannot be adapted, [Model.Screen] returns the reason: arguments
// that are not an object, a reference outside the schema, a schema that is too deep or
// too large.
//
// # What comes back
//
// This package reads streams itself, because the SDK's accumulator merges or loses calls
// of several servers. It separates calls by index, ID, name, and whether the earlier
// arguments are complete. If a call begins with the arguments {} and another object follows, without
// a name and without another ID, it replaces the {}. Calls count whatever the finish reason is. The prefix
// functions. of a name is removed if the rest is an offered tool and the full name is
// not. An answer is complete if the server sent a finish reason or [DONE]. Anything else
// is an error, never a partial message, and so is a finish reason that reports a failure.
// Arguments that were cut off at the token limit stay as they are, which is not valid
// JSON. If a call was cut off before its arguments, a line that says so, and that is not
// JSON either, replaces them. This also holds for a call whose arguments are still empty at
// a [DONE] without a finish reason. In all these cases the call does not run, and the model
// is told.
//
// Failed attempts are retried, and each is reported as a [converse.Retry] before the wait.
// A stream that breaks off is retried only if it has yielded nothing so far. If a
// server stops responding, the exchange is not retried, because the wait was long enough.
package openaimodel
