// SPDX-License-Identifier: Apache-2.0

// Package openaiserver provides a server for OpenAI's Chat Completions and Responses and for
// Anthropic's Messages that answers from a script. Tests, benchmarks and the demonstration
// use it over real sockets, with the same client code that they use for a real model. It
// uses net/http and no third-party module.
//
// The smallest use is one answer:
//
//	server, err := openaiserver.Start(openaiserver.Script{Steps: []openaiserver.Step{
//		{Reply: openaiserver.Message{Text: "Hello."}},
//	}}, nil)
//	defer server.Close()
//	// point a client at server.URL()
//
// # Scripts
//
// A [Script] is a list of steps. Each request determines its step by the number of
// assistant messages in its history. The server therefore keeps no state about a
// conversation, and one script serves thousands of them at the same time. [Script.Repeat]
// starts over after the last step, for conversations of any length.
//
// A [Step] may state what it expects of the request ([Expect]). A request that does not
// match, or comes after the last step, is answered with status 400 and the expectation.
// The server keeps these faults for [Server.Faults], so that a test can check at its end
// that every request followed the script.
//
// A step answers with a [Reply]: a [Message] (text, reasoning, refusal, tool calls), a
// [Failure] (see [RateLimited], [ServerError], [Unauthorized] and [ContextLength]), a
// [Replay] of recorded bytes, or the result of a [Respond] function. [Step.Before] holds
// replies for only the first requests, for example a 500 that a retry overcomes.
//
// # Requests
//
// Each request is checked as the provider of its API checks it, and refused with an error
// object of the same shape: for histories in which a tool call has no answer or two, for
// reasoning that belongs to another model or to nothing, for tool names and schemas that
// are not accepted, for unknown members, and so on. The rules name their sources. A passing
// test therefore shows that the requests are valid. [Options.Trust] turns the
// checks off for benchmarks. [Server.Requests] returns the latest requests as they were
// received.
//
// # Replays and oddities
//
// A [Replay] sends bytes exactly as given and decides where writes end, where pauses
// occur, and whether the connection ends properly, is cut, is reset, or stalls.
// [Oddities], [ResponsesOddities] and [MessagesOddities] are such streams, one for each known
// peculiarity of real servers, reduced to that peculiarity, with the result that a correct
// client must produce. The server offers each one under its own base URL, see [OddityURL].
//
// # As a process
//
// The command openaiserverd only calls [Main]: it reads a script from a JSON file
// ([ParseScript] documents the form), prints its base URL on standard output, and exits
// when standard input ends. [Launch] starts it, or a test binary that calls Main, and
// [Process.Close] ends it.
package openaiserver
