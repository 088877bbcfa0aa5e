// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
)

// TestStandingStream: nothing is asked of a server before it can ask back.
func TestStandingStream(t *testing.T) {
	listed := make(chan struct{}, 1)
	early := make(chan bool, 1)
	s := newScripted(t, func(w http.ResponseWriter, r *http.Request, m message) bool {
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
			stream(w)(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"here"}}`)
			<-r.Context().Done()
			return true
		}
		return false
	})
	c := openScripted(t, s)
	if _, err := c.List(within(t)); err != nil {
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
	s := newScripted(t, func(w http.ResponseWriter, r *http.Request, m message) bool {
		switch m.Method {
		case "server/discover":
			reply(w, m, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"scripted","version":"1"}}`)
		case "subscriptions/listen":
			select {
			case <-listed:
				early <- true
			case <-time.After(200 * time.Millisecond): // the time that a wrong client has
				early <- false
			}
			stream(w)(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true}}}`)
			<-r.Context().Done()
		case "tools/list":
			listed <- struct{}{}
			return false
		default:
			return false
		}
		return true
	})
	c := open(t, mcpadapter.HTTP(s.URL, nil))
	if _, err := c.List(within(t)); err != nil {
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
	s := newScripted(t, func(w http.ResponseWriter, r *http.Request, m message) bool {
		switch m.Method {
		case "initialize":
			reply(w, m, `{"protocolVersion":"2025-11-25","capabilities":{"resources":{},"prompts":{}},"serverInfo":{"name":"scripted","version":"1"}}`)
		case "resources/list":
			if strings.Contains(string(m.Params), `"second"`) {
				reply(w, m, `{"resources":[{"uri":"file:///b","name":"b","size":3}]}`)
			} else {
				reply(w, m, `{"resources":[{"uri":"file:///a","name":"a","mimeType":"text/plain"}],"nextCursor":"second"}`)
			}
		case "resources/read":
			switch {
			case strings.Contains(string(m.Params), "file:///a"):
				reply(w, m, `{"contents":[{"uri":"file:///a","text":"A"},{"uri":"file:///a","blob":"Qg=="}]}`)
			case strings.Contains(string(m.Params), "file:///b"):
				reply(w, m, `{"contents":[{"uri":"file:///b","blob":"no base64"}]}`)
			default:
				replyError(w, m, -32002, "no such resource")
			}
		case "prompts/list":
			reply(w, m, `{"prompts":[{"name":"greet"}]}`)
		case "prompts/get":
			reply(w, m, `{"messages":[{"role":"user","content":{"type":"text","text":"Hello."}},{"role":"user","content":{"type":"hologram"}}]}`)
		default:
			return false
		}
		return true
	})
	return openScripted(t, s).(ensemble.Library)
}

func TestResources(t *testing.T) {
	reader := readable(t)
	links, err := reader.Resources(within(t))
	if err != nil || len(links) != 2 || links[0].MIME != "text/plain" || links[1].URI != "file:///b" || *links[1].Size != 3 {
		t.Errorf("Resources() = %v, %v", links, err)
	}
	contents, err := reader.Read(within(t), "file:///a")
	if err != nil || len(contents) != 2 || contents[0].Text != "A" || string(contents[1].Blob) != "B" {
		t.Errorf("Read(a) = %v, %v", contents, err)
	}
	if _, err := reader.Read(within(t), "file:///b"); code(err) != invoker.Protocol {
		t.Errorf("reading what is not base64 failed with %v, want PROTOCOL", err)
	}
	if _, err := reader.Read(within(t), "file:///c"); code(err) != invoker.NotFound || !strings.Contains(err.Error(), "no such resource") {
		t.Errorf("reading a resource that is not there failed with %v", err)
	}
}

func TestPrompts(t *testing.T) {
	reader := readable(t)
	prompts, err := reader.Prompts(within(t))
	if err != nil || len(prompts) != 1 || prompts[0].Name != "greet" {
		t.Errorf("Prompts() = %v, %v", prompts, err)
	}
	got, err := reader.Get(within(t), "greet", nil)
	if err != nil || len(got.Messages) != 2 || canister.TextOf(got.Messages[0].Content) != "Hello." {
		t.Fatalf("Get() = %v, %v", got, err)
	}
	if text := canister.TextOf(got.Messages[1].Content); !strings.Contains(text, "hologram") {
		t.Errorf("content of an unknown kind became %q", text)
	}
}

// TestNothingToRead: a server that has neither is not asked.
func TestNothingToRead(t *testing.T) {
	s := newScripted(t, nil)
	reader := openScripted(t, s).(ensemble.Library)
	links, err := reader.Resources(within(t))
	names, err2 := reader.Prompts(within(t))
	if len(links)+len(names) > 0 || err != nil || err2 != nil {
		t.Errorf("%v %v, %v %v", links, err, names, err2)
	}
	if n := len(s.received("resources/list")) + len(s.received("prompts/list")); n > 0 {
		t.Errorf("the server was asked %d times", n)
	}
}
