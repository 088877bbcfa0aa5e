// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A server that sends requests without end, and does not wait for the answers, is lost at a
// limit that its error names.
func TestQuestionsWithoutEnd(t *testing.T) {
	const most, all = 1000, 1500
	server := asking(func(ctx context.Context, s *mcp.ServerSession) (string, error) {
		var asking sync.WaitGroup
		for range all {
			asking.Go(func() { _, _ = s.Elicit(ctx, &mcp.ElicitParams{Message: "sure?"}) })
		}
		asking.Wait()
		return "asked", nil
	})
	var asked atomic.Int32
	tooMany := make(chan struct{})
	c := mcptest.Open(t, mcpadapter.InMemory(server, &mcpadapter.ClientOptions{
		Protocol: "2025-11-25",
		Elicit: func(ctx context.Context, _ *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
			if asked.Add(1) == most+1 {
				close(tooMany)
			}
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}))
	ask := mcptest.Tool(t, c, "ask")
	failed := make(chan error, 1)
	go func() {
		_, err := ask.Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
		failed <- err
	}()
	select {
	case <-tooMany:
		t.Errorf("a person is asked more than %d questions at once", most)
		_ = c.Close(mcptest.Within(t))
		<-failed
	case err := <-failed:
		failure := invoker.AsFailure(err)
		if failure.Code != invoker.OutcomeUnknown || failure.Cause == nil || !strings.Contains(failure.Cause.Error(), "1000") {
			t.Errorf("the call failed because of %v: %v", failure.Cause, err)
		}
		<-c.Lost()
		if lost := c.Err(); lost == nil || !strings.Contains(lost.Error(), "1000") {
			t.Errorf("the connection was lost because of %v", lost)
		}
	}
}

// The limit holds for bytes too. What is answered counts no longer.
func TestLargeQuestions(t *testing.T) {
	const maxMessage = 1 << 20
	large := strings.Repeat("x", 900<<10)
	for name, test := range map[string]struct {
		at   int // questions at once
		lost bool
	}{
		"one after another": {1, false}, "two at once": {2, false}, "five at once": {5, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := asking(func(ctx context.Context, s *mcp.ServerSession) (string, error) {
				for range 6 / test.at {
					var asking sync.WaitGroup
					for range test.at {
						asking.Go(func() { _, _ = s.Elicit(ctx, &mcp.ElicitParams{Message: large}) })
					}
					asking.Wait()
				}
				return "asked", nil
			})
			var asked atomic.Int32
			tooMany := make(chan struct{})
			c := mcptest.Open(t, mcpadapter.InMemory(server, &mcpadapter.ClientOptions{
				Protocol: "2025-11-25", MaxMessage: maxMessage,
				Elicit: func(ctx context.Context, _ *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
					if asked.Add(1) == 5 && test.lost {
						close(tooMany)
					}
					if test.lost {
						select {
						case <-ctx.Done():
						case <-tooMany:
						}
					}
					return nil, ctx.Err()
				},
			}))
			_, err := mcptest.Tool(t, c, "ask").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
			if !test.lost {
				if err != nil || asked.Load() != 6 {
					t.Errorf("after %d questions: %v", asked.Load(), err)
				}
				return
			}
			failure := invoker.AsFailure(err)
			if failure == nil || failure.Code != invoker.OutcomeUnknown || failure.Cause == nil || !strings.Contains(failure.Cause.Error(), "4194304 bytes") {
				t.Fatalf("the call failed with %v", err)
			}
			mcptest.Await(t, "Lost", c.Lost())
			if lost := c.Err(); lost == nil || !strings.Contains(lost.Error(), "4194304 bytes") {
				t.Errorf("the connection was lost because of %v", lost)
			}
		})
	}
}

// The text of a report of progress is cut, because reports wait for a slow listener.
func TestLargeProgress(t *testing.T) {
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
		if m.Method != "tools/call" {
			return false
		}
		var params struct {
			Meta struct{ ProgressToken string } `json:"_meta"`
		}
		_ = json.Unmarshal(m.Params, &params)
		send := mcptest.StartStream(w)
		send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":%q,"message":%q}}`,
			params.Meta.ProgressToken, strings.Repeat("x", 1<<20)))
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, m.ID))
		return true
	})
	call := mcptest.RawCall(`{}`)
	var text string
	call.Progress = func(p invoker.Progress) { text = p.Message }
	_, err := mcptest.Tool(t, openScripted(t, s), "write").Invoke(mcptest.Within(t), call)
	if err != nil || len(text) > 4<<10 || !strings.HasPrefix(text, "xxx") || !strings.HasSuffix(text, textcut.Mark) {
		t.Errorf("the report has %d bytes: %v", len(text), err)
	}
}

// A result with as many questions (SEP-2322) is refused: nobody is asked.
func TestQuestionsInOneResult(t *testing.T) {
	const most = 1000
	var questions []string
	for i := range most + 1 {
		questions = append(questions, fmt.Sprintf(`"%d":{"method":"elicitation/create","params":{"message":"sure?"}}`, i))
	}
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
		if m.Method == "tools/call" {
			mcptest.Reply(w, m, `{"resultType":"input_required","inputRequests":{`+strings.Join(questions, ",")+`}}`)
		}
		return m.Method == "tools/call"
	})
	var asked atomic.Int32
	options := &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{
		Protocol: "2025-11-25",
		Elicit: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
			asked.Add(1)
			return nil, errors.New("asked")
		},
	}}
	_, err := mcptest.Tool(t, mcptest.Open(t, mcpadapter.HTTP(s.URL, options)), "write").Invoke(mcptest.Within(t), mcptest.RawCall(`{}`))
	if mcptest.CodeOf(err) != invoker.OutcomeUnknown || !strings.Contains(err.Error(), "1000") || asked.Load() > 0 {
		t.Errorf("%d questions were asked: %v", asked.Load(), err)
	}
}
