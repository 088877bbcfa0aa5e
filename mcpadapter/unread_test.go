// SPDX-License-Identifier: Apache-2.0

//go:build linux

package mcpadapter

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
)

const readsVar = "MCPADAPTER_TEST_READS"

// TestReadingServer is not a test: it is the server of the next one. Its variable sets
// the protocol, and its behaviour after tools/list: "deaf" stops reading, "busy" works
// for a while on the first call.
func TestReadingServer(t *testing.T) {
	newest, how, ok := strings.Cut(os.Getenv(readsVar), " ")
	if !ok {
		t.Skip("is the server of another test")
	}
	time.AfterFunc(2*time.Minute, func() { os.Exit(9) }) // should a test be killed
	answer := func(id json.RawMessage, result string) {
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete",%s}}`+"\n", id, result)
	}
	work := 8 * time.Second // longer than a server may leave something unread
	for messages := json.NewDecoder(os.Stdin); ; {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if messages.Decode(&m) != nil {
			os.Exit(0)
		}
		switch m.Method {
		case "server/discover":
			if newest == wire.Modern {
				answer(m.ID, `"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"new","version":"1"}`)
			}
		case "subscriptions/listen":
			fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged",`+
				`"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":{"toolsListChanged":true}}}`+"\n", m.ID)
		case "initialize":
			fmt.Printf(initialized+"\n", m.ID)
		case "tools/list":
			answer(m.ID, `"ttlMs":0,"cacheScope":"private","tools":[{"name":"do","inputSchema":{"type":"object"}}]`)
			if how == "deaf" {
				select {}
			}
		case "tools/call":
			time.Sleep(work)
			work = 0
			answer(m.ID, `"content":[]`)
		}
	}
}

// While a call runs, keep-alive finds a server that does not read, before the call's
// time is up, and leaves alone one that works on the call and meanwhile reads
// nothing, neither the next call nor the rest of a long message.
func TestKeepAliveInACall(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]invoker.Code{"deaf": invoker.OutcomeUnknown, "busy": ""} {
		for _, protocol := range []string{wire.Legacy, wire.Modern} {
			t.Run(protocol+" "+how, func(t *testing.T) {
				t.Parallel()
				callTwice(t, protocol, how, want)
			})
		}
	}
}

func callTwice(t *testing.T, protocol, how string, want invoker.Code) {
	source := Stdio([]string{os.Args[0], "-test.run=^TestReadingServer$"}, &StdioOptions{
		ClientOptions: ClientOptions{Protocol: protocol},
		Environment:   map[string]string{readsVar: protocol + " " + how, "GORACE": "atexit_sleep_ms=0"},
		Grace:         100 * time.Millisecond,
	})
	e := ensemble.New("e", source, &ensemble.Options{KeepAlive: 200 * time.Millisecond, ConnectTimeout: 30 * time.Second, CallTimeout: 25 * time.Second})
	tools, err := e.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	var found [2]invoker.Code
	for i, arguments := range []string{`{}`, `{"long":"` + strings.Repeat("x", 200_000) + `"}`} {
		calls.Go(func() {
			if _, err := tools[0].Invoke(t.Context(), &invoker.Call{Arguments: []byte(arguments)}); err != nil {
				found[i] = invoker.AsFailure(err).Code
			}
		})
	}
	calls.Wait()
	for i, got := range found {
		// Nothing of a call that waits for the other to be written may have been sent.
		unsent := want != "" && got == invoker.Unavailable && found[1-i] == want
		if got != want && !unsent {
			t.Errorf("call %d: %q, want %q", i, got, want)
		}
	}
	if cause := e.Snapshot().LastError; want != "" && (cause == nil || !strings.Contains(cause.Error(), "has read nothing")) {
		t.Errorf("it was lost because of %v", cause)
	}
	if restarts := e.Snapshot().Restarts; restarts != 0 && how == "busy" { // a call that was not sent is made again
		t.Errorf("it was restarted %d times", restarts)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
