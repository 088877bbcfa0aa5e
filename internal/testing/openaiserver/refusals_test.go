// SPDX-License-Identifier: Apache-2.0

package openaiserver_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/testing/openaiserver"
)

const (
	hello   = `{"role":"user","content":"Hi"}`
	called  = `{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{}}]}`
	results = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"x"}]}`
)

// claude is a request to Messages with further members.
func claude(messages string, members ...string) string {
	return `{"model":"m","max_tokens":4096,"messages":[` + messages + `]` + strings.Join(append([]string{""}, members...), ",") + `}`
}

// claudeTool is a request to Messages with a tool that has these members.
func claudeTool(members string) string {
	return claude(hello, `"tools":[{"name":"f","input_schema":{"type":"object"}`+members+`}]`)
}

// userBlock is a request to Messages with a block of the user.
func userBlock(block string) string { return claude(`{"role":"user","content":[` + block + `]}`) }

// claudeSays is a request to Messages after an answer with these blocks.
func claudeSays(blocks string) string {
	return claude(hello + `,{"role":"assistant","content":[` + blocks + `]},` + hello)
}

// image is an image of Messages.
func image(mime, data string) string {
	return fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":%q,"data":%q}}`, mime, base64.StdEncoding.EncodeToString([]byte(data)))
}

const pngData = "\x89PNG\r\n\x1a\n"

// TestMessagesRefusals: what Anthropic refuses is refused in its words.
func TestMessagesRefusals(t *testing.T) {
	search := `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`
	found := `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`
	marked := `{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}`
	think := `"thinking":{"type":"enabled","budget_tokens":2048}`
	result := func(members string) string {
		return claude(hello + "," + called + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1",` + members + `}]}`)
	}
	for says, body := range map[string]string{
		"messages: at least one":                          claude(""),
		"max_tokens: Field required":                      `{"model":"m","messages":[` + hello + `]}`,
		"model: Field required":                           `{"max_tokens":9,"messages":[` + hello + `]}`,
		"seed: Extra inputs":                              claude(hello, `"seed":1`),
		"name: Extra inputs":                              claude(`{"role":"user","name":"ann","content":"Hi"}`),
		"text.foo: Extra inputs":                          userBlock(`{"type":"text","text":"a","foo":1}`),
		"custom.foo: Extra inputs":                        claudeTool(`,"foo":1`),
		"messages.0.role":                                 claude(`{"role":"system","content":"a"}`),
		"first message must use":                          claude(`{"role":"assistant","content":"a"},` + hello),
		"content blocks must be non":                      userBlock(`{"type":"text","text":""}`),
		"must contain non-whitespace":                     userBlock(`{"type":"text","text":" \n"}`),
		"system: text content":                            claude(hello, `"system":[{"type":"text","text":""}]`),
		"each stop sequence":                              claude(hello, `"stop_sequences":["\n"]`),
		"cannot both be specified":                        claude(hello, `"temperature":1,"top_p":1`),
		"range: 0..1":                                     claude(hello, `"temperature":1.5`),
		"does not support assistant":                      claude(hello + `,{"role":"assistant","content":"a"}`),
		"trailing whitespace":                             claude(hello + `,{"role":"assistant","content":"a "}`),
		"Found 5":                                         claude(strings.Repeat(marked+",", 4)+marked, `"system":"s"`),
		"blocks with cache_control":                       claude(strings.Repeat(marked+",", 3)+marked, `"cache_control":{"type":"ephemeral"}`),
		"without `tool_result` blocks":                    claude(hello + "," + called + "," + hello),
		"unexpected `tool_use_id` found in `tool_result`": claude(hello + "," + results),
		"Found multiple `tool_result`": claude(hello + "," + called +
			`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1"},{"type":"tool_result","tool_use_id":"toolu_1"}]}`),
		"immediately after": claude(hello + "," + called +
			`,{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","tool_use_id":"toolu_1"}]}`),
		"ids must be unique":                              claude(hello + "," + called + "," + results + "," + called + "," + results),
		"all content must be type":                        result(`"is_error":true,"content":[` + image("image/png", pngData) + `]`),
		"does not match any of the expected tags: 'text'": result(`"content":[{"type":"thinking","thinking":""}]`),
		"tool_use.id: String should": claude(hello +
			`,{"role":"assistant","content":[{"type":"tool_use","id":"a.b","name":"f","input":{}}]}`),
		"tool_use.name: String should": claude(hello +
			`,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f g","input":{}}]}`),
		"valid dictionary": claude(hello + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":"{}"}]}`),
		"without a corresponding `web_search_tool_result`": claudeSays(search + `,{"type":"text","text":"a"}`),
		"have a corresponding `server_tool_use` block":     claudeSays(found + "," + search + `,{"type":"text","text":"a"}`),
		"The final block in an assistant":                  claudeSays(`{"type":"redacted_thinking","data":"x"}`),
		"thinking.signature: Field required":               claudeSays(`{"type":"thinking","thinking":"a","signature":""},{"type":"text","text":"a"}`),
		"Invalid `signature`":                              claudeSays(`{"type":"thinking","thinking":"a","signature":"x"},{"type":"text","text":"a"}`),
		"Expected `thinking` or":                           claude(hello+","+called+","+results, think),
		"but found `tool_use`":                             claude(hello+","+called+","+results+","+hello, think),
		"greater than or equal to 1024":                    claude(hello, `"thinking":{"type":"enabled","budget_tokens":1000}`),
		"must be greater than `thinking":                   claude(hello, `"thinking":{"type":"enabled","budget_tokens":4096}`),
		"only be set to 1":                                 claude(hello, think, `"temperature":0`),
		"`top_k` must be unset":                            claude(hello, think, `"top_k":4`),
		"`top_p` must be":                                  claude(hello, think, `"top_p":0.5`),
		"forces tool use": claude(hello, think,
			`"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"any"}`),
		"media type, but the image appears":        userBlock(image("image/jpeg", pngData)),
		"Could not process image":                  userBlock(image("image/png", "nothing")),
		"media_type: Input should be 'image/jpeg'": userBlock(image("image/svg+xml", "<svg/>")),
		"PDF specified was not valid":              userBlock(strings.Replace(image("application/pdf", "PDF"), `"image"`, `"document"`, 1)),
		"Property keys should match":               claudeTool(`,"input_schema":{"type":"object","properties":{"$top":{}}}`),
		"Tool names must be unique": claude(hello,
			`"tools":[{"name":"f","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"f"}]`),
		"custom.name: String should":        claudeTool(`,"name":"f g"`),
		"oneOf, allOf, or anyOf at the top": claudeTool(`,"input_schema":{"type":"object","anyOf":[{}]}`),
		"may only be specified while":       claude(hello, `"tool_choice":{"type":"auto"}`),
		"not found in provided tools":       claude(hello, `"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"g"}`),
		"service_tier: Input":               claude(hello, `"service_tier":"flex"`),
		"not referenced by any mcp_toolset": claude(hello, `"mcp_servers":[{"type":"url","url":"https://x/mcp","name":"x"}]`),
	} {
		checkRefusal(t, "/v1/messages", body, says)
	}
}

// TestMessagesTaken: what Anthropic takes is taken.
func TestMessagesTaken(t *testing.T) {
	for name, body := range map[string]string{
		"nested property": claudeTool(`,"input_schema":{"type":"object","properties":{"a":{"type":"object","properties":{"$top":{}}}}}`),
		"hosted tools": claude(hello,
			`"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":5}],"tool_choice":{"type":"tool","name":"web_search"}`),
		"a pause": claude(hello + `,{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}]}`),
		"images": userBlock(image("image/png", pngData) + "," + image("image/gif",
			"GIF89a") + "," + image("image/jpeg", "\xff\xd8\xff\xe0") + "," + image("image/webp", "RIFF\x00\x00\x00\x00WEBPVP8 ")),
		"adaptive": claude(hello+","+called+","+results, `"thinking":{"type":"adaptive"}`),
		"a finished turn": claude(hello+","+called+","+results+`,{"role":"assistant","content":"Done."},`+hello,
			`"thinking":{"type":"enabled","budget_tokens":1024}`),
		"MCP servers": claude(hello, `"mcp_servers":[{"type":"url","url":"https://x/mcp","name":"x"},{"type":"url","url":"https://y/mcp","name":"y"}]`,
			`"tools":[{"type":"mcp_toolset","mcp_server_name":"x"},{"type":"mcp_toolset","mcp_server_name":"y"}]`),
		"cache marks": claude(hello, `"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"cache_control":{"type":"ephemeral"}`),
	} {
		if status, text := answered("/v1/messages", body); status != http.StatusOK {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
}

// responses is a request to Responses.
func responses(items string, members ...string) string {
	return `{"model":"m","store":false,"input":[` + items + `]` + strings.Join(append([]string{""}, members...), ",") + `}`
}

// strictTool is a request to Responses with a tool whose one argument has this schema.
func strictTool(schema string) string {
	return responses(hello, `"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{"a":`+schema+
		`},"required":["a"],"additionalProperties":false}}]`)
}

// TestResponsesRefusals: what OpenAI refuses is refused in its words.
func TestResponsesRefusals(t *testing.T) {
	call := `{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`
	output := `{"type":"function_call_output","call_id":"c","output":"x"}`
	long := strings.Repeat("c", 65)
	part := func(part string) string { return responses(`{"role":"user","content":[` + part + `]}`) }
	deep := `{"type":"string"}`
	for range 11 {
		deep = `{"type":"object","properties":{"a":` + deep + `},"required":["a"],"additionalProperties":false}`
	}
	for says, body := range map[string]string{
		"parameter: 'model'":                 `{"input":"Hi"}`,
		"parameter: 'input'":                 `{"model":"m"}`,
		"Unknown parameter: 'seed'":          responses(hello, `"seed":1`),
		"Unknown parameter: 'input[0].name'": responses(`{"role":"user","name":"ann","content":"Hi"}`),
		"Unknown parameter: 'tools[0].foo'": responses(hello,
			`"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}},"strict":false,"foo":1}]`),
		"Unknown parameter: 'input[1].status'": responses(hello + `,{"type":"reasoning","id":"rs_1","status":null,"summary":[]}`),
		"'input[0].call_id': string too long": responses(strings.ReplaceAll(call, `"c"`,
			`"`+long+`"`) + "," + strings.ReplaceAll(output, `"c"`, `"`+long+`"`)),
		"'input[0].id': string too long":      responses(`{"type":"message","id":"msg_` + long + `","role":"assistant","content":"a"},` + hello),
		"ID that begins with 'msg'":           responses(`{"type":"message","id":"rs_1","role":"assistant","content":"a"},` + hello),
		"Duplicate item found with id msg_1":  responses(strings.Repeat(`{"type":"message","id":"msg_1","role":"assistant","content":"a"},`, 2) + hello),
		"No tool call found":                  responses(hello + "," + output),
		"No tool output found":                responses(hello + "," + call),
		"Duplicate function call with":        responses(hello + "," + call + "," + call + "," + output),
		"Duplicate function call output":      responses(hello + "," + call + "," + output + "," + output),
		"without its required following item": responses(hello + `,{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"c2VhbGVkOg=="}`),
		"could not be verified": responses(hello +
			`,{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},` + call + "," + output),
		"not found. Items are not persisted": responses(hello + `,{"type":"reasoning","id":"rs_1","summary":[]},` + call + "," + output),
		"with maximum length 0": responses(hello +
			`,{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"a"}],"encrypted_content":"x"},` + call + "," + output),
		"does not represent a valid image":   part(`{"type":"input_image","image_url":"data:image/png;base64,AAAA"}`),
		"Expected a valid URL":               part(`{"type":"input_image","image_url":"file:///a.png"}`),
		"Expected a base64-encoded data URL": part(`{"type":"input_file","filename":"a.pdf","file_data":"JVBERg=="}`),
		"Supported values are: 'input_text'": part(`{"type":"text","text":"a"}`),
		"'temperature' is not supported":     strings.Replace(responses(hello, `"temperature":1`), `"m"`, `"gpt-5.6"`, 1),
		"'oneOf' is not permitted":           strictTool(`{"oneOf":[{"type":"string"}]}`),
		"'default' is not permitted":         strictTool(`{"type":"string","default":"a"}`),
		"'uri' is not a valid format":        strictTool(`{"type":"string","format":"uri"}`),
		"must have a 'type' key":             strictTool(`{"description":"a"}`),
		"levels of nesting exceeds":          strictTool(deep),
		"Found at $.properties.a.pattern":    strings.Replace(strictTool(`{"type":"string","pattern":"^(?!x)"}`), `"name"`, `"strict":false,"name"`, 1),
	} {
		checkRefusal(t, "/v1/responses", body, says)
	}
}

// TestResponsesTaken: what OpenAI takes is taken.
func TestResponsesTaken(t *testing.T) {
	for name, body := range map[string]string{
		"hosted tools": responses(hello, `"tools":[{"type":"mcp","server_label":"a","server_url":"https://x/mcp","require_approval":"never"}]`),
		"with IDs": responses(`{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text",` +
			`"text":"a","annotations":[]}]},` + hello),
		"an image":   responses(`{"role":"user","content":[{"type":"input_image","detail":"low","image_url":"data:image/png;base64,iVBORw0KGgo="}]}`),
		"not strict": strings.Replace(strictTool(`{"oneOf":[{"type":"string"}],"format":"uri"}`), `"name"`, `"strict":false,"name"`, 1),
		"gpt-5":      strings.Replace(responses(hello, `"temperature":1,"reasoning":{"effort":"none"}`), `"m"`, `"gpt-5.6"`, 1),
	} {
		if status, text := answered("/v1/responses", body); status != http.StatusOK {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
}

func checkRefusal(t *testing.T, path, body, says string) {
	t.Helper()
	status, text := answered(path, body)
	if status != http.StatusBadRequest || !strings.Contains(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(text), says) {
		t.Errorf("%s\nis answered with %d %swant %q", body, status, text, says)
	}
}

// answered sends a request to a server that answers anything, and returns the answer.
func answered(path, body string) (int, string) {
	return exchange(openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{say("Fine.")}}, path, body)
}

// exchange sends a request to a server with a script, and returns its answer.
func exchange(script openaiserver.Script, path, body string) (int, string) {
	server := openaiserver.New(script, nil)
	defer server.Close()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Anthropic-Version", "2023-06-01")
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}
