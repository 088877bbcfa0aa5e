// SPDX-License-Identifier: Apache-2.0

// OpenAI's own client talks to the conversations of consort serve.

import { createRequire } from "node:module";

const task = JSON.parse(process.argv[2]);
const require = createRequire(task.modules + "/");
const OpenAI = require("openai").OpenAI;
const client = new OpenAI({ baseURL: task.url + "/v1", apiKey: task.token });
const saw = {};
const model = "scripted";
const user = (content) => ({ role: "user", content });
const refused = async (promise) => promise.then(() => ({ status: 0 }), (e) => ({ status: e.status, code: e.code, param: e.param, message: e.message }));
const kinds = (response) => response.output.map((item) => item.type === "mcp_call" ? `${item.type} ${item.server_label}.${item.name} ${item.status} ${item.output}` : item.type);

saw.models = (await client.models.list()).data.map((one) => one.id);
saw.model = (await client.models.retrieve(model)).id;

// Chat Completions: whole, continued, streamed with a tool.
const messages = [user("hello")];
const whole = await client.chat.completions.create({ model, messages });
saw.whole = whole.choices[0].message.content;
saw.usage = whole.usage.total_tokens > 0;
messages.push(whole.choices[0].message, user("echo: over the wire"));
saw.streamed = "";
saw.chunkUsage = 0;
for await (const chunk of await client.chat.completions.create({ model, messages, stream: true, stream_options: { include_usage: true } })) {
  saw.streamed += chunk.choices[0]?.delta?.content ?? "";
  saw.finish = chunk.choices[0]?.finish_reason ?? saw.finish;
  saw.chunkUsage = chunk.usage?.total_tokens ?? saw.chunkUsage;
}
saw.helper = (await client.chat.completions.stream({ model, messages: [user("with the helper")] }).finalContent());

// An approval in a chat is a message.
const asking = [user("sum")];
const asked = await client.chat.completions.create({ model, messages: asking });
saw.asked = asked.choices[0].message.content;
asking.push(asked.choices[0].message, user("/allow"));
saw.allowed = (await client.chat.completions.create({ model, messages: asking })).choices[0].message.content;

// Responses: whole, read again, continued, streamed, with a tool.
const first = await client.responses.create({ model, input: "echo: first" });
saw.first = { text: first.output_text, kinds: kinds(first) };
saw.again = (await client.responses.retrieve(first.id)).output_text;
const second = await client.responses.create({ model, input: [user("second")], previous_response_id: first.id });
saw.second = second.output_text;
saw.events = [];
saw.delta = "";
let last;
for await (const event of await client.responses.create({ model, input: "echo: third", previous_response_id: second.id, stream: true })) {
  if (event.type === "response.output_text.delta") saw.delta += event.delta;
  if (saw.events.at(-1) !== event.type) saw.events.push(event.type);
  last = event;
}
saw.third = { text: last.response.output_text ?? "", kinds: kinds(last.response) };
saw.final = (await client.responses.stream({ model, input: "the helper" }).finalResponse()).output_text;

// An approval is an item, and so is its answer.
const waiting = await client.responses.create({ model, input: "sum" });
const request = waiting.output.find((item) => item.type === "mcp_approval_request");
saw.request = { label: request.server_label, name: request.name, arguments: request.arguments };
const answered = await client.responses.create({
  model, previous_response_id: waiting.id,
  input: [{ type: "mcp_approval_response", approval_request_id: request.id, approve: true }],
});
saw.answered = { text: answered.output_text, kinds: kinds(answered) };

// Tools of this program: in a chat, whole and streamed, and with the helper that runs them.
const parameters = { type: "object", properties: { colour: { type: "string" } } };
const tools = [{ type: "function", function: { name: "paint", parameters } }];
const painting = [user("paint")];
const calling = (await client.chat.completions.create({ model, messages: painting, tools })).choices[0];
saw.calling = `${calling.finish_reason} ${calling.message.tool_calls.map((call) => call.function.name + call.function.arguments)}`;
painting.push(calling.message, ...calling.message.tool_calls.map((call) => ({ role: "tool", tool_call_id: call.id, content: "dry" })));
const painted = client.chat.completions.stream({ model, messages: painting, tools });
saw.painted = await painted.finalContent();
const ran = [];
const paint = { type: "function", function: { name: "paint", parameters, parse: JSON.parse, function: ({ colour }) => { ran.push(colour); return `${colour} paint`; } } };
saw.ran = await client.chat.completions.runTools({ model, messages: [user("paint")], tools: [paint], stream: true }).finalContent();
saw.colours = ran.join(" ");

// The same with Responses, by ID and with the whole list.
const flat = [{ type: "function", name: "paint", parameters, strict: false }];
const outputs = (response) => response.output.filter((item) => item.type === "function_call")
  .map((item) => ({ type: "function_call_output", call_id: item.call_id, output: `${item.name} done` }));
const called = await client.responses.create({ model, input: "paint", tools: flat });
saw.called = (await client.responses.create({ model, previous_response_id: called.id, input: outputs(called), tools: flat })).output_text;
const calls = await client.responses.stream({ model, input: "paint", tools: flat }).finalResponse();
saw.listed = (await client.responses.create({ model, input: [user("paint"), ...calls.output, ...outputs(calls)], tools: flat })).output_text;

// Cancel: in the background, and by leaving.
const background = await client.responses.create({ model, input: "slow", background: true });
saw.background = background.status;
saw.cancelled = (await client.responses.cancel(background.id)).status;
const leaving = new AbortController();
const stream = await client.responses.create({ model, input: "slow", stream: true }, { signal: leaving.signal });
let left;
for await (const event of stream) {
  if (event.response) left = event.response.id;
  if (event.type === "response.output_text.delta") break;
}
leaving.abort();
for (saw.left = ""; saw.left !== "cancelled";) {
  saw.left = (await client.responses.retrieve(left)).status;
  await new Promise((done) => setTimeout(done, 20));
}

// Errors.
saw.unsupported = await refused(client.chat.completions.create({ model, messages, tool_choice: "required" }));
saw.noModel = await refused(client.responses.create({ model: "gpt-9", input: "x" }));
saw.noToken = await refused(new OpenAI({ baseURL: task.url + "/v1", apiKey: "wrong" }).models.list());
saw.foreign = await refused(new OpenAI({ baseURL: task.url + "/v1", apiKey: task.other }).responses.retrieve(first.id));
saw.failed = await refused(client.chat.completions.create({ model, messages: [user("fail")] }));
console.log(JSON.stringify(saw));
