// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history/files"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/realservers"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// formVar has the ledger of the server that the test binary is then.
const formVar = "MCPADAPTER_TEST_FORM"

// TestFormProcess is not a test: it is testdata/form.mjs with the SDK for Go.
func TestFormProcess(t *testing.T) {
	ledger := os.Getenv(formVar)
	if ledger == "" {
		t.Skip("is the server of other tests")
	}
	time.AfterFunc(2*time.Minute, func() { os.Exit(9) }) // should a test be killed
	note := func(what string, req *mcp.CallToolRequest) {
		file, err := os.OpenFile(ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(file, what, req.Params.Meta["io.github.consort-go/idempotency-key"])
		file.Close()
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "form", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "order", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			answer, ok := req.Params.InputResponses["choice"].(*mcp.ElicitResult)
			if !ok {
				note("asked", req)
				schema := json.RawMessage(`{"type":"object","properties":{"size":{"type":"integer"}},"required":["size"]}`)
				choice := &mcp.ElicitParams{Mode: "form", Message: "Which size?", RequestedSchema: schema}
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"choice": choice}, RequestState: "of an order"}, nil
			}
			note("ordered", req)
			size := any("nothing")
			if answer.Content["size"] != nil {
				size = answer.Content["size"]
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(answer.Action, " ", size)}}}, nil
		})
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// TestQuestionOfARealServerIsAnsweredLater: servers that use the SDKs of the protocol end
// the call to ask (SEP-2322). The person answers after the server and the process of the
// conversation have ended; new processes repeat the call with the same key, and its
// effect happens once.
func TestQuestionOfARealServerIsAnsweredLater(t *testing.T) {
	t.Parallel()
	for _, sdk := range []struct {
		name    string
		command func(t *testing.T, ledger string) ([]string, map[string]string)
	}{
		{"Go", func(_ *testing.T, ledger string) ([]string, map[string]string) {
			return []string{os.Args[0], "-test.run=^TestFormProcess$"}, map[string]string{formVar: ledger, "GORACE": "atexit_sleep_ms=0"}
		}},
		{"TypeScript", func(t *testing.T, ledger string) ([]string, map[string]string) {
			servers := realservers.Need(t)
			return servers.Script(filepath.Join("testdata", "form.mjs"), servers.Modules(), ledger), nil
		}},
	} {
		for _, test := range []struct {
			answer canister.Answer
			want   string
		}{
			{canister.Answer{Verdict: canister.VerdictAccept, Arguments: json.RawMessage(`{"size":4}`)}, "accept 4"},
			{canister.Answer{Verdict: canister.VerdictDecline}, "decline nothing"},
		} {
			t.Run(sdk.name+" "+string(test.answer.Verdict), func(t *testing.T) {
				ledger := filepath.Join(t.TempDir(), "ledger")
				command, env := sdk.command(t, ledger)
				f := &formTalk{t: t, folder: t.TempDir(), command: command, env: env}
				turn := f.run("Order one.", conversetest.Line{Calls: []conversetest.Call{{Name: "form__order", Arguments: `{}`}}})
				if turn.Reason != converse.ReasonWaiting || len(turn.Waits) != 1 || turn.Waits[0].For != canister.WaitElicitation {
					t.Fatalf("the turn is %+v", turn)
				}
				if q, err := waits.Question(turn.Waits[0]); err != nil || q.Message != "Which size?" || !strings.Contains(string(q.Schema), "integer") {
					t.Errorf("the question is %+v, %v", q, err)
				}
				test.answer.Wait, test.answer.By = turn.Waits[0].ID, "dana"
				f.answer(test.answer)
				turn = f.run("", conversetest.Line{Expect: answered(test.want), Text: "Done."})
				lines, err := os.ReadFile(ledger)
				if err != nil {
					t.Fatal(err)
				}
				key := keyIn(string(lines))
				if want := strings.ReplaceAll("asked K\nasked K\nordered K\n", "K", key); turn.Text() != "Done." || string(lines) != want || len(key) < 10 {
					t.Errorf("the turn is %+v; the server's ledger is %q", turn, lines)
				}
			})
		}
	}
}

// keyIn is the key of the first call in a ledger.
func keyIn(ledger string) string {
	line, _, _ := strings.Cut(ledger, "\n")
	_, key, _ := strings.Cut(line, " ")
	return key
}

// formTalk is a conversation in files; each of its runs has a server of its own.
type formTalk struct {
	t       *testing.T
	folder  string
	command []string
	env     map[string]string
}

// run sends a message, or carries on without one, and ends all that it has begun.
func (f *formTalk) run(message string, line conversetest.Line) converse.Turn {
	f.t.Helper()
	store, err := files.Open(f.folder, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	defer store.Close()
	source := mcpadapter.Stdio(f.command, &mcpadapter.StdioOptions{Environment: f.env, Grace: 20 * time.Second})
	roster, err := ensemble.NewRoster(ensemble.New("form", source, &ensemble.Options{ConnectTimeout: mcpadapter.CommandConnectTimeout}))
	if err != nil {
		f.t.Fatal(err)
	}
	model := conversetest.NewScript(line)
	talk := converse.New(model, roster, &converse.Options{ID: "talk", Log: store, OwnRoster: true,
		Ask: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
			return nil, converse.Later(time.Hour, "dana")
		}})
	var turn converse.Turn
	if message == "" {
		turn, err = talk.Run(atLast(f.t))
	} else {
		turn, err = talk.Ask(atLast(f.t), canister.Text(message))
	}
	if err != nil || model.Err() != nil {
		f.t.Fatal(err, model.Err())
	}
	if err := talk.Close(context.Background()); err != nil {
		f.t.Error(err)
	}
	return turn
}

func (f *formTalk) answer(answer canister.Answer) {
	f.t.Helper()
	store, err := files.Open(f.folder, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	defer store.Close()
	if err := waits.Answer(f.t.Context(), store, "talk", answer, time.Now()); err != nil {
		f.t.Fatal(err)
	}
}
