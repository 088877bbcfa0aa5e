// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// TestReloadEndsStreams: a reload that takes a right or a token from a client ends the open streams
// that need it, of the API, the console and MCP, and tells the client why. Others stay open.
func TestReloadEndsStreams(t *testing.T) {
	t.Parallel()
	table, _ := library(t, "")
	const clients = `
[serve]
http = "127.0.0.1:0"
converse = true
watch = false
console = "off"
[[serve.clients]]
name = "ben"
token = "ben-0123456789abcdef"
trusted = {user = "ben"}
`
	const ann = "[[serve.clients]]\nname = \"ann\"\ntrusted = {user = \"ann\"}\n"
	const hers = "token = \"ann-0123456789abcdef\"\n"
	base := table + model(t, says("Good morning.")) + historyTable + clients + ann
	path := file(t, base, hers, "console = \"read\"\n")
	s := serve(t, true, "--config", path)
	reload := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(base+text), 0o600); err != nil {
			t.Fatal(err)
		}
		if said := consortBesideDone(t, "reload", "--config", path); !strings.Contains(said, "has the new configuration") {
			t.Errorf("the reload: %s", said)
		}
	}
	hersID, bensID := s.creates("ann"), s.creates("ben")
	streams := map[string]io.Reader{
		"API":     s.opensStream("ann", "/api/conversations/"+hersID+"/events"),
		"console": s.opensConsole("ann-0123456789abcdef", "/conversations/"+hersID+"/live?after=1"),
		"MCP":     s.opensSession("ann"),
	}
	bens := s.opensStream("ben", "/api/conversations/"+bensID+"/events")
	for _, c := range []struct{ stream, change, why string }{
		{"API", hers + "console = \"read\"\ndeny = [\"converse\"]\n", "may not use converse"},
		{"console", hers + "console = \"off\"\ndeny = [\"converse\"]\n", "your rights have changed"},
		{"MCP", "token = \"another-0123456789\"\n", "the token is not valid any longer"},
	} {
		reload(c.change)
		rest, err := io.ReadAll(streams[c.stream])
		if _, comment, _ := strings.Cut(string(rest), "\n: this stream ends: "); err != nil || !strings.Contains(comment, c.why) {
			t.Errorf("%s ends with %q, %v", c.stream, rest, err)
		}
	}
	if status, text := s.asks("ben", "POST", "/api/conversations/"+bensID+"/messages", `{"message":"And now?"}`); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, text)
	}
	ends, lines := 0, bufio.NewScanner(bens)
	for ends < 2 && lines.Scan() {
		if lines.Text() == "event: ended" {
			ends++
		}
	}
	if ends != 2 {
		t.Error("the stream of another client has ended")
	}
	s.signal(os.Interrupt)
	s.ends(exit.Done)
}

// TestARunOutlivesItsToken: a run that is under way when its token is withdrawn continues to its end, whatever its client
// accepts. A stream of the same client ends.
func TestARunOutlivesItsToken(t *testing.T) {
	t.Parallel()
	asked, hold := make(chan struct{}, 1), make(chan struct{})
	base := model(t, openaiserver.Step{Reply: openaiserver.Respond(func(*openaiserver.Request) openaiserver.Reply {
		asked <- struct{}{}
		<-hold
		return openaiserver.Message{Text: "Good morning."}
	})}) + historyTable + "[serve]\nhttp = \"127.0.0.1:0\"\nconverse = true\nwatch = false\n"
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release) // before the model's server closes
	path := file(t, base, "clients = [{token = \"ann-0123456789abcdef\", trusted = {user = \"ann\"}}]\n")
	s := serve(t, true, "--config", path)
	const input = `{"threadId":"t","runId":"r","state":{},"tools":[],"context":[],"forwardedProps":{},"messages":[{"id":"m","role":"user","content":"Hello?"}]}`
	run := s.opens("ann", "POST", "/agui", input, "Accept", "text/event-stream")
	defer run.Body.Close()
	select {
	case <-asked:
	case <-time.After(time.Minute):
		t.Fatal("the model was not asked")
	}
	stream := s.opensStream("ann", "/api/conversations/"+run.Header.Get("Consort-Conversation")+"/events")
	if err := os.WriteFile(path, []byte(base+"clients = [{token = \"another-0123456789\"}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	consortBesideDone(t, "reload", "--config", path)
	if rest, err := io.ReadAll(stream); err != nil || !strings.Contains(string(rest), "the token is not valid any longer") {
		t.Errorf("the stream ends with %q, %v", rest, err)
	}
	release()
	if text, err := io.ReadAll(run.Body); err != nil || !strings.Contains(string(text), "Good morning.") || !strings.Contains(string(text), `"RUN_FINISHED"`) {
		t.Errorf("the run ends with %q, %v", text, err)
	}
	s.signal(os.Interrupt)
	s.ends(exit.Done)
}

// creates creates a conversation of a client, and waits until its turn is over.
func (s *service) creates(client string) (id string) {
	s.t.Helper()
	status, text := s.asks(client, "POST", "/api/conversations", `{"message":"Hello?"}`)
	var created struct{ ID string }
	if err := json.Unmarshal([]byte(text), &created); status != http.StatusCreated || err != nil {
		s.t.Fatalf("%d %s", status, text)
	}
	s.reads(client, created.ID, "")
	return created.ID
}

// opensStream opens a stream as a client that accepts anything.
func (s *service) opensStream(client, path string) io.Reader {
	s.t.Helper()
	return s.isStream(s.opens(client, "GET", path, ""))
}

func (s *service) isStream(response *http.Response) io.Reader {
	s.t.Helper()
	s.t.Cleanup(func() { response.Body.Close() })
	time.AfterFunc(2*time.Minute, func() { response.Body.Close() }) // a stream that does not end fails the test
	if response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		s.t.Fatalf("%s: %s", response.Request.URL, response.Status)
	}
	return response.Body
}

// opensConsole logs a person in at the console and opens one of its streams.
func (s *service) opensConsole(token, path string) io.Reader {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	browser, at := &http.Client{Jar: jar}, strings.TrimSuffix(s.url, "/mcp")+"/console"
	response, err := browser.PostForm(at+"/login", url.Values{"token": {token}})
	if err != nil {
		s.t.Fatal(err)
	}
	response.Body.Close()
	if response, err = browser.Get(at + path); err != nil {
		s.t.Fatal(err)
	}
	return s.isStream(response)
}

// opensSession begins a session of MCP and opens its stream.
func (s *service) opensSession(client string) io.Reader {
	s.t.Helper()
	const begin = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"host","version":"1"}}}`
	response := s.opens(client, "POST", "/mcp", begin, "Accept", "application/json, text/event-stream")
	response.Body.Close()
	id := response.Header.Get("Mcp-Session-Id")
	s.opens(client, "POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Accept", "application/json, text/event-stream",
		"Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-11-25").Body.Close()
	return s.isStream(s.opens(client, "GET", "/mcp", "", "Accept", "text/event-stream", "Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-11-25"))
}
