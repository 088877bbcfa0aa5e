// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/subprocess"
	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A question goes to the only running call, unless the server may still work on a
// cancelled call of another caller.
func TestWhoIsAskedAfterACallWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newInterceptor(nil, nil)
		number := 0
		call := func(client string) *exchange {
			number++
			id, _ := jsonrpc.MakeID(float64(number))
			x := &exchange{call: &invoker.Call{}, personal: true, origin: access.Origin{Client: client}}
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
		wantAsked("after both gave up", false, false)
		time.Sleep(abandonedWork - time.Second)
		wantAsked("when only Bob's call can be worked on", false, true)
		time.Sleep(time.Second)
		wantAsked("a while later", true, true)
		w.forget(call("bob"))
		wantAsked("after Bob gave up again", false, true)
		late := call("ann")
		w.forget(late)
		w.answered(&jsonrpc.Response{ID: late.id, Error: errors.New("cancelled")})
		wantAsked("after Ann's call was answered with an error", false, false)
		w.answered(&jsonrpc.Response{ID: late.id})
		wantAsked("after Ann's call was answered late", false, true)
	})
}

// A call that the server did not get is not one that it works on, and one that was
// sent after it was given up is.
func TestWhoIsAskedAfterACallWasNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for cause, asked := range map[error]bool{subprocess.NotSent(subprocess.ErrStdinClosed): true, errors.New("cut off"): false} {
			for _, early := range []bool{false, true} {
				w := newInterceptor(nil, nil)
				w.inner = refusing{cause}
				ann := &exchange{call: &invoker.Call{}, personal: true, origin: access.Origin{Client: "ann"}, done: early}
				id, _ := jsonrpc.MakeID("1")
				if err := w.Write(withExchange(t.Context(), ann), &jsonrpc.Request{ID: id, Method: "tools/call"}); err == nil {
					t.Error("the write succeeded")
				}
				w.forget(ann)
				bob := &exchange{call: &invoker.Call{}, personal: true, origin: access.Origin{Client: "bob"}}
				id, _ = jsonrpc.MakeID("2")
				w.follow(bob, &jsonrpc.Request{ID: id, Method: "tools/call"}, nil, nil)
				if got := w.only() == bob; got != asked {
					t.Errorf("after %v, given up before %t, Bob is asked %t", cause, early, got)
				}
			}
		}
	})
}

// Cancelled requests are distinguished up to a limit; beyond it, other callers are not
// asked. A single client is always asked.
func TestManyCallsThatWereGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a attribution
		ann, bob := access.Origin{Client: "ann"}, access.Origin{Client: "bob"}
		for i := range maxAbandoned + 1 {
			id, _ := jsonrpc.MakeID(float64(i))
			a.note(ann)
			a.giveUp(id, ann)
		}
		if !a.mayAsk(ann) || len(a.abandoned) > maxAbandoned {
			t.Errorf("the only client is asked %t after %d calls", a.mayAsk(ann), len(a.abandoned))
		}
		if a.note(bob); a.mayAsk(ann) || a.mayAsk(bob) {
			t.Error("somebody is asked")
		}
		if time.Sleep(abandonedWork); !a.mayAsk(ann) || !a.mayAsk(bob) {
			t.Error("nobody is asked a while later")
		}
	})
}
