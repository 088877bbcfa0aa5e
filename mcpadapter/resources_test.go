// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
)

// TestStandingStream: nothing is asked of a server before it can ask back.
func TestStandingStream(t *testing.T) {
	listed := make(chan struct{}, 1)
	early := make(chan bool, 1)
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		switch m.Method {
		case "tools/list":
			listed <- struct{}{}
		case "GET":
			select {
			case <-listed:
				early <- true
			case <-time.After(200 * time.Millisecond): // the time that a wrong client has
				early <- false
			}
			mcptest.StartStream(w)(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"here"}}`)
			<-r.Context().Done()
			return true
		}
		return false
	})
	c := openScripted(t, s)
	if _, err := c.List(mcptest.Within(t)); err != nil {
		t.Fatal(err)
	}
	if <-early {
		t.Error("the tools were listed before the standing stream was open")
	}
}

// TestSubscribedFirst is the same for the newest protocol: the tools are not
// listed before the server has agreed to tell of their changes.
func TestSubscribedFirst(t *testing.T) {
	listed := make(chan struct{}, 1)
	early := make(chan bool, 1)
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		switch m.Method {
		case "server/discover":
			mcptest.Reply(w, m,
				`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},`+
					`"serverInfo":{"name":"scripted","version":"1"}}`)
		case "subscriptions/listen":
			select {
			case <-listed:
				early <- true
			case <-time.After(200 * time.Millisecond): // the time that a wrong client has
				early <- false
			}
			mcptest.StartStream(w)(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true}}}`)
			<-r.Context().Done()
		case "tools/list":
			listed <- struct{}{}
			return false
		default:
			return false
		}
		return true
	})
	c := mcptest.Open(t, mcpadapter.HTTP(s.URL, nil))
	if _, err := c.List(mcptest.Within(t)); err != nil {
		t.Fatal(err)
	}
	if protocol := c.Peer().Protocol; protocol != "MCP 2026-07-28" {
		t.Fatalf("the protocol is %s", protocol)
	}
	if <-early {
		t.Error("the tools were listed before the subscription was acknowledged")
	}
}

// readable is a scripted server with resources and prompts.
func readable(t *testing.T) ensemble.Library {
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		switch m.Method {
		case "initialize":
			mcptest.Reply(w, m, `{"protocolVersion":"2025-11-25","capabilities":{"resources":{},"prompts":{}},"serverInfo":{"name":"scripted","version":"1"}}`)
		case "resources/list":
			if strings.Contains(string(m.Params), `"second"`) {
				mcptest.Reply(w, m, `{"resources":[{"uri":"file:///b","name":"b","size":3}]}`)
			} else {
				mcptest.Reply(w, m, `{"resources":[{"uri":"file:///a","name":"a","mimeType":"text/plain"}],"nextCursor":"second"}`)
			}
		case "resources/read":
			switch {
			case strings.Contains(string(m.Params), "file:///a"):
				mcptest.Reply(w, m, `{"contents":[{"uri":"file:///a","text":"A"},{"uri":"file:///a","blob":"Qg=="}]}`)
			case strings.Contains(string(m.Params), "file:///b"):
				mcptest.Reply(w, m, `{"contents":[{"uri":"file:///b","blob":"no base64"}]}`)
			default:
				mcptest.ReplyError(w, m, -32002, "no such resource")
			}
		case "prompts/list":
			mcptest.Reply(w, m, `{"prompts":[{"name":"greet"}]}`)
		case "prompts/get":
			mcptest.Reply(w, m, `{"messages":[{"role":"user","content":{"type":"text","text":"Hello."}},{"role":"user","content":{"type":"hologram"}}]}`)
		default:
			return false
		}
		return true
	})
	return openScripted(t, s).(ensemble.Library)
}

func TestResources(t *testing.T) {
	reader := readable(t)
	links, err := reader.Resources(mcptest.Within(t))
	if err != nil || len(links) != 2 || links[0].MIME != "text/plain" || links[1].URI != "file:///b" || *links[1].Size != 3 {
		t.Errorf("Resources() = %v, %v", links, err)
	}
	contents, err := reader.Read(mcptest.Within(t), "file:///a")
	if err != nil || len(contents) != 2 || contents[0].Text != "A" || string(contents[1].Blob) != "B" {
		t.Errorf("Read(a) = %v, %v", contents, err)
	}
	if _, err := reader.Read(mcptest.Within(t), "file:///b"); mcptest.CodeOf(err) != invoker.Protocol {
		t.Errorf("reading what is not base64 failed with %v, want PROTOCOL", err)
	}
	if _, err := reader.Read(mcptest.Within(t), "file:///c"); mcptest.CodeOf(err) != invoker.NotFound || !strings.Contains(err.Error(), "no such resource") {
		t.Errorf("reading a resource that is not there failed with %v", err)
	}
}

func TestPrompts(t *testing.T) {
	reader := readable(t)
	prompts, err := reader.Prompts(mcptest.Within(t))
	if err != nil || len(prompts) != 1 || prompts[0].Name != "greet" {
		t.Errorf("Prompts() = %v, %v", prompts, err)
	}
	got, err := reader.Get(mcptest.Within(t), "greet", nil)
	if err != nil || len(got.Messages) != 2 || canister.TextOf(got.Messages[0].Content) != "Hello." {
		t.Fatalf("Get() = %v, %v", got, err)
	}
	if text := canister.TextOf(got.Messages[1].Content); !strings.Contains(text, "hologram") {
		t.Errorf("content of an unknown kind became %q", text)
	}
}

// TestNothingToRead: a server that has neither is not asked.
func TestNothingToRead(t *testing.T) {
	s := mcptest.NewScripted(t, nil)
	reader := openScripted(t, s).(ensemble.Library)
	links, err := reader.Resources(mcptest.Within(t))
	names, err2 := reader.Prompts(mcptest.Within(t))
	if len(links)+len(names) > 0 || err != nil || err2 != nil {
		t.Errorf("%v %v, %v %v", links, err, names, err2)
	}
	if n := len(s.Received("resources/list")) + len(s.Received("prompts/list")); n > 0 {
		t.Errorf("the server was asked %d times", n)
	}
}
