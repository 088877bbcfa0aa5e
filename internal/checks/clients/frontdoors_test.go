// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/internal/testing/realservers"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

// scripted is the model behind the conversations.
func scripted(r *openaiserver.Request) openaiserver.Reply {
	last := r.Messages[len(r.Messages)-1]
	text := last.Text
	switch words, isEcho := strings.CutPrefix(text, "echo: "); {
	case last.Role == "tool":
		return openaiserver.Message{Text: "The tool says: " + text}
	case isEcho:
		form, _ := json.Marshal(map[string]string{"message": words}) // strings have a JSON form
		return openaiserver.Message{Text: "I ask.", Calls: []openaiserver.Call{{Name: "everything__echo", Arguments: string(form)}}}
	case text == "sum":
		return openaiserver.Message{Calls: []openaiserver.Call{{Name: "everything__get-sum", Arguments: `{"a":1,"b":2}`}}}
	case text == "paint":
		return openaiserver.Message{Calls: []openaiserver.Call{{Name: "paint", Arguments: `{"colour":"green"}`}}}
	case text == "slow":
		return openaiserver.Message{Text: strings.Repeat("slowly ", 1000), Pace: 20 * time.Millisecond}
	case text == "fail":
		return openaiserver.Unauthorized()
	}
	return openaiserver.Message{Text: "You said: " + text}
}

const (
	annToken = "ann-0123456789abcdef"
	benToken = "ben-0123456789abcdef"
)

// frontDoors launches consort serve with conversations, and returns the URL without a path.
func frontDoors(t *testing.T, servers *realservers.Servers) string {
	t.Helper()
	steps := []openaiserver.Step{{Reply: openaiserver.Respond(scripted)}}
	model, err := openaiserver.Start(openaiserver.Script{Steps: steps, Repeat: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	return strings.TrimSuffix(launchGateway(t, fmt.Sprintf(`
[model]
name = "scripted"
base_url = %q
max_retries = 0

[mcp.everything]
command = %s

[history]
path = %q

[approval]
default = "allow"
rules = [{action = "defer", tools = ["get-sum"]}]

[serve]
http = "127.0.0.1:0"
converse = true
clients = [{name = "ann", token = %q, trusted = {user = "ann"}}, {name = "ben", token = %q, trusted = {user = "ben"}}]
`, model.URL(), list(servers.Everything()), t.TempDir()+"/history.db", annToken, benToken)), "/mcp")
}

type refusedRequest struct {
	Status               int
	Code, Param, Message string
}

type items struct {
	Text  string
	Kinds []string
}

// The openai client for JavaScript talks to the conversations of the command.
func TestOpenAIForJavaScript(t *testing.T) {
	servers := realservers.Need(t)
	url := frontDoors(t, servers)
	var saw struct {
		Models                                                   []string
		Model, Whole, Streamed, Finish, Helper, Asked, Allowed   string
		Usage                                                    bool
		ChunkUsage                                               int
		First, Third, Answered                                   items
		Again, Second, Delta, Final, Background, Cancelled, Left string
		Calling, Painted, Ran, Colours, Called, Listed           string
		Events                                                   []string
		Request                                                  struct{ Label, Name, Arguments string }
		Unsupported, NoModel, NoToken, Foreign, Failed           refusedRequest
	}
	task := map[string]any{"modules": servers.Modules(), "url": url, "token": annToken, "other": benToken}
	decode(t, runScript(t, servers, "openai.mjs", task), &saw)
	equal(t, "models", strings.Join(saw.Models, " ")+" "+saw.Model, "scripted consort scripted")
	equal(t, "whole", saw.Whole, "You said: hello")
	equal(t, "streamed", saw.Streamed, "I ask.\n\nThe tool says: Echo: over the wire")
	equal(t, "finish", saw.Finish, "stop")
	equal(t, "helper", saw.Helper, "You said: with the helper")
	if !saw.Usage || saw.ChunkUsage == 0 {
		t.Error("the usage is missing")
	}
	if !strings.Contains(saw.Asked, "everything__get-sum") || !strings.HasPrefix(saw.Allowed, "The tool says: ") {
		t.Errorf("asked %q, allowed %q", saw.Asked, saw.Allowed)
	}
	equal(t, "first", saw.First.Text, "I ask.The tool says: Echo: first")
	equal(t, "items", strings.Join(saw.First.Kinds, ", "), "message, mcp_call everything.echo completed Echo: first, message")
	equal(t, "again", saw.Again, saw.First.Text)
	equal(t, "second", saw.Second, "You said: second")
	equal(t, "delta", saw.Delta, "I ask.The tool says: Echo: third")
	equal(t, "streamed items", strings.Join(saw.Third.Kinds, ", "), "message, mcp_call everything.echo completed Echo: third, message")
	equal(t, "final", saw.Final, "You said: the helper")
	for _, event := range []string{"response.created", "response.mcp_call.completed", "response.output_text.done", "response.completed"} {
		if !slices.Contains(saw.Events, event) {
			t.Errorf("no %s in %q", event, saw.Events)
		}
	}
	equal(t, "approval", saw.Request.Label+" "+saw.Request.Name+" "+saw.Request.Arguments, `everything get-sum {"a":1,"b":2}`)
	if len(saw.Answered.Kinds) != 2 || !strings.HasPrefix(saw.Answered.Kinds[0], "mcp_call everything.get-sum completed") {
		t.Errorf("answered: %+v", saw.Answered)
	}
	equal(t, "calls of a chat", saw.Calling, `tool_calls paint{"colour":"green"}`)
	equal(t, "result in a chat", saw.Painted, "The tool says: dry")
	equal(t, "helper that runs tools", saw.Ran+", "+saw.Colours, "The tool says: green paint, green")
	equal(t, "output of a response, and in a list", saw.Called+", "+saw.Listed, "The tool says: paint done, The tool says: paint done")
	equal(t, "background", saw.Background+" "+saw.Cancelled+" "+saw.Left, "in_progress cancelled cancelled")
	for name, c := range map[string]struct {
		got    refusedRequest
		status int
		part   string
	}{
		"choice": {saw.Unsupported, http.StatusBadRequest, "tool_choice"},
		"model":  {saw.NoModel, http.StatusNotFound, "gpt-9"},
		"token":  {saw.NoToken, http.StatusUnauthorized, "token"},
		"other":  {saw.Foreign, http.StatusNotFound, "no such response"},
		"failed": {saw.Failed, http.StatusBadRequest, "failed"}, // the message is in the log
	} {
		if c.got.Status != c.status || !strings.Contains(c.got.Message, c.part) || c.got.Code == "" {
			t.Errorf("%s: %+v", name, c.got)
		}
	}
}

// The openai client for Go talks to the conversations of the command.
func TestOpenAIForGo(t *testing.T) {
	url := frontDoors(t, realservers.Need(t))
	client := openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey(annToken))
	messages := []openai.ChatCompletionMessageParamUnion{openai.UserMessage("echo: to Go")}
	chat := openai.ChatCompletionNewParams{Model: "scripted", Messages: messages}
	whole, err := client.Chat.Completions.New(t.Context(), chat)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "whole", whole.Choices[0].Message.Content, "I ask.\n\nThe tool says: Echo: to Go")
	chat.Messages = append(chat.Messages, whole.Choices[0].Message.ToParam(), openai.UserMessage("more"))
	stream, all := client.Chat.Completions.NewStreaming(t.Context(), chat), openai.ChatCompletionAccumulator{}
	for stream.Next() {
		all.AddChunk(stream.Current())
	}
	if stream.Err() != nil {
		t.Fatal(stream.Err())
	}
	equal(t, "streamed", all.Choices[0].Message.Content, "You said: more")

	ask := responses.ResponseNewParams{Model: "scripted", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("sum")}}
	waiting, err := client.Responses.New(t.Context(), ask)
	if err != nil || len(waiting.Output) != 1 || waiting.Output[0].Type != "mcp_approval_request" {
		t.Fatalf("waiting: %v, %v", waiting, err)
	}
	given := responses.ResponseInputItemParamOfMcpApprovalResponse(waiting.Output[0].ID, false)
	answered, err := client.Responses.New(t.Context(), responses.ResponseNewParams{
		Model: "scripted", PreviousResponseID: openai.String(waiting.ID),
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{given}},
	})
	if err != nil || len(answered.Output) != 2 || answered.Output[0].Status != "failed" {
		t.Fatalf("denied: %v, %v", answered, err)
	}
	goTools(t, client)
	events := client.Responses.NewStreaming(t.Context(), responses.ResponseNewParams{
		Model: "scripted", PreviousResponseID: openai.String(answered.ID),
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("streamed")},
	})
	text, last := "", responses.ResponseStreamEventUnion{}
	for events.Next() {
		last = events.Current()
		text += last.Delta
	}
	if events.Err() != nil || last.Type != "response.completed" {
		t.Errorf("it ended with %s, %v", last.Type, events.Err())
	}
	equal(t, "deltas", text, "You said: streamed")
	equal(t, "response", last.Response.OutputText(), text)
	_, err = client.Responses.New(t.Context(), responses.ResponseNewParams{Model: "gpt-9", Input: ask.Input})
	refused := new(openai.Error)
	if !errors.As(err, &refused) || refused.StatusCode != http.StatusNotFound || refused.Code != "model_not_found" {
		t.Errorf("another model: %v", err)
	}
}

// goTools lets an approval be given, and calls a tool of the program in a streamed response and in a
// chat.
func goTools(t *testing.T, client openai.Client) {
	t.Helper()
	ask := func(text, previous string, items ...responses.ResponseInputItemUnionParam) responses.ResponseNewParams {
		paint := responses.ToolParamOfFunction("paint", map[string]any{"type": "object"}, false)
		p := responses.ResponseNewParams{Model: "scripted", Tools: []responses.ToolUnionParam{paint}}
		if p.Input.OfInputItemList = items; text != "" {
			p.Input.OfString = openai.String(text)
		}
		if previous != "" {
			p.PreviousResponseID = openai.String(previous)
		}
		return p
	}
	waiting, err := client.Responses.New(t.Context(), ask("sum", ""))
	if err != nil {
		t.Fatal(err)
	}
	given := responses.ResponseInputItemParamOfMcpApprovalResponse(waiting.Output[0].ID, true)
	allowed, err := client.Responses.New(t.Context(), ask("", waiting.ID, given))
	if err != nil || allowed.OutputText() != "The tool says: The sum of 1 and 2 is 3." {
		t.Errorf("allowed: %v, %v", allowed, err)
	}
	var last responses.ResponseStreamEventUnion
	arguments := ""
	for events := client.Responses.NewStreaming(t.Context(), ask("paint", allowed.ID)); events.Next(); {
		if last = events.Current(); last.Type == "response.function_call_arguments.done" {
			arguments = last.Arguments
		}
	}
	if len(last.Response.Output) != 1 || last.Response.Output[0].Name != "paint" || arguments != `{"colour":"green"}` {
		t.Fatalf("the stream ended with %s", last.RawJSON())
	}
	output := responses.ResponseInputItemParamOfFunctionCallOutput("dry")
	output.OfFunctionCallOutput.CallID = openai.String(last.Response.Output[0].CallID)
	painted, err := client.Responses.New(t.Context(), ask("", last.Response.ID, output))
	if err != nil || painted.OutputText() != "The tool says: dry" {
		t.Errorf("painted: %v, %v", painted, err)
	}
	var hosted responses.ResponseStreamEventUnion
	for events := client.Responses.NewStreaming(t.Context(), ask("echo: streamed", "")); events.Next(); {
		hosted = events.Current()
	}
	if out := hosted.Response.Output; len(out) != 3 || out[1].Type != "mcp_call" || out[1].Output.OfString != "Echo: streamed" {
		t.Errorf("the stream with a tool ended with %s", hosted.RawJSON())
	}
	tool := openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "paint"})
	chat := openai.ChatCompletionNewParams{Model: "scripted", Tools: []openai.ChatCompletionToolUnionParam{tool}}
	chat.Messages = []openai.ChatCompletionMessageParamUnion{openai.UserMessage("paint")}
	asked, err := client.Chat.Completions.New(t.Context(), chat)
	if err != nil || len(asked.Choices[0].Message.ToolCalls) != 1 {
		t.Fatalf("asked: %v, %v", asked, err)
	}
	result := openai.ToolMessage("dry", asked.Choices[0].Message.ToolCalls[0].ID)
	chat.Messages = append(chat.Messages, asked.Choices[0].Message.ToParam(), result)
	said, err := client.Chat.Completions.New(t.Context(), chat)
	if err != nil || said.Choices[0].Message.Content != "The tool says: dry" {
		t.Errorf("said: %v, %v", said, err)
	}
}

// The client of AG-UI runs a thread of the command, with an interrupt.
func TestAGUI(t *testing.T) {
	servers := realservers.Need(t)
	url := frontDoors(t, servers)
	type outcome struct{ Type string }
	var saw struct {
		Events []string
		Runs   []struct {
			Text           string
			Tools, Results []string
			Outcome        outcome
			Error          string
			State          struct {
				Mine    bool
				Consort struct{ Status string }
			}
			Messages []string
		}
		Interrupt struct{ Reason, Message, ToolCallID string }
		Refused   string
	}
	decode(t, runScript(t, servers, "agui.mjs", map[string]any{"modules": servers.Modules(), "url": url, "token": annToken}), &saw)
	if len(saw.Runs) != 8 {
		t.Fatalf("%+v", saw)
	}
	for i, want := range []string{
		"I ask.The tool says: Echo: to AG-UI success done", "You said: hello again success done", " interrupt waiting",
		"The tool says: The sum of 1 and 2 is 3. success done", " interrupt waiting",
		"The tool says: The call was denied by ann and not started: too dear success done", " success waiting", "The tool says: dry success done",
	} {
		run := saw.Runs[i]
		equal(t, fmt.Sprint("run ", i), run.Text+" "+run.Outcome.Type+" "+run.State.Consort.Status, want)
		if run.Error != "" || !run.State.Mine {
			t.Errorf("run %d: %+v", i, run)
		}
	}
	equal(t, "tools", fmt.Sprint(saw.Runs[0].Tools, saw.Runs[0].Results), "[everything__echo] [Echo: to AG-UI]")
	calling, called := saw.Runs[6], saw.Runs[7]
	equal(t, "tools of the page", fmt.Sprint(calling.Tools, calling.Results, called.Tools, called.Results), "[paint] [] [] []")
	equal(t, "messages of the page", strings.Join(saw.Runs[7].Messages[len(saw.Runs[7].Messages)-4:], " "), "user assistant tool assistant")
	equal(t, "messages", strings.Join(saw.Runs[0].Messages, " "), "user assistant assistant tool assistant")
	equal(t, "interrupt", saw.Interrupt.Reason, "tool_call")
	isNamed := strings.Contains(saw.Interrupt.Message, "everything__get-sum") && saw.Interrupt.ToolCallID != ""
	if !isNamed || !strings.Contains(saw.Refused, "401") {
		t.Errorf("%+v, refused %q", saw.Interrupt, saw.Refused)
	}
}
