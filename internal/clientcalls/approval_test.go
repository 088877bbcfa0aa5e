// SPDX-License-Identifier: Apache-2.0

package clientcalls_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/files"
	"github.com/consort-go/consort/converse/history/sqlite"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/invoker"
)

const toAda = `{"to":"ada"}`

// A call waits under one identity until a person answers, runs once when it is made again,
// and is then asked about again, with each store and after a restart.
func TestApproved(t *testing.T) {
	for name, opened := range map[string]func(dir string) (history.Store, error){
		"memory": func(string) (history.Store, error) { return history.NewMemory(), nil },
		"files":  func(dir string) (history.Store, error) { return files.Open(dir, nil) },
		"sqlite": func(dir string) (history.Store, error) { return sqlite.Open(dir+"/history.db", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			w, dir := newWorld(t), t.TempDir()
			reopen := func() {
				if name == "memory" && w.store != nil {
					return
				}
				if w.store != nil {
					if err := w.store.Close(); err != nil {
						t.Fatal(err)
					}
				}
				store, err := opened(dir)
				if err != nil {
					t.Fatal(err)
				}
				w.store = store
			}
			reopen()
			defer func() { _ = w.store.Close() }()
			var seen string
			for range 3 {
				gate := clientcalls.NewGate()
				_, err := w.call(t.Context(), gate, w.store, "ada", toAda, nil)
				id := fails(t, err, invoker.Conflict)
				if seen != "" && id != seen {
					t.Errorf("the call waits as %s and %s", seen, id)
				}
				seen = id
				reopen()
				_, err = w.call(t.Context(), clientcalls.NewGate(), w.store, "ada", ` { "to" : "ada" } `, nil)
				if again := fails(t, err, invoker.Conflict); again != id {
					t.Errorf("after a restart, the call waits as %s instead of %s", again, id)
				}
				before := w.count()
				answer(t, w.store, id, canister.Answer{Verdict: canister.VerdictAllow})
				reopen()
				record, err := w.call(t.Context(), clientcalls.NewGate(), w.store, "ada", toAda, nil)
				if err != nil || w.count() != before+1 || record.By != "dana" {
					t.Fatalf("%v, %d effects, by %q", err, w.count()-before, record.By)
				}
			}
		})
	}
}

// An approval is not that of another client, tool, server or definition, or of other
// arguments.
func TestApprovalsAreBound(t *testing.T) {
	w, gate := newWorld(t), clientcalls.NewGate()
	_, err := w.call(t.Context(), gate, w.store, "ada", toAda, nil)
	first := fails(t, err, invoker.Conflict)
	answer(t, w.store, first, canister.Answer{Verdict: canister.VerdictAllow})
	ids := map[string]bool{first: true}
	other := func(what, client, arguments string) {
		t.Helper()
		_, err := w.call(t.Context(), gate, w.store, client, arguments, nil)
		if id := fails(t, err, invoker.Conflict); ids[id] {
			t.Errorf("%s: the approval is the same: %s", what, id)
		} else {
			ids[id] = true
		}
	}
	other("another client", "ben", toAda)
	other("no client", "", toAda)
	other("other arguments", "ada", `{"to":"ben"}`)
	other("another name", "ada", `{"to":"ada","to":"eve"}`)
	w.address = "there"
	other("another server", "ada", toAda)
	w.address = "here"
	before := w.ensemble
	w.ensemble = ensemble.New("bank", ensemble.LocalSource(w.pay("Pay, and tell nobody.")), nil)
	defer w.ensemble.Close(context.Background())
	other("another definition", "ada", toAda)
	w.ensemble = before
	if w.count() != 0 {
		t.Fatalf("%d effects", w.count())
	}
	if _, err := w.call(t.Context(), gate, w.store, "ada", toAda, nil); err != nil || w.count() != 1 {
		t.Errorf("%v, %d effects", err, w.count())
	}
}

// A log that someone has moved under the identity of another call does not allow that call.
func TestForgedLogs(t *testing.T) {
	w, gate := newWorld(t), clientcalls.NewGate()
	_, err := w.call(t.Context(), gate, w.store, "ada", toAda, nil)
	approved := fails(t, err, invoker.Conflict)
	_, err = w.call(t.Context(), gate, w.store, "ada", `{"to":"eve"}`, nil)
	wanted := fails(t, err, invoker.Conflict)
	answer(t, w.store, approved, canister.Answer{Verdict: canister.VerdictAllow})
	if err := w.store.Delete(t.Context(), wanted, history.AnyLength); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Fork(t.Context(), approved, 5, wanted); err != nil {
		t.Fatal(err)
	}
	_, err = w.call(t.Context(), gate, w.store, "ada", `{"to":"eve"}`, nil)
	fails(t, err, invoker.Denied)
	if w.count() != 0 {
		t.Errorf("%d effects", w.count())
	}
}

// Who may answer, a denial, which answers one call, and arguments that a person changed.
func TestAnswers(t *testing.T) {
	w, gate := newWorld(t), clientcalls.NewGate()
	w.demand.Who = "dana"
	_, err := w.call(t.Context(), gate, w.store, "ada", toAda, w.user(0)) // the user of the client may not
	id := fails(t, err, invoker.Conflict)
	stranger := canister.Answer{Wait: open(t, w.store, id).ID, Verdict: canister.VerdictAllow, By: "eve"}
	if err := waits.Answer(t.Context(), w.store, id, stranger, time.Now()); err == nil {
		t.Error("eve may answer")
	}
	answer(t, w.store, id, canister.Answer{Verdict: canister.VerdictDeny, Reason: "not on a Friday"})
	record, err := w.call(t.Context(), gate, w.store, "ada", toAda, nil)
	fails(t, err, invoker.Denied)
	if !strings.Contains(err.Error(), "not on a Friday.") || record.By != "dana" {
		t.Errorf("%v, by %q", err, record.By)
	}
	_, err = w.call(t.Context(), gate, w.store, "ada", toAda, nil)
	fails(t, err, invoker.Conflict)
	answer(t, w.store, id, canister.Answer{Verdict: canister.VerdictChange, Arguments: []byte(`{"to":"ben"}`)})
	record, err = w.call(t.Context(), gate, w.store, "ada", toAda, nil)
	if err != nil || w.effects["ada ben"] != 1 || w.count() != 1 || string(record.Approved) != `{"to":"ben"}` {
		t.Errorf("%v, %v, %s", err, w.effects, record.Approved)
	}
}

// The user of a client is asked, with the arguments as they will be sent, if nobody else
// has to answer. An answer without a decision denies the call, and no answer lets it wait.
func TestTheUserIsAsked(t *testing.T) {
	for _, test := range []struct {
		reply   *invoker.ElicitResult
		err     error
		code    invoker.Code
		stored  invoker.Code // with a store
		effects int
	}{
		{reply: &invoker.ElicitResult{Action: invoker.Accept, Content: map[string]any{"decision": "allow"}}, effects: 1},
		{reply: &invoker.ElicitResult{Action: invoker.Accept}, code: invoker.Denied, stored: invoker.Denied},
		{reply: &invoker.ElicitResult{Action: invoker.Accept, Content: map[string]any{"decision": true}}, code: invoker.Denied, stored: invoker.Denied},
		{reply: &invoker.ElicitResult{Action: invoker.Decline}, code: invoker.Denied, stored: invoker.Denied},
		{reply: &invoker.ElicitResult{Action: invoker.Dismiss}, code: invoker.Denied, stored: invoker.Conflict},
		{err: errors.New("no"), code: invoker.Denied, stored: invoker.Conflict},
	} {
		for _, stored := range []bool{false, true} {
			w, question := newWorld(t), ""
			store, code := w.store, test.stored
			if !stored {
				store, code = nil, test.code
			}
			record, err := w.call(t.Context(), clientcalls.NewGate(), store, "ada", "{\"to\":\"\u202eeve\",\"to\":\"a\u202eda\"}", func(_ context.Context, q *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
				question = q.Message
				return test.reply, test.err
			})
			switch {
			case code != "":
				fails(t, err, code)
			case err != nil || record.By != "the user of ada":
				t.Errorf("%v, by %q", err, record.By)
			}
			if !strings.Contains(question, "May ada call bank__pay, which may destroy something?") ||
				!strings.Contains(question, `"to": "a\u202eda"`) || strings.Contains(question, "eve") {
				t.Errorf("the question is %s", question)
			}
			if w.count() != test.effects {
				t.Errorf("%+v: %d effects", test, w.count())
			}
		}
	}
}

// Without a person and a store, nothing runs.
func TestNobodyCanBeAsked(t *testing.T) {
	w := newWorld(t)
	_, err := w.call(t.Context(), clientcalls.NewGate(), nil, "ada", toAda, nil)
	fails(t, err, invoker.Denied)
	_, err = w.call(t.Context(), clientcalls.NewGate(), w.store, "ada", `[]`, nil)
	fails(t, err, invoker.InvalidArguments)
	_, err = w.call(t.Context(), clientcalls.NewGate(), w.store, "ada", `{"to":"`+strings.Repeat("x", 300<<10)+`"}`, nil)
	fails(t, err, invoker.Denied)
	broken := history.NewMemory()
	_ = broken.Close()
	_, err = w.call(t.Context(), clientcalls.NewGate(), broken, "ada", toAda, nil)
	fails(t, err, invoker.Unavailable)
	if w.count() != 0 {
		t.Errorf("%d effects", w.count())
	}
}

// A wait that is not answered in time begins anew, and an answer that is not used in time
// does not hold.
func TestExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, gate := newWorld(t), clientcalls.NewGate()
		w.demand.Within = time.Hour
		_, err := w.call(t.Context(), gate, w.store, "ada", toAda, nil)
		id := fails(t, err, invoker.Conflict)
		first := open(t, w.store, id).ID
		time.Sleep(time.Hour)
		late := canister.Answer{Wait: first, Verdict: canister.VerdictAllow, By: "dana"}
		if err := waits.Answer(t.Context(), w.store, id, late, time.Now()); !errors.Is(err, waits.ErrNotOpen) {
			t.Errorf("the answer came too late: %v", err)
		}
		_, err = w.call(t.Context(), gate, w.store, "ada", toAda, nil)
		if fails(t, err, invoker.Conflict); open(t, w.store, id).ID == first {
			t.Error("the wait is the same")
		}
		answer(t, w.store, id, canister.Answer{Verdict: canister.VerdictAllow})
		time.Sleep(time.Hour + time.Second)
		_, err = w.call(t.Context(), gate, w.store, "ada", toAda, nil)
		if fails(t, err, invoker.Conflict); w.count() != 0 {
			t.Errorf("%d effects", w.count())
		}
		_ = w.ensemble.Close(context.Background())
	})
}

// The calls of one client that wait are bounded, and those whose time is over make room.
func TestWaitingCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, gate := newWorld(t), clientcalls.NewGate()
		wants := func(i int, code invoker.Code) {
			t.Helper()
			_, err := w.call(t.Context(), gate, w.store, "ada", fmt.Sprintf(`{"to":"%d"}`, i), nil)
			fails(t, err, code)
		}
		for i := range 100 {
			wants(i, invoker.Conflict)
		}
		wants(100, invoker.Denied)
		wants(1, invoker.Conflict) // it waits already
		_, err := w.call(t.Context(), gate, w.store, "ben", toAda, nil)
		fails(t, err, invoker.Conflict)
		time.Sleep(clientcalls.DefaultWithin)
		wants(101, invoker.Conflict)
		_ = w.ensemble.Close(context.Background())
	})
}

// A conversation whose owner is not known, because it is damaged, does not stop the calls of clients.
func TestDamageOfOthers(t *testing.T) {
	dir := t.TempDir()
	store, err := files.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Append(t.Context(), "other", 0, canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Hello.")}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "other", "info.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = newWorld(t).call(t.Context(), clientcalls.NewGate(), store, "ada", toAda, nil)
	fails(t, err, invoker.Conflict) // it waits
}

// After a death between the intent and the outcome, the next call says that the outcome is
// unknown, and the one after it is asked about again.
func TestDeathInACall(t *testing.T) {
	for operations, effects := range map[int]int{1: 0, 2: 1} { // the intent, the outcome
		w := newWorld(t)
		_, err := w.call(t.Context(), clientcalls.NewGate(), w.store, "ada", toAda, nil)
		id := fails(t, err, invoker.Conflict)
		answer(t, w.store, id, canister.Answer{Verdict: canister.VerdictAllow})
		_, _ = w.call(t.Context(), clientcalls.NewGate(), &mortal{Store: w.store, left: operations, late: operations == 1}, "ada", toAda, nil)
		record, err := w.call(t.Context(), clientcalls.NewGate(), w.store, "ada", toAda, nil)
		fails(t, err, invoker.OutcomeUnknown)
		if record.By != "dana" || w.count() != effects {
			t.Errorf("%d effects, by %q", w.count(), record.By)
		}
		_, err = w.call(t.Context(), clientcalls.NewGate(), w.store, "ada", toAda, nil)
		if fails(t, err, invoker.Conflict); w.count() != effects {
			t.Errorf("%d effects", w.count())
		}
	}
}

// While a process makes a call, an equal one of another process with the same store does not make its outcome
// unknown. If the process has died, the outcome is unknown when no call can be under way any longer.
func TestCallOfAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, dies := range []bool{false, true} {
			w := newWorld(t)
			w.others = 11 * time.Minute
			_, err := w.call(t.Context(), clientcalls.NewGate(), w.store, "ada", toAda, nil)
			id := fails(t, err, invoker.Conflict)
			answer(t, w.store, id, canister.Answer{Verdict: canister.VerdictAllow})
			first, ended := w.store, make(chan error, 1)
			if dies {
				first = &mortal{Store: w.store, left: 2}
			} else {
				w.goesOn = make(chan struct{})
			}
			go func() {
				_, err := w.call(t.Context(), clientcalls.NewGate(), first, "ada", toAda, nil)
				ended <- err
			}()
			synctest.Wait()
			_, err = w.call(t.Context(), clientcalls.NewGate(), w.store, "ada", toAda, nil)
			if fails(t, err, invoker.Conflict); w.count() > 1 {
				t.Errorf("%d effects", w.count())
			}
			if !dies {
				close(w.goesOn)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if dies {
				time.Sleep(w.others)
				_, err = w.call(t.Context(), clientcalls.NewGate(), w.store, "ada", toAda, nil)
				fails(t, err, invoker.OutcomeUnknown)
			}
		}
	})
}

// What an approval stores looks like one to those who list conversations.
func TestIsApproval(t *testing.T) {
	w := newWorld(t)
	process := &mortal{Store: w.store, left: 1, late: true} // it dies before it sets the owner
	_, _ = w.call(t.Context(), clientcalls.NewGate(), process, "ada", toAda, nil)
	for range 2 {
		for info, err := range w.store.List(t.Context(), history.Filter{}) {
			if err != nil || !clientcalls.IsApproval(info) {
				t.Errorf("%+v, %v", info, err)
			}
		}
		_, err := w.call(t.Context(), clientcalls.NewGate(), w.store, "ada", toAda, nil)
		fails(t, err, invoker.Conflict)
	}
	for _, id := range []string{"ask-me", "20261121-k3f9ab2c"} {
		if clientcalls.IsApproval(history.Info{ID: id}) {
			t.Errorf("%s is taken for an approval", id)
		}
	}
}
