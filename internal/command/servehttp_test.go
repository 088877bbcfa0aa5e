// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/exit"
)

// frontDoors is the configuration of clients that talk with the model over HTTP: ann may, cid may
// not, and dan may send two messages a month.
const frontDoors = `
[serve]
http = "127.0.0.1:0"
converse = true
clients = [
  {name = "ann", token = "ann-0123456789abcdef", trusted = {user = "ann"}},
  {name = "ben", token = "ben-0123456789abcdef", trusted = {user = "ben"}},
  {name = "cid", token = "cid-0123456789abcdef", trusted = {user = "cid"}, allow = ["library__*"]},
  {name = "dan", token = "dan-0123456789abcdef", trusted = {user = "dan"}},
]
budgets = [{clients = ["dan"], window = "month", calls = 2}]
[audit]
file = "audit.jsonl"
`

// asks sends a request to the HTTP API as a client, and returns the status and the body.
func (s *service) asks(client, method, path, body string, headers ...string) (int, string) {
	s.t.Helper()
	response := s.opens(client, method, path, body, headers...)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func (s *service) opens(client, method, path, body string, headers ...string) *http.Response {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, strings.TrimSuffix(s.url, "/mcp")+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+client+"-0123456789abcdef")
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	return response
}

// reads returns the ids and the names of the events of a conversation until one is an end.
func (s *service) reads(client, id, after string) (ids, names []string) {
	s.t.Helper()
	response := s.opens(client, "GET", "/api/conversations/"+id+"/events", "", "Last-Event-ID", after, "Accept", "text/event-stream")
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if id, is := strings.CutPrefix(lines.Text(), "id: "); is {
			ids = append(ids, id)
		}
		if name, is := strings.CutPrefix(lines.Text(), "event: "); is {
			if names = append(names, name); name == "ended" {
				return ids, names
			}
		}
	}
	s.t.Fatalf("the stream ended after %q", names)
	return nil, nil
}

// TestConversationsOverHTTP: they belong to clients, count as calls of the tool converse, and
// are continued by the next process, at the same place of their events.
func TestConversationsOverHTTP(t *testing.T) {
	t.Parallel()
	table, _ := library(t, "")
	path := file(t, table, model(t, says("Good morning."), says("Good night.")), historyTable, frontDoors)
	s := serve(t, true, "--config", path)
	status, text := s.asks("ann", "POST", "/api/conversations", `{"message":"Hello?"}`)
	var created struct{ ID string }
	if err := json.Unmarshal([]byte(text), &created); status != http.StatusCreated || err != nil {
		t.Fatalf("%d %s", status, text)
	}
	ids, _ := s.reads("ann", created.ID, "")
	last := ids[len(ids)-1]
	for _, c := range []struct {
		client, method, path, body string
		headers                    []string
		status                     int
		part                       string
	}{
		{"ben", "GET", "/api/conversations/" + created.ID, "", nil, http.StatusNotFound, "conversation_not_found"},
		{"ben", "GET", "/api/conversations/nothing-like-it", "", nil, http.StatusNotFound, "conversation_not_found"},
		{"ben", "GET", "/api/conversations", "", nil, http.StatusOK, `"conversations":[]`},
		{"cid", "GET", "/api/conversations", "", nil, http.StatusForbidden, "may not use converse"},
		{"eve", "GET", "/api/conversations", "", nil, http.StatusUnauthorized, `"code":"unauthorized"`},
		{"ann", "POST", "/v1/responses", `{"input":"x"}`, []string{"Origin", "https://evil.example"}, http.StatusForbidden, `"code":"forbidden"`},
		{"ann", "GET", "/v1/models", "", nil, http.StatusOK, `"scripted"`},
		{"ann", "GET", "/v2", "", nil, http.StatusNotFound,
			"MCP is served at /mcp, conversations at /api/conversations, /v1 and /agui, the console at /console"},
		{"ann", "GET", "/", "", nil, http.StatusOK, "<h1>Log in</h1>"},
		{"dan", "POST", "/v1/responses", `{"input":"x"}`, nil, http.StatusOK, "Good morning."},
		{"dan", "POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}]}`, nil, http.StatusOK, "Good morning."},
		{"dan", "POST", "/api/conversations", `{"message":"x"}`, nil, http.StatusTooManyRequests, "2 calls per month"},
	} {
		if status, text := s.asks(c.client, c.method, c.path, c.body, c.headers...); status != c.status || !strings.Contains(text, c.part) {
			t.Errorf("%s %s %s: %d %s", c.client, c.method, c.path, status, text)
		}
	}
	s.signal(os.Interrupt)
	s.ends(exit.Done)

	s = serve(t, true, "--config", path)
	status, text = s.asks("ann", "POST", "/api/conversations/"+created.ID+"/messages", `{"message":"And now?"}`)
	if status != http.StatusAccepted {
		t.Fatalf("%d %s", status, text)
	}
	ids, names := s.reads("ann", created.ID, last)
	if joined := strings.Join(names, " "); !strings.HasPrefix(joined, "canister ") || !strings.HasPrefix(ids[0], "3") || last != "2-end" {
		t.Errorf("after %s came %q %q", last, ids, names)
	}
	s.signal(os.Interrupt)
	s.ends(exit.Done)
	record, err := os.ReadFile(strings.TrimSuffix(path, "consort.toml") + "audit.jsonl")
	if err != nil || strings.Count(string(record), `"http"`) < 4 || !strings.Contains(string(record), "ann") {
		t.Errorf("the audit: %v\n%s", err, record)
	}
}

// TestPagesOfOtherOrigins: a page of an allowed origin may send what OpenAI's client sends, and sees the headers
// that say whether to send a request again and which conversation it continues.
func TestPagesOfOtherOrigins(t *testing.T) {
	t.Parallel()
	table, _ := library(t, "")
	page := "https://app.example"
	doors := strings.Replace(frontDoors, "[serve]", "[serve]\norigins = [\""+page+"\"]", 1)
	s := serve(t, true, "--config", file(t, table, model(t, says("Good morning.")), historyTable, doors))
	wanted := "authorization,content-type,x-stainless-retry-count"
	preflight := s.opens("nobody", "OPTIONS", "/v1/responses", "", "Origin", page, "Access-Control-Request-Method", "POST",
		"Access-Control-Request-Headers", wanted)
	_ = preflight.Body.Close()
	if preflight.StatusCode != http.StatusNoContent || preflight.Header.Get("Access-Control-Allow-Headers") != wanted {
		t.Errorf("%s %v", preflight.Status, preflight.Header)
	}
	for body, status := range map[string]int{`{"input":"x"}`: http.StatusOK, `{"input":1}`: http.StatusBadRequest} {
		response := s.opens("ann", "POST", "/v1/responses", body, "Origin", page)
		_ = response.Body.Close()
		shown := strings.Join(response.Header.Values("Access-Control-Expose-Headers"), ", ")
		for _, name := range []string{"Consort-Conversation", "Consort-Ignored", "Location", "Retry-After", "X-Should-Retry"} {
			if response.StatusCode != status || !strings.Contains(shown, name) {
				t.Errorf("%s: %s shows %s, without %s", body, response.Status, shown, name)
			}
		}
	}
	s.signal(os.Interrupt)
	s.ends(exit.Done)
}

// TestClientsLeaveAtShutdown: a turn that is under way when the process ends is continued by
// the next one, and its stream ends.
func TestClientsLeaveAtShutdown(t *testing.T) {
	t.Parallel()
	slow := says(strings.Repeat("slowly ", 400))
	path := file(t, model(t, slow), historyTable, "[serve]\nhttp = \"127.0.0.1:0\"\nconverse = true\nshutdown_timeout = \"1s\"\n")
	s := serve(t, true, "--config", path)
	_, text := s.asks("ann", "POST", "/api/conversations", `{"message":"Hello?"}`)
	var created struct{ ID string }
	if err := json.Unmarshal([]byte(text), &created); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	response := s.opens("ann", "GET", "/api/conversations/"+created.ID+"/events", "", "Accept", "text/event-stream")
	s.signal(os.Interrupt)
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Error(err)
	}
	response.Body.Close()
	s.ends(exit.Done)
	s = serve(t, true, "--config", path)
	if _, names := s.reads("ann", created.ID, ""); names[len(names)-1] != "ended" {
		t.Errorf("got %q", names)
	}
}

// After a reload, the OpenAI-compatible API knows the new name of the model.
func TestModelsAfterAReload(t *testing.T) {
	t.Parallel()
	table, clients := model(t), "converse = true\n"+clientAda
	r := serveReloading(t, "false", clients, table, historyTable)
	r.write("false", clients, strings.Replace(table, "scripted", "renamed", 1), historyTable)
	r.reload(exit.Done)
	if status, text := r.asks("ada", "GET", "/v1/models", ""); status != http.StatusOK || !strings.Contains(text, "renamed") || strings.Contains(text, "scripted") {
		t.Errorf("%d %s", status, text)
	}
}
