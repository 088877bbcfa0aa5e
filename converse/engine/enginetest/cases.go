// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/internal/testing/suite"
	"github.com/consort-go/consort/invoker"
)

// engineCases are the rules that apply to every engine.
var engineCases = []engineCase{
	{"Send/answered", "a message starts a conversation, after the instructions, and is answered", sendAnswered},
	{"Send/log-first", "when Send returns, the message is in the log and will be answered, even if the process dies then", sendLogFirst},
	{"Send/again", "a message that is sent again, also concurrently or to another process, is stored once", sendAgain},
	{"Send/queued", "messages for a conversation with a running turn wait, enter in order, and none is lost", sendQueued},
	{"Send/waiting", "a message to a conversation that waits for an answer is refused with ErrWaiting", sendWaiting},
	{"Send/bad", "an invalid message is an error, and nothing is written to the log", sendBad},
	{"Send/side-by-side", "many conversations run concurrently without delaying each other", sendSideBySide},
	{"Fail/retried", "a turn that fails temporarily is retried, and the failure leaves nothing in the log", failRetried},
	{"Fail/ends", "a turn that cannot succeed ends with an error that Watch reports, and the next message is answered", failEnds},
	{"Fail/calls", "a message behind calls that no turn can complete is refused with ErrBusy, and does not wait", failCalls},
	{"Fail/panic", "a model that panics fails only its conversation", failPanic},
	{"Answer/allow", "a call that waits for an approval is made once after the approval; repeating the same answer is not an error", answerAllow},
	{"Answer/deny", "a denied call is not made, and the turn continues", answerDeny},
	{"Answer/nobody", "an answer without a matching wait is ErrNotOpen", answerNobody},
	{"Answer/beside", "an answer does not affect other calls that run at the same time as the waiting one", answerBeside},
	{"Answer/restart", "a wait outlives its process: an answer is used if it is given to the next process, or to the log while there is no process", answerRestart},
	{"Deadline/passes", "a wait without an answer ends at its deadline, and the turn continues by itself", deadlinePasses},
	{"Deadline/restart", "the same if the process died before the deadline", deadlineRestart},
	{"Cancel/exchange", "a cancelled exchange leaves no text; it is not continued, not even after a restart, and the next message is answered", cancelExchange},
	{"Cancel/call", "a cancelled call ends, is answered as interrupted, and its turn is not continued", cancelCall},
	{"Cancel/waiting", "a waiting conversation can be cancelled, and accepts messages afterwards", cancelWaiting},
	{"Cancel/nothing", "Cancel changes nothing if no turn runs or the conversation does not exist", cancelNothing},
	{"Watch/order", "every canister is delivered once, in order, with its position, starting at any position", watchOrder},
	{"Watch/before", "a conversation that does not exist yet can be watched", watchBefore},
	{"Watch/late", "a watcher that starts after a turn has ended receives its end", watchLate},
	{"Watch/deltas", "the text of a message is delivered while it is generated, in order, before the message", watchDeltas},
	{"Watch/attempts", "the text of a failed attempt can be distinguished from the text of the next attempt", watchAttempts},
	{"Watch/deleted", "watchers of a deleted conversation, running or idle, are notified, and nothing recreates it", watchDeleted},
	{"Watch/superseded", "a watcher that waits for the end of a turn is notified if another process continues the conversation first", watchSuperseded},
	{"Watch/ends", "Watch ends with its context, with its loop, and with the engine", watchEnds},
	{"Close/finishes", "Close lets a running turn continue, accepts no messages, and can be called again", closeFinishes},
	{"Close/suspends", "turns that still run when the context of Close ends are stopped, and the next process continues them", closeSuspends},
	{"Crash/exchange", "an exchange that the death of a process interrupted is repeated, and its answer is stored once", crashExchange},
	{"Crash/call", "a call that the death of a process interrupted is not repeated unless its tool allows it, and has a result", crashCall},
	{"Crash/many", "many conversations that the death of a process interrupted all end, and no effect happens twice", crashMany},
	{"Two/split", "two engines on one store, each with its own conversations, answer all of them", twoSplit},
	{"Two/one", "two engines that receive messages of one conversation answer all of them, once each, and repeat no effect", twoOne},
}

const talk = "talk"

func sendAnswered(s *engineSubject) {
	s.send(talk, "m1", "say hello there")
	s.answered(talk, "m1")
	s.send(talk, "m2", "call effect one")
	s.answered(talk, "m2")
	list := s.log(talk)
	if len(list) == 0 || list[0].Kind() != canister.KindSupervisor {
		s.Errorf("the log begins with %v, want the instructions", describe(list))
	}
	s.said(talk, "say hello there", "hello there", "call effect one", "did one", "done")
	s.effects("one", 1)
}

func sendLogFirst(s *engineSubject) {
	for i := range 5 {
		conversation := fmt.Sprint(talk, i)
		s.send(conversation, "m1", "say hello")
		if got := wordsOf(s.log(conversation)); len(got) == 0 || got[0] != "say hello" {
			s.Fatalf("Send has returned, and the log contains %q", got)
		}
		s.restart()
		s.answered(conversation, "m1")
		s.said(conversation, "say hello", "hello")
	}
}

func sendAgain(s *engineSubject) {
	again := func() {
		var sent sync.WaitGroup
		for range 8 {
			sent.Go(func() {
				if err := s.process.Engine.Send(s.context(), talk, message("m1", "say hello")); err != nil {
					s.Errorf("Send: %v", err)
				}
			})
		}
		sent.Wait()
		s.answered(talk, "m1")
	}
	again()
	s.send(talk, "m2", "say more")
	s.answered(talk, "m2")
	again()
	s.restart()
	again()
	s.said(talk, "say hello", "hello", "say more", "more")
}

func sendQueued(s *engineSubject) {
	s.send(talk, "m0", "call slow first")
	s.reached("first")
	want := []string{"call slow first", "did first", "done"}
	var sent sync.WaitGroup
	for i := 1; i <= 3; i++ {
		text := fmt.Sprintf("say word %d", i)
		want = append(want, text, text[len("say "):])
		waits := newWaiter(s.context())
		sent.Go(func() {
			if err := s.process.Engine.Send(waits, talk, message(fmt.Sprint("m", i), text)); err != nil {
				s.Errorf("Send: %v", err)
			}
		})
		if !s.queued(waits) {
			break
		}
	}
	short, cancel := context.WithCancel(s.context())
	waits := newWaiter(short)
	sent.Go(func() {
		if err := s.process.Engine.Send(waits, talk, message("m9", "say never")); !errors.Is(err, context.Canceled) {
			s.Errorf("Send with a context that ends before the turn is %v, want its error", err)
		}
	})
	s.queued(waits)
	cancel()
	s.stage.open("first")
	sent.Wait()
	s.answered(talk, "m3")
	s.said(talk, want...)
	s.effects("first", 1)
}

// waits makes a conversation wait for an approval, and returns the ID of the
// wait.
func (s *engineSubject) waits(conversation, id, what string) string {
	s.Helper()
	s.send(conversation, id, "call approved "+what)
	ended, _ := s.ended(conversation, id, true)
	if ended.Reason != converse.ReasonWaiting || len(ended.Waits) != 1 {
		s.Fatalf("the turn ended with %+v, want a wait; the log has %s", ended, describe(s.log(conversation)))
	}
	s.effects(what, 0)
	return ended.Waits[0]
}

func answerTo(wait string, verdict canister.Verdict) canister.Answer {
	return canister.Answer{Head: canister.Head{ID: "a-" + wait}, Wait: wait, Verdict: verdict, By: "ada"}
}

func sendWaiting(s *engineSubject) {
	wait := s.waits(talk, "m1", "one")
	err := s.soon("Send to a conversation that waits", func() error {
		return s.process.Engine.Send(s.context(), talk, message("m2", "say hello"))
	})
	if !errors.Is(err, engine.ErrWaiting) {
		s.Errorf("Send to a conversation that waits is %v, want ErrWaiting", err)
	}
	if err := s.process.Engine.Answer(s.context(), talk, answerTo(wait, canister.VerdictAllow)); err != nil {
		s.Fatalf("Answer: %v", err)
	}
	s.answered(talk, "m1")
	s.send(talk, "m2", "say hello")
	s.answered(talk, "m2")
	s.said(talk, "call approved one", "did one", "done", "say hello", "hello")
}

func sendBad(s *engineSubject) {
	if err := s.process.Engine.Send(s.context(), talk, canister.User{Head: canister.Head{ID: "m1"}}); err == nil {
		s.Error("a message without content was sent")
	}
	for _, id := range []string{"", "a\nb", strings.Repeat("a", 2000)} {
		if err := s.process.Engine.Send(s.context(), id, message("m1", "say hello")); err == nil {
			s.Errorf("a message was sent to the conversation %q", suite.Quote(id))
		}
	}
	s.said(talk)
	s.send(talk, "m1", "say hello")
	s.answered(talk, "m1")
	for _, c := range s.log(talk) {
		if c.Kind() == canister.KindAssistant {
			if err := s.process.Engine.Send(s.context(), talk, message(c.Header().ID, "say bye")); err == nil {
				s.Error("a message was sent with the identity of the model's")
			}
		}
	}
	s.said(talk, "say hello", "hello")
}

func sendSideBySide(s *engineSubject) {
	const many = 20
	for i := range many {
		s.send(fmt.Sprint(talk, i), "m1", fmt.Sprint("hold word ", i))
	}
	for i := range many {
		s.reached(fmt.Sprint("word ", i))
	}
	for i := many - 1; i >= 0; i-- {
		s.stage.open(fmt.Sprint("word ", i))
		s.answered(fmt.Sprint(talk, i), "m1")
	}
}

func failRetried(s *engineSubject) {
	s.send(talk, "m1", "fail 2 say at last it works")
	s.answered(talk, "m1")
	s.said(talk, "fail 2 say at last it works", "at last it works")
}

func failEnds(s *engineSubject) {
	s.send(talk, "m1", "refuse")
	ended, _ := s.ended(talk, "m1", false)
	if ended.Error == "" || ended.Reason != "" {
		s.Errorf("the turn ended with %+v, want an error", ended)
	}
	s.send(talk, "m2", "say hello")
	s.answered(talk, "m2")
	s.said(talk, "refuse", "say hello", "hello")
}

func failCalls(s *engineSubject) {
	if err := s.Store.Append(s.context(), talk, 0, message("m1", "call effect one"),
		canister.Result{Head: canister.Head{ID: "r"}, Invocation: "none"}, // no history may have it
		canister.Assistant{Head: canister.Head{ID: "a"}, Finish: canister.FinishInvocations},
		canister.Invocation{Head: canister.Head{ID: "i"}, Message: "a", CallID: "c", Name: "stage__effect", Arguments: `{"what":"one"}`}); err != nil {
		s.Fatalf("Append: %v", err)
	}
	if err := s.process.Engine.Send(s.context(), talk, message("m2", "say hello")); !errors.Is(err, engine.ErrBusy) || errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("Send returned %v, want ErrBusy", err)
	}
	s.effects("one", 0)
}

func failPanic(s *engineSubject) {
	s.send("bad", "m1", "panic")
	s.send(talk, "m1", "say hello")
	s.answered(talk, "m1")
	if ended, _ := s.ended("bad", "m1", false); ended.Error == "" {
		s.Errorf("the turn ended with %+v, want an error", ended)
	}
	s.send("bad", "m2", "say hello")
	s.answered("bad", "m2")
}

func answerAllow(s *engineSubject) {
	wait := s.waits(talk, "m1", "one")
	for range 2 {
		if err := s.process.Engine.Answer(s.context(), talk, answerTo(wait, canister.VerdictAllow)); err != nil {
			s.Fatalf("Answer: %v", err)
		}
	}
	s.answered(talk, "m1")
	s.effects("one", 1)
	s.said(talk, "call approved one", "did one", "done")
}

func answerDeny(s *engineSubject) {
	wait := s.waits(talk, "m1", "one")
	if err := s.process.Engine.Answer(s.context(), talk, answerTo(wait, canister.VerdictDeny)); err != nil {
		s.Fatalf("Answer: %v", err)
	}
	s.answered(talk, "m1")
	s.effects("one", 0)
}

func answerNobody(s *engineSubject) {
	nobody := func(conversation, wait string) {
		s.Helper()
		err := s.process.Engine.Answer(s.context(), conversation, canister.Answer{Wait: wait, Verdict: canister.VerdictAllow, By: "ada"})
		if !errors.Is(err, waits.ErrNotOpen) {
			s.Errorf("Answer without a matching wait is %v, want ErrNotOpen", err)
		}
	}
	nobody("none", "w1")
	wait := s.waits(talk, "m1", "one")
	nobody(talk, "w1")
	if err := s.process.Engine.Answer(s.context(), talk, answerTo(wait, canister.VerdictDeny)); err != nil {
		s.Fatalf("Answer: %v", err)
	}
	s.answered(talk, "m1")
	nobody(talk, wait)
}

func answerBeside(s *engineSubject) {
	s.send(talk, "m1", "call approved one slow two effect three")
	s.reached("two")
	wait := s.waitOf(talk)
	err := s.soon("Answer while another call runs", func() error {
		return s.process.Engine.Answer(s.context(), talk, answerTo(wait, canister.VerdictAllow))
	})
	if err != nil {
		s.Fatalf("Answer: %v", err)
	}
	s.stage.open("two")
	s.answered(talk, "m1")
	for _, what := range []string{"one", "two", "three"} {
		s.effects(what, 1)
		if !slices.Contains(wordsOf(s.log(talk)), "did "+what) {
			s.Errorf("the log does not have the result of %s: %s", what, describe(s.log(talk)))
		}
	}
}

func answerRestart(s *engineSubject) {
	first, second := s.waits(talk, "m1", "one"), s.waits("other", "m1", "two")
	s.process.Kill()
	if err := waits.Answer(s.context(), s.Store, talk, answerTo(first, canister.VerdictAllow), time.Now()); err != nil {
		s.Fatalf("waits.Answer: %v", err)
	}
	s.process = s.start()
	s.answered(talk, "m1")
	if err := s.process.Engine.Answer(s.context(), "other", answerTo(second, canister.VerdictAllow)); err != nil {
		s.Fatalf("Answer: %v", err)
	}
	s.answered("other", "m1")
	s.effects("one", 1)
	s.effects("two", 1)
}

// waitOf returns the ID of the first wait of a conversation, when it is in the log.
func (s *engineSubject) waitOf(conversation string) string {
	s.Helper()
	for event := range s.watch(s.process.Engine, conversation, 0) {
		if added, ok := event.(engine.Added); ok && added.Canister.Kind() == canister.KindWait {
			return added.Canister.Header().ID
		}
	}
	s.FailNow()
	return ""
}

func deadlinePasses(s *engineSubject) {
	s.send(talk, "m1", "call approved hurried")
	s.waitOf(talk)
	s.answered(talk, "m1")
	s.effects("hurried", 0)
}

func deadlineRestart(s *engineSubject) {
	s.send(talk, "m1", "call approved hurried")
	s.waitOf(talk)
	s.restart()
	s.answered(talk, "m1")
	s.effects("hurried", 0)
}

// cancel cancels a turn, which must end.
func (s *engineSubject) cancel(conversation string) {
	s.Helper()
	if err := s.soon("Cancel", func() error { return s.process.Engine.Cancel(s.context(), conversation) }); err != nil {
		s.Fatalf("Cancel of %s: %v", conversation, err)
	}
}

// cancelled checks that watchers see that a turn was cancelled.
func (s *engineSubject) cancelled(conversation, turn string) {
	s.Helper()
	if ended, _ := s.ended(conversation, turn, false); ended.Reason != converse.ReasonCancelled {
		s.Errorf("the turn ended with %+v, want it cancelled", ended)
	}
}

// stays checks that nothing more happens in a conversation, also in the next process.
func (s *engineSubject) stays(conversation string) {
	s.Helper()
	length, asked := len(s.log(conversation)), s.stage.asked()
	s.restart()
	s.send("beside", fmt.Sprint("m", asked), "say hello") // something that comes later
	s.answered("beside", fmt.Sprint("m", asked))
	if now := len(s.log(conversation)); now != length || s.stage.asked() != asked+1 {
		s.Errorf("after the restart the log has %d canisters and not %d, and the model was asked %d times: %s", now, length, s.stage.asked()-asked, describe(s.log(conversation)))
	}
}

func cancelExchange(s *engineSubject) {
	s.send(talk, "m1", "hold what was never said")
	s.reached("what was never said")
	s.cancel(talk)
	s.cancelled(talk, "m1")
	s.stays(talk)
	if said := strings.Join(wordsOf(s.log(talk)), " "); strings.Count(said, "what was never said") != 1 {
		s.Errorf("the log contains %q, which was cancelled", said)
	}
	s.send(talk, "m2", "say hello")
	s.answered(talk, "m2")
}

func cancelCall(s *engineSubject) {
	s.send(talk, "m1", "call slow one")
	s.reached("one")
	s.cancel(talk)
	interrupted := slices.ContainsFunc(s.log(talk), func(c canister.Canister) bool {
		result, ok := c.(canister.Result)
		return ok && (result.Code == string(invoker.Canceled) || result.Code == string(invoker.OutcomeUnknown))
	})
	if !interrupted || len(canister.Pending(s.log(talk))) > 0 {
		s.Errorf("the call was not answered as interrupted: %s", describe(s.log(talk)))
	}
	s.stays(talk)
	s.effects("one", 1)
	s.send(talk, "m2", "say hello")
	s.answered(talk, "m2")
}

func cancelWaiting(s *engineSubject) {
	s.waits(talk, "m1", "one")
	s.cancel(talk)
	s.cancelled(talk, "m1")
	s.stays(talk)
	s.send(talk, "m2", "say hello")
	s.answered(talk, "m2")
	s.effects("one", 0)
}

func cancelNothing(s *engineSubject) {
	s.cancel("none")
	s.said("none")
	s.send(talk, "m1", "say hello")
	s.answered(talk, "m1")
	length := len(s.log(talk))
	s.cancel(talk)
	s.cancel(talk)
	if now := len(s.log(talk)); now != length {
		s.Errorf("the log has %d canisters and had %d, although there was nothing to cancel", now, length)
	}
}
