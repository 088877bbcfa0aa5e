// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/internal/callers"
	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A question goes to the only call in flight, unless the server may still work on a
// call that somebody else gave up.
func TestWhoIsAskedAfterACallWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(nil, nil)
		number := 0
		call := func(client string) *exchange {
			number++
			id, _ := jsonrpc.MakeID(float64(number))
			x := &exchange{call: &invoker.Call{}, personal: true, origin: callers.Origin{Client: client}}
			w.follow(x, &jsonrpc.Request{ID: id, Method: "tools/call"}, nil, nil)
			return x
		}
		asked := func(client string) bool {
			x := call(client)
			defer w.forget(x)
			defer w.answered(&jsonrpc.Response{ID: x.id})
			return w.only() == x
		}
		wantAsked := func(when string, ann, bob bool) {
			t.Helper()
			if gotAnn, gotBob := asked("ann"), asked("bob"); gotAnn != ann || gotBob != bob {
				t.Errorf("%s Ann is asked %t and Bob %t, want %t and %t", when, gotAnn, gotBob, ann, bob)
			}
		}
		wantAsked("at first", true, true)
		w.forget(call("ann"))
		wantAsked("after Ann gave up", true, false)
		time.Sleep(abandonedWork / 2)
		w.forget(call("bob"))
		time.Sleep(abandonedWork - time.Second)
		wantAsked("after both gave up", false, false)
		time.Sleep(time.Second)
		wantAsked("a while later", true, true)
		w.forget(call("bob"))
		wantAsked("after Bob gave up again", false, true)
	})
}
