// SPDX-License-Identifier: Apache-2.0

package openaiserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// assemble is a plain reading of an answer by one set of rules, which shows
// that the expectations of the oddities do not contradict each other. It is no
// client: it takes the whole body at once.
func assemble(body []byte) openaiserver.Want {
	a := &assembly{}
	trimmed := bytes.TrimPrefix(body, []byte("\ufeff"))
	if !bytes.Contains(trimmed, []byte("data:")) && len(bytes.TrimSpace(trimmed)) > 0 && trimmed[0] != ':' {
		a.whole(trimmed)
		return a.close()
	}
	text := strings.ReplaceAll(string(trimmed), "\r\n", "\n")
	for event := range strings.SplitSeq(text, "\n\n") {
		var data []string
		for line := range strings.SplitSeq(event, "\n") {
			if value, ok := strings.CutPrefix(line, "data:"); ok {
				data = append(data, strings.TrimPrefix(value, " "))
			}
		}
		if data == nil {
			continue
		}
		if data[0] == "[DONE]" {
			a.done = true
			break
		}
		if a.chunk([]byte(strings.Join(data, "\n"))); a.want.Problem != "" {
			break
		}
	}
	return a.close()
}

type assembly struct {
	want  openaiserver.Want
	slots []*slot
	done  bool
}

type slot struct {
	index          *int
	id, name, args string
	extra          json.RawMessage
}

type fragment struct {
	Index        *int
	ID           string
	ExtraContent json.RawMessage `json:"extra_content"`
	Function     struct {
		Name      string
		Arguments json.RawMessage
	}
}

type part struct {
	Content, Refusal, Reasoning *string
	ReasoningContent            *string    `json:"reasoning_content"`
	ToolCalls                   []fragment `json:"tool_calls"`
}

type body struct {
	Choices []struct {
		Delta, Message part
		FinishReason   string `json:"finish_reason"`
	}
	Usage *openaiserver.Usage
	Error *struct{ Message string }
}

func (a *assembly) whole(data []byte) {
	var b body
	if json.Unmarshal(data, &b) != nil {
		a.want.Problem = openaiserver.NotAStream
		return
	}
	a.done = true
	a.add(b)
}

func (a *assembly) chunk(data []byte) {
	var b body
	if json.Unmarshal(data, &b) != nil {
		a.want.Problem = openaiserver.Interrupted
		return
	}
	a.add(b)
}

func (a *assembly) add(b body) {
	for _, c := range b.Choices {
		for _, p := range []part{c.Delta, c.Message} {
			a.want.Text += text(p.Content)
			a.want.Refusal += text(p.Refusal)
			a.want.Reasoning += text(p.Reasoning) + text(p.ReasoningContent)
			for i, f := range p.ToolCalls {
				if len(b.Choices[0].Message.ToolCalls) > 0 {
					f.Index = &i
				}
				a.fragment(f)
			}
		}
		if c.FinishReason != "" {
			a.want.Finish = c.FinishReason
		}
	}
	if b.Usage != nil && b.Usage.TotalTokens > 0 {
		a.want.Usage = b.Usage
	}
	if b.Error != nil {
		a.want.Problem, a.want.Message = openaiserver.ServerSaid, b.Error.Message
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (a *assembly) fragment(f fragment) {
	at := a.slot(f)
	if at == nil {
		at = &slot{index: f.Index}
		a.slots = append(a.slots, at)
	}
	if f.ID != "" {
		at.id = f.ID
	}
	if f.Function.Name != at.name {
		at.name += f.Function.Name
	}
	if f.ExtraContent != nil {
		at.extra = f.ExtraContent
	}
	var piece string
	if json.Unmarshal(f.Function.Arguments, &piece) != nil {
		piece = string(f.Function.Arguments)
	}
	if at.args == "{}" && piece != "" { // a placeholder
		at.args = ""
	}
	at.args += piece
}

// slot finds the call that a fragment belongs to, nil for a new one.
func (a *assembly) slot(f fragment) *slot {
	for _, s := range slices.Backward(a.slots) {
		if f.Index != nil && s.index != nil && *f.Index != *s.index {
			continue
		}
		fresh := f.ID != "" && s.id != "" && f.ID != s.id ||
			f.Function.Name != "" && s.args != "" && json.Valid([]byte(s.args))
		if fresh {
			return nil
		}
		return s
	}
	return nil
}

func (a *assembly) close() openaiserver.Want {
	if a.want.Problem == "" && !a.done && a.want.Finish == "" {
		a.want.Problem = openaiserver.Interrupted
	}
	if a.want.Problem != "" {
		return a.want
	}
	seen := map[string]bool{}
	for _, s := range a.slots {
		if seen[s.id] {
			s.id = ""
		}
		seen[s.id] = true
		if s.args == "" {
			s.args = "{}"
		}
		a.want.Calls = append(a.want.Calls, openaiserver.WantCall{
			ID: s.id, Name: s.name, Arguments: s.args, Broken: !json.Valid([]byte(s.args)), Extra: s.extra,
		})
	}
	return a.want
}

// differ says how two readings differ, apart from the exact words of errors.
func differ(want, got openaiserver.Want, exact bool) string {
	if exact && want.Message == got.Message || strings.Contains(got.Message, want.Message) {
		want.Message, got.Message = "", ""
	}
	w, _ := json.MarshalIndent(want, "", " ")
	g, _ := json.MarshalIndent(got, "", " ")
	if bytes.Equal(w, g) {
		return ""
	}
	return fmt.Sprintf("want %.2000s\ngot %.2000s", w, g)
}

func TestOdditiesOverTheWire(t *testing.T) {
	server := start(t, nil)
	for _, o := range openaiserver.Oddities() {
		t.Run(o.Name, func(t *testing.T) {
			status, header, body, err := post(t, openaiserver.OddityURL(server.URL(), o.Name), request(userMessage, `"stream":true`))
			if status != 200 || header.Get("Content-Type") != o.Replay.Header.Get("Content-Type") && o.Replay.Header != nil {
				t.Errorf("status %d, header %v", status, header)
			}
			if broken := err != nil; broken != (o.Replay.End != openaiserver.EndClean) {
				t.Errorf("the body ended with %v", err)
			}
			if o.Replay.End != openaiserver.EndReset && body != string(o.Replay.Body()) { // a reset may overtake what was sent
				t.Errorf("the body is not what was recorded: %.500s", body)
			}
			if diff := differ(o.Want, assemble(o.Replay.Body()), false); diff != "" {
				t.Errorf("%s: %s", o.About, diff)
			}
			if o.Want.Problem != "" && o.Want.Calls != nil {
				t.Error("calls of a failed exchange must not be wanted")
			}
		})
	}
	if faults := server.Faults(); faults != nil {
		t.Errorf("faults: %q", faults)
	}
}

// TestOddityFiles checks that table and files name the same oddities, once.
func TestOddityFiles(t *testing.T) {
	files := map[string]bool{"huge-delta": true}
	entries, err := os.ReadDir("oddities")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		files[strings.TrimSuffix(e.Name(), filepath.Ext(e.Name()))] = true
	}
	for _, o := range openaiserver.Oddities() {
		if !files[o.Name] {
			t.Errorf("%s has no file, or occurs twice in the table", o.Name)
		}
		delete(files, o.Name)
		if o.About == "" {
			t.Errorf("%s says nothing about itself", o.Name)
		}
	}
	for name := range files {
		t.Errorf("%s is not in the table", name)
	}
}

// TestOdditiesAreOdd guards the bytes that an editor or git might put right.
func TestOdditiesAreOdd(t *testing.T) {
	marks := map[string]string{"crlf": "\r\n\r\n", "bom": "\ufeffdata", "comments": "\n: OPENROUTER", "event-lines": "event: message\n"}
	for _, o := range openaiserver.Oddities() {
		body := string(o.Replay.Body())
		if mark := marks[o.Name]; !strings.Contains(body, mark) {
			t.Errorf("%s lacks %q", o.Name, mark)
		}
		if o.Name == "last-event-unended" && strings.HasSuffix(body, "\n") {
			t.Error("the last event has an end")
		}
		if o.Name == "utf8-split" && len(o.Replay.Parts) != len(body) {
			t.Error("characters are not split")
		}
	}
}

func TestReplay(t *testing.T) {
	replay := openaiserver.Replay{
		Status: 203, Header: http.Header{"content-type": {"text/odd"}, "X-Seen": {"a", "b"}},
		Parts: openaiserver.Split([]byte("data: é\n\n"), 3),
	}
	server := start(t, nil, openaiserver.Step{Reply: replay})
	response, err := client(t).Post(server.URL()+"/chat/completions", "application/json", strings.NewReader(request(userMessage, "")))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != 203 || response.Header.Get("Content-Type") != "text/odd" || len(response.Header.Values("X-Seen")) != 2 {
		t.Errorf("status %d, header %v", response.StatusCode, response.Header)
	}
	if got, err := io.ReadAll(response.Body); string(got) != "data: é\n\n" || err != nil {
		t.Errorf("body %q, error %v", got, err)
	}
}

// TestOdditiesOfAllAPIs: the tables name each oddity once, and say what it is.
func TestOdditiesOfAllAPIs(t *testing.T) {
	for api, table := range map[string][]openaiserver.Oddity{
		"chat": openaiserver.Oddities(), "responses": openaiserver.ResponsesOddities(), "messages": openaiserver.MessagesOddities(),
	} {
		seen := map[string]bool{}
		for _, o := range table {
			if seen[o.Name] || o.About == "" || len(table) < 40 {
				t.Errorf("%s: %q, %q, of %d", api, o.Name, o.About, len(table))
			}
			seen[o.Name] = true
		}
	}
}

// TestOddityOfAScript: a step of a script can be an oddity, of the API that is asked.
func TestOddityOfAScript(t *testing.T) {
	script, err := openaiserver.ParseScript([]byte(`{"steps":[{"oddity":"pings"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/v1/messages": `{"type":"ping"}`, "/v1/responses": `there is no oddity \"pings\"`} {
		body := claude(hello)
		if path == "/v1/responses" {
			body = responses(hello)
		}
		if _, text := exchange(script, path, body); !strings.Contains(text, want) {
			t.Errorf("%s: %s", path, text)
		}
	}
}
