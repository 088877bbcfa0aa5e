// SPDX-License-Identifier: Apache-2.0

package openaiserver_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// asks is an assistant message with calls of these ids.
func asks(ids ...string) string {
	calls := make([]string, len(ids))
	for i, id := range ids {
		calls[i] = fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"x","arguments":"{}"}}`, id)
	}
	return `{"role":"assistant","content":null,"tool_calls":[` + strings.Join(calls, ",") + `]}`
}

func answers(id string) string {
	return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"y"}`, id)
}

// offering is a request that offers tools with these schemas; "" means none.
func offering(schemas ...string) string {
	tools := make([]string, len(schemas))
	for i, schema := range schemas {
		if schema != "" {
			schema = `,"parameters":` + schema
		}
		tools[i] = fmt.Sprintf(`{"type":"function","function":{"name":"t%d"%s}}`, i, schema)
	}
	return request(userMessage, `"tools":[`+strings.Join(tools, ",")+`]`)
}

// named is a request that offers a tool as it is written.
func named(tools string) string { return request(userMessage, `"tools":[`+tools+`]`) }

// strict is a request with a strict tool of this schema.
func strict(schema string) string {
	return named(`{"type":"function","function":{"name":"t","strict":true,"parameters":` + schema + `}}`)
}

func format(f string) string { return request(userMessage, `"response_format":`+f) }

// TestLegalRequests must all be let in.
func TestLegalRequests(t *testing.T) {
	legal := map[string]string{
		"smallest": request(userMessage, ""),
		"all roles": request(`{"role":"developer","content":"d"},{"role":"system","content":[{"type":"text","text":"s"}]},`+userMessage+
			`,{"role":"assistant","content":"a"},`+userMessage, ""),
		"unknown members": request(userMessage, `"chat_template_kwargs":{"thinking":false}`),
		"calls":           request(userMessage+","+asks("a", "b")+","+answers("b")+","+answers("a"), ""),
		"same id later":   request(userMessage+","+asks("a")+","+answers("a")+","+asks("a")+","+answers("a"), ""),
		"bad arguments": request(userMessage+
			`,{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"x","arguments":"{"}}]},`+answers("a"), ""),
		"refusal": request(userMessage+`,{"role":"assistant","refusal":"no"},`+userMessage, ""),
		"parts": request(`{"role":"user","content":[{"type":"text","text":""},{"type":"image_url","image_url":{"url":"data:,"}},`+
			`{"type":"input_audio","input_audio":{"data":"QQ==","format":"wav"}},{"type":"file","file":{"file_data":"x"}}]}`, ""),
		"tool parts": request(userMessage+","+asks("a")+`,{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"y"}]}`, ""),
		"schemas": offering("", `{"type":"object","properties":{}}`,
			`{"type":"object","properties":{"a":{"type":"array","items":{}},"b":{"anyOf":[{"type":"string"}]},"c":true}}`),
		"strict": strict(`{"type":"object","properties":{"a":{"type":"object","properties":{},"additionalProperties":false}},` +
			`"required":["a"],"additionalProperties":false}`),
		"choice":        request(userMessage, offer+`,"parallel_tool_calls":false,"tool_choice":{"type":"function","function":{"name":"files__read"}}`),
		"choice word":   request(userMessage, offer+`,"tool_choice":"none"`),
		"format text":   format(`{"type":"text"}`),
		"format object": request(`{"role":"user","content":"in JSON"}`, `"response_format":{"type":"json_object"}`),
		"format schema": format(`{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{}}}}`),
		"sampling": request(userMessage,
			`"temperature":2,"top_p":0,"max_completion_tokens":1,"stop":["a"],"seed":-1,"reasoning_effort":"low","n":1,"stream":false`),
		"stop": request(userMessage, `"stop":"a"`),
	}
	for name, body := range legal {
		t.Run(name, func(t *testing.T) {
			if status, got := serve(body); status != 200 {
				t.Errorf("status %d: %s", status, got)
			}
		})
	}
}

// serve has one request answered without a socket. The script fits every
// number of assistant messages that the tests use.
func serve(body string) (int, string) {
	return serveWith(openaiserver.New(openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{say("ok")}}, nil), body)
}

func serveWith(server *openaiserver.Server, body string) (int, string) {
	r := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestIllegalRequests(t *testing.T) {
	call := func(c string) string {
		return request(userMessage+`,{"role":"assistant","tool_calls":[`+c+`]},`+answers("a"), "")
	}
	user := func(content string) string { return request(`{"role":"user","content":`+content+`}`, "") }
	tests := []struct{ name, body, message, param string }{
		{"no JSON", `{`, "could not parse the JSON body", ""},
		{"no object", `[]`, "could not parse", ""},
		{"wrong type", `{"model":7}`, "Invalid type for 'model'", "model"},
		{"no model", `{"messages":[` + userMessage + `]}`, "must provide a model", "model"},
		{"no messages", `{"model":"m"}`, "Missing required parameter: 'messages'", "messages"},
		{"empty messages", request("", ""), "Invalid 'messages': empty array", "messages"},
		{"role", request(`{"role":"supervisor","content":"x"}`, ""), "Invalid value: 'supervisor'", "messages[0].role"},
		{"function role", request(`{"role":"function","content":"x"}`, ""), "Invalid value: 'function'", "messages[0].role"},
		{"null content", user("null"), "expected a string, got null", "messages[0].content"},
		{"assistant of nothing", request(userMessage+`,{"role":"assistant"}`, ""), "expected a string, got null", "messages[1].content"},
		{"number content", user("7"), "expected one of a string or array", "messages[0].content"},
		{"empty content", user("[]"), "empty array", "messages[0].content"},
		{"part kind", user(`[{"type":"video"}]`), "Invalid value: 'video'", "messages[0].content[0].type"},
		{"part without text", user(`[{"type":"text"}]`), "Missing required parameter", "messages[0].content[0].text"},
		{"part without url", user(`[{"type":"image_url","image_url":{}}]`), "Missing required parameter", "messages[0].content[0].image_url"},
		{"image in system", request(`{"role":"system","content":[{"type":"image_url","image_url":{"url":"x"}}]}`, ""), "Supported values are: 'text'", ""},
		{
			"image in tool", request(userMessage+","+asks("a")+
				`,{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":{"url":"x"}}]}`, ""), "Supported values are: 'text'", "",
		},
		{"calls of a user", request(`{"role":"user","content":"x","tool_calls":[]}`, ""), "Only messages of role 'assistant'", ""},
		{"answer of a user", request(`{"role":"user","content":"x","tool_call_id":"a"}`, ""), "Only messages of role 'tool'", ""},
		{"no calls", request(userMessage+`,{"role":"assistant","content":"x","tool_calls":[]}`, ""), "empty array", "messages[1].tool_calls"},
		{"call without id", call(`{"type":"function","function":{"name":"x","arguments":"{}"}}`), "tool_calls[0].id", "messages[1].tool_calls[0].id"},
		{"call type", call(`{"id":"a","function":{"name":"x","arguments":"{}"}}`), "Supported values are: 'function'", ""},
		{"call name", call(`{"id":"a","type":"function","function":{"name":"a.b","arguments":"{}"}}`), "does not match pattern", ""},
		{"call arguments", call(`{"id":"a","type":"function","function":{"name":"x"}}`), "function.arguments", ""},
		{"call arguments object", call(`{"id":"a","type":"function","function":{"name":"x","arguments":{}}}`), "Invalid type for", ""},
		{"same id twice", request(userMessage+","+asks("a", "a")+","+answers("a"), ""), "Duplicate value for 'tool_call_id' of 'a'", ""},
		{"unanswered at end", request(userMessage+","+asks("b", "a"), ""), "did not have response messages: a, b", "messages"},
		{"one unanswered", request(userMessage+","+asks("a", "b")+","+answers("a"), ""), "response messages: b", ""},
		{"answered late", request(userMessage+","+asks("a")+","+userMessage+","+answers("a"), ""), "response messages: a", ""},
		{"answered twice", request(userMessage+","+asks("a")+","+answers("a")+","+answers("a"), ""), "Duplicate value", ""},
		{"answer to nothing", request(userMessage+","+answers("a"), ""), "must be a response to a preceeding message", ""},
		{
			"answer again later", request(userMessage+","+asks("a")+","+answers("a")+","+userMessage+","+answers("a"), ""),
			"must be a response to a preceeding message", "",
		},
		{"answer to another", request(userMessage+","+asks("a")+","+answers("a")+","+answers("z"), ""), "'z' not found", ""},
		{
			"answer without id", request(userMessage+","+asks("a")+`,{"role":"tool","content":"y"}`, ""),
			"Missing required parameter", "messages[2].tool_call_id",
		},
		{"no tools", request(userMessage, `"tools":[]`), "empty array", "tools"},
		{"too many tools", offering(make([]string, 129)...), "maximum length 128", "tools"},
		{"tool type", named(`{"function":{"name":"t"}}`), "Supported values are: 'function'", "tools[0].type"},
		{"tool of nothing", named(`{"type":"function"}`), "Missing required parameter", "tools[0].function"},
		{"tool name empty", named(`{"type":"function","function":{"name":""}}`), "does not match pattern", "tools[0].function.name"},
		{"tool name odd", named(`{"type":"function","function":{"name":"größe"}}`), "does not match pattern", ""},
		{"tool name long", named(`{"type":"function","function":{"name":"` + strings.Repeat("a", 65) + `"}}`), "1 to 64 characters", ""},
		{"tool name twice", named(`{"type":"function","function":{"name":"t"}},{"type":"function","function":{"name":"t"}}`), "must be unique", "tools"},
		{"schema string", offering(`"x"`), "must be a JSON object", "tools[0].function.parameters"},
		{"schema without type", offering(`{"properties":{}}`), `got 'type: "None"'`, ""},
		{"schema of type array", offering("", `{"type":"array","items":{}}`), `got 'type: "array"'`, "tools[1].function.parameters"},
		{"schema without properties", offering(`{"type":"object"}`), "object schema missing properties", ""},
		{"schema root oneOf", offering(`{"type":"object","properties":{},"oneOf":[]}`), "at the top level", ""},
		{"schema root anyOf", offering(`{"type":"object","properties":{},"anyOf":[]}`), "at the top level", ""},
		{"schema root allOf", offering(`{"type":"object","properties":{},"allOf":[]}`), "at the top level", ""},
		{"schema root enum", offering(`{"type":"object","properties":{},"enum":[]}`), "at the top level", ""},
		{"schema root not", offering(`{"type":"object","properties":{},"not":{}}`), "at the top level", ""},
		{"array without items", offering(`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":["array","null"]}}}}}`),
			"In context=('properties', 'a', 'properties', 'b'), array schema missing items", ""},
		{
			"array in anyOf", offering(`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"array"}]}}}`),
			"('properties', 'a', 'anyOf', '1')", "",
		},
		{"array in items", offering(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"array"}}}}`), "('properties', 'a', 'items')", ""},
		{"array in $defs", offering(`{"type":"object","properties":{},"$defs":{"d":{"type":"array"}}}`), "('$defs', 'd')", ""},
		{"strict open", strict(`{"type":"object","properties":{}}`), "'additionalProperties' is required", ""},
		{"strict optional", strict(`{"type":"object","properties":{"a":{}},"additionalProperties":false}`), "Missing 'a'", ""},
		{"choice without tools", request(userMessage, `"tool_choice":"auto"`), "only allowed when 'tools'", "tool_choice"},
		{"parallel without tools", request(userMessage, `"parallel_tool_calls":true`), "only allowed when 'tools'", "parallel_tool_calls"},
		{"choice word", request(userMessage, offer+`,"tool_choice":"any"`), "Invalid value: 'any'", "tool_choice"},
		{"choice number", request(userMessage, offer+`,"tool_choice":7`), "Invalid type for 'tool_choice'", ""},
		{"choice of another", request(userMessage, offer+`,"tool_choice":{"type":"function","function":{"name":"z"}}`), "'z' not found", ""},
		{"format type", format(`{"type":"yaml"}`), "Invalid value: 'yaml'", "response_format.type"},
		{"format object", format(`{"type":"json_object"}`), "must contain the word 'json'", "messages"},
		{"format without schema", format(`{"type":"json_schema"}`), "Missing required parameter", "response_format.json_schema"},
		{"format name", format(`{"type":"json_schema","json_schema":{"name":"a b","schema":{}}}`), "does not match pattern", ""},
		{"format null schema", format(`{"type":"json_schema","json_schema":{"name":"n","schema":null}}`), "Missing required parameter", ""},
		{
			"format bad schema", format(`{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"string"}}}`),
			"Invalid schema for response_format 'n'", "",
		},
		{"stream options", request(userMessage, `"stream_options":{"include_usage":true}`), "only allowed when 'stream'", "stream_options"},
		{"n", request(userMessage, `"n":2`), "one choice", "n"},
		{"temperature", request(userMessage, `"temperature":2.1`), "between 0 and 2", "temperature"},
		{"top_p", request(userMessage, `"top_p":-1`), "between 0 and 1", "top_p"},
		{"both limits", request(userMessage, `"max_tokens":1,"max_completion_tokens":1`), "at the same time", "max_tokens"},
		{"max_tokens", request(userMessage, `"max_tokens":0`), ">= 1", "max_tokens"},
		{"max_completion_tokens", request(userMessage, `"max_completion_tokens":-1`), ">= 1", "max_completion_tokens"},
		{"stop", request(userMessage, `"stop":["a","b","c","d","e"]`), "one to four", "stop"},
		{"effort", request(userMessage, `"reasoning_effort":"huge"`), "Invalid value: 'huge'", "reasoning_effort"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			status, got := serve(test.body)
			message, kind, param, _ := errorOf(t, got)
			if status != 400 || kind != "invalid_request_error" || !strings.Contains(message, test.message) {
				t.Errorf("status %d, want a message with %q: %s", status, test.message, got)
			}
			if test.param != "" && param != test.param {
				t.Errorf("param %q, want %q", param, test.param)
			}
		})
	}
}

// TestProviders: a history that lacks what a provider requires is refused in its words.
func TestProviders(t *testing.T) {
	says := func(members, call string) string {
		return `,{"role":"assistant","content":"Yes."` + members + `,"tool_calls":[{"id":"a","type":"function",` + call + `"function":{"name":"x","arguments":"{}"}}]},` + answers("a")
	}
	said := func(members string) string { return `,{"role":"assistant","content":"Yes."` + members + `}` }
	const signed, mine, empty = `"extra_content":{"google":{"thought_signature":"s"}},`, `,"reasoning_content":" "`, `,"reasoning_content":""`
	for _, test := range []struct{ provider, messages, want string }{
		{"gemini", says("", ""), "Function call is missing a thought_signature in functionCall parts."},
		{"gemini", says("", signed) + says("", ""), "position 4"},
		{"gemini", says("", signed), ""},
		{"gemini", says("", "") + "," + userMessage, ""},
		{"kimi", says("", ""), "reasoning_content is missing in assistant tool call message at index 1"},
		{"kimi", says(empty, ""), "reasoning_content is missing in assistant tool call message at index 1"},
		{"kimi", says(mine, "") + said(""), ""},
		{"deepseek", says("", ""), "`reasoning_content` in the thinking mode must be passed back"},
		{"deepseek", says(mine, "") + said("") + "," + userMessage, "`reasoning_content` in the thinking mode must be passed back"},
		{"deepseek", says(mine, "") + said(mine) + "," + userMessage + said("") + "," + userMessage, ""},
		{"", says("", ""), ""},
		{"acme", "", `there is no provider "acme"`},
	} {
		server := openaiserver.New(openaiserver.Script{
			Provider: test.provider, Repeat: true, Steps: []openaiserver.Step{{Reply: openaiserver.Message{Text: "Well."}}},
		}, nil)
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(request(userMessage+test.messages, "")))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if refused := w.Code == http.StatusBadRequest; refused != (test.want != "") || !strings.Contains(strings.ReplaceAll(w.Body.String(), `\"`, `"`), test.want) {
			t.Errorf("%s: status %d, want %q: %s", test.provider, w.Code, test.want, w.Body)
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add(request(userMessage+","+asks("a", "b")+","+answers("b")+","+answers("a"), offer+`,"tool_choice":"auto","stream":true`))
	f.Add(offering(`{"type":"object","properties":{"a":{"anyOf":[{"type":["array"]}]}},"required":[7,{}],"additionalProperties":false}`))
	f.Add(format(`{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object","properties":{"a":[]}}}}`))
	f.Fuzz(func(t *testing.T, body string) {
		if status, got := serve(body); status != 200 && status != 400 {
			t.Errorf("status %d: %s", status, got)
		}
	})
}
