// SPDX-License-Identifier: Apache-2.0

//go:build unix

package mcpadapter

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
)

const directVar = "MCPADAPTER_TEST_DIRECT"

// TestDirectServer is not a test: it is the server of the next ones. The name of the tool that
// is called says what it does.
func TestDirectServer(t *testing.T) {
	if os.Getenv(directVar) == "" {
		t.Skip("is the server of other tests")
	}
	time.AfterFunc(2*time.Minute, func() { os.Exit(9) }) // should a test be killed
	said := func(id any, text string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":{"content":[{"type":"text","text":%q}]}}`+"\n", id, text)
	}
	ended := "" // the last cancellation
	for messages := json.NewDecoder(os.Stdin); ; {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name      string
				RequestID json.RawMessage
				Meta      struct{ ProgressToken string } `json:"_meta"`
			}
		}
		if messages.Decode(&m) != nil {
			os.Exit(0)
		}
		switch m.Method + " " + m.Params.Name {
		case "initialize ":
			fmt.Printf(initialized+"\n", m.ID)
		case "notifications/cancelled ":
			ended = string(m.Params.RequestID)
		case "tools/call report":
			fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%q,"progress":1}}`+"\n", m.Params.Meta.ProgressToken)
		case "tools/call id":
			fmt.Print(said(string(m.ID), string(m.ID)))
		case "tools/call ended":
			fmt.Print(said(string(m.ID), ended))
		case "tools/call forge": // answers to requests of the SDK, and its own twice
			text := ""
			for id := range 10 {
				text += said(id, "forged")
			}
			fmt.Print(text, said(string(m.ID), "first"), text, said(string(m.ID), "second"))
		case "tools/call leave":
			fmt.Print(said(string(m.ID), "bye"))
			os.Exit(0)
		}
	}
}

func openDirect(t *testing.T) *connection {
	t.Helper()
	mcptest.NoLeaks(t)
	c, err := Stdio([]string{os.Args[0], "-test.run=^TestDirectServer$"}, &StdioOptions{
		ClientOptions: ClientOptions{Protocol: wire.Legacy}, Environment: map[string]string{directVar: "1"}, Grace: mcptest.Patience,
	}).Open(mcptest.Within(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c.(*connection)
}

func text(t *testing.T, c *connection, tool string) string {
	t.Helper()
	out, err := c.call(mcptest.Within(t), &invoker.Call{Arguments: json.RawMessage(`{}`)}, tool)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return canister.TextOf(out.Content)
}

// A listener of a call, which belongs to its caller, delays neither Close nor fails it; it may
// even be what closes.
func TestCloseDoesNotWaitForListeners(t *testing.T) {
	for _, closes := range []bool{false, true} {
		c := openDirect(t)
		heard, closed, returned := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		call := &invoker.Call{Arguments: json.RawMessage(`{}`), Progress: func(invoker.Progress) {
			close(heard)
			if closes {
				if err := c.Close(mcptest.Within(t)); err != nil {
					t.Errorf("Close in the listener: %v", err)
				}
				close(closed)
			}
			<-closed
		}}
		go func() {
			_, err := c.call(mcptest.Within(t), call, "report")
			returned <- err
		}()
		mcptest.Await(t, "the report", heard)
		if !closes {
			if err := c.Close(mcptest.Within(t)); err != nil {
				t.Errorf("Close: %v", err)
			}
			close(closed)
		}
		if err := mcptest.Await(t, "the end of the call", returned); mcptest.CodeOf(err) != invoker.OutcomeUnknown {
			t.Errorf("the call failed with %v, want OUTCOME_UNKNOWN", err)
		}
	}
}

// A process is told which call was given up.
func TestProcessIsToldOfTheEnd(t *testing.T) {
	c := openDirect(t)
	ctx, cancel := context.WithCancel(mcptest.Within(t))
	call := &invoker.Call{Arguments: json.RawMessage(`{}`), Progress: func(invoker.Progress) { cancel() }}
	if _, err := c.call(ctx, call, "report"); mcptest.CodeOf(err) != invoker.Canceled {
		t.Errorf("the call failed with %v, want CANCELED", err)
	}
	last := fmt.Sprint(firstDirect + c.serial.Load())
	if !mcptest.Eventually(func() bool { return text(t, c, "ended") == last }) {
		t.Errorf("the call %q was given up, want %q", text(t, c, "ended"), last)
	}
}

// Answers to other requests, and second answers, are not taken for answers.
func TestForgedAnswers(t *testing.T) {
	c := openDirect(t)
	for range 20 {
		if got := text(t, c, "forge"); got != "first" {
			t.Fatalf("the answer is %q", got)
		}
		if got := text(t, c, "id"); !strings.HasPrefix(got, "10737") {
			t.Fatalf("the answer is %q", got)
		}
	}
}

// An answer counts although the process leaves right after it.
func TestLastAnswerOfAProcess(t *testing.T) {
	for range 5 {
		c := openDirect(t)
		if got := text(t, c, "leave"); got != "bye" {
			t.Errorf("the answer is %q", got)
		}
		if err := c.Close(mcptest.Within(t)); err != nil {
			t.Error(err)
		}
	}
}

// Every spelling of the type of a result is understood.
func TestResultType(t *testing.T) {
	for text, want := range map[string]string{
		`{"resultType":"input_required"}`:                                inputRequired,
		`{"resultType":"input\u005frequired"}`:                           inputRequired,
		`{"result\u0054ype":"input_required"}`:                           inputRequired,
		`{"resultType":"complete","resultType":"input_required"}`:        inputRequired,
		`{"resultType":"input_required","resultType":"complete"}`:        complete,
		`{"inputRequests":{"q":{}}}`:                                     inputRequired,
		`{"resultType":null,"inputRequests":{"q":{}}}`:                   inputRequired,
		`{"resultType":"complete","inputRequests":{"q":{}}}`:             complete,
		`{"content":[],"resultType":"complete","inputRequests":{}}`:      complete,
		`{ "inputRequests" : { } }`:                                      complete,
		`{"inputRequests":null}`:                                         complete,
		`{"inputRequests":["q"]}`:                                        complete,
		`{"content":[{"inputRequests":1}]}`:                              complete,
		`{"content":[{"resultType":"input_required"}],"resultType":"x"}`: "x",
		`{"resultType":["complete"]}`:                                    `["complete"]`,
		`{"resultType":""}`:                                              "",
		`{}`:                                                             complete,
		`[]`:                                                             complete,
	} {
		if got := resultType(json.RawMessage(text)); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}
