// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
)

func TestUnreadableAnswer(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000)
	for text, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"result":{"content":[`:       "7 sure",
		`{"jsonrpc":"2.0","result":{"id":1,"x":"{"},"id":7,`:  "7 sure",
		`{"id":7,"result":{}}`:                                "7",
		`{"id":7,"error":{"code":1}`:                          "7",
		`{"jsonrpc":"2.0","id":"a\"b","result":` + deep + `}`: `a"b sure`,
		`{"jsonrpc":"2.0","id":7,"result":` + deep + `}`:      "7 sure",
		`{"jsonrpc":"2.0","id":7,"method":"ping","params":`:   "",
		`{"level":"info","id":7,"msg":"listening"}`:           "",
		`{"jsonrpc":"2.0","result":{"id":7}`:                  "",
		`{"jsonrpc":"2.0","id":null,"error":{"code":1},`:      "",
		`listening on {"jsonrpc":"2.0","id":7,"result":`:      "",
		`{"jsonrpc":"2.0","id`:                                "",
		`{`:                                                   "",
		`["jsonrpc","id",7]`:                                  "",
	} {
		got := ""
		if answer := unreadableAnswer([]byte(text)); answer != nil {
			got = fmt.Sprint(answer.ID.Raw())
			if answer.Error.(*unreadableError).sure {
				got += " sure"
			}
		}
		if got != want {
			t.Errorf("%.60s: %q, want %q", text, got, want)
		}
	}
}

// The answer to the handshake, and then to "list", that a server gives.
const answersVar = "MCPADAPTER_TEST_ANSWERS"

// TestAnsweringServer is not a test: it is the server of the next ones.
func TestAnsweringServer(t *testing.T) {
	answer := os.Getenv(answersVar)
	if answer == "" {
		t.Skip("is the server of other tests")
	}
	time.AfterFunc(2*time.Minute, func() { os.Exit(9) }) // should a test be killed
	lines := json.NewDecoder(os.Stdin)
	for {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if lines.Decode(&m) != nil {
			os.Exit(0)
		}
		switch {
		case m.ID == nil:
		case m.Method == "initialize":
			fmt.Printf(initialized+"\n", m.ID)
		default:
			fmt.Println(strings.ReplaceAll(strings.ReplaceAll(answer, "ID", string(m.ID)), "DEEP", strings.Repeat("[", 20_000)))
		}
	}
}

func answering(answer string) *source {
	return Stdio([]string{os.Args[0], "-test.run=^TestAnsweringServer$"}, &StdioOptions{
		ClientOptions: ClientOptions{Server: "answers", Protocol: wire.Legacy},
		Environment:   map[string]string{answersVar: answer, "GORACE": "atexit_sleep_ms=0"},
	}).(*source)
}

// An unreadable answer fails its request immediately, with a message that fits the
// request.
func TestUnreadableAnswersFailAtOnce(t *testing.T) {
	for _, answer := range []string{
		`{"jsonrpc":"2.0","id":ID,"result":{"tools":DEEP`,
		`{"jsonrpc":"2.0","id":ID,"result":{"tools":[{"na`,
		`{"id":ID,"result":{"tools":[]}}`,
	} {
		c, err := answering(answer).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err = c.List(ctx)
		if failure := invoker.AsFailure(err); failure == nil || failure.Code != invoker.Protocol || ctx.Err() != nil {
			t.Errorf("%s: List: %v, want PROTOCOL", answer, err)
		}
		cancel()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A listing that ends before its answer says nothing of effects.
func TestInterruptedListing(t *testing.T) {
	c, err := answering(" ").Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, cut := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"The server did not answer in time.": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 100*time.Millisecond)
		},
		"The request was interrupted.": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(100*time.Millisecond, cancel)
			return ctx, cancel
		},
	} {
		ctx, cancel := cut(t.Context())
		if _, err := c.List(ctx); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "effect") {
			t.Errorf("List: %v, want %q", err, name)
		}
		cancel()
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The error about a server that does not connect in time shows its output that is not a
// message, or says that it wrote nothing and possible reasons.
func TestWhatKeptFromConnecting(t *testing.T) {
	t.Parallel()
	for first, want := range map[string]string{
		"Usage: server KEY\nsee\nthe\nmanual\n" + strings.Repeat("x",
			1000) + "\n": "lines to stdout that are not messages: Usage: server KEY | see | the | (2 more)",
		"": "has written nothing: it may still be installing or compiling, which needs a longer connect time-out, or may be waiting for an " +
			"environment variable that it was not given",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		// A shell starts sooner than a test, which counts on a busy machine.
		silent := Stdio([]string{"sh", "-c", `printf %s "$FIRST"; while read -r line; do :; done`}, &StdioOptions{
			ClientOptions: ClientOptions{Server: "silent", Protocol: wire.Legacy}, Environment: map[string]string{"FIRST": first}})
		_, err := silent.Open(ctx)
		if cancel(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open: %v, want %q", err, want)
		}
	}
	_, err := Stdio([]string{"sh", "-c", "echo no such option; exit 2"}, nil).Open(t.Context())
	if want := "exited: exit status 2; stdout has lines that are not messages: no such option"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Open: %v, want %q", err, want)
	}
}

// A long line without the end of a value is read in one pass: the reader of the server's
// output does not stop for hours.
func TestOutlineOfALongWord(t *testing.T) {
	text := append([]byte(`{"id":1,"result":`), bytes.Repeat([]byte("a"), 2<<20)...)
	read := make(chan bool, 1)
	go func() { read <- unreadableAnswer(text) != nil }()
	select {
	case answer := <-read:
		if !answer {
			t.Error("the text is not an answer")
		}
	case <-time.After(15 * time.Second):
		t.Error("a text of 2 MiB takes more than 15 s")
	}
}
