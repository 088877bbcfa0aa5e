// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// An answer that arrives after its call has failed is counted; an answer in time is not,
// and neither is a late refusal by the server.
func TestLateAnswersAreCounted(t *testing.T) {
	for name, test := range map[string]struct {
		delay  time.Duration
		answer string
		late   int
	}{
		"late":         {2 * time.Minute, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, 1},
		"in time":      {time.Second, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, 0},
		"refused late": {2 * time.Minute, refused, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := slowServer{
				answers: map[string]string{
					"server/discover": refused, "initialize": initialized, "tools/call": test.answer,
					"tools/list": `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"read","inputSchema":{"type":"object"}}]}}`,
				},
				delays: map[string]time.Duration{"tools/call": test.delay},
			}
			source := &source{options: new(ClientOptions).withDefaults("slow"), inOrder: true, dial: func(context.Context) (link, error) {
				ours, theirs := buffered()
				ended := make(chan struct{})
				go func() { defer close(ended); server.serve(theirs) }()
				return &memoryLink{ours: ours, theirs: theirs, limit: 1 << 20, ended: ended}, nil
			}}
			e := ensemble.New("slow", source, &ensemble.Options{CallTimeout: time.Minute})
			tools, err := e.Tools(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_, err = tools[0].Invoke(t.Context(), &invoker.Call{Arguments: json.RawMessage(`{}`)})
			if failed := err != nil; failed != (test.delay > time.Minute) {
				t.Errorf("%s: the call: %v", name, err)
			}
			time.Sleep(5 * time.Minute)
			if got := e.Snapshot().Late; got != test.late {
				t.Errorf("%s: %d late answers are counted, want %d", name, got, test.late)
			}
			if err := e.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
