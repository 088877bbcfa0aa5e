// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/invoker"
)

func watchOrder(s *engineSubject) {
	s.send(talk, "m1", "call effect one effect two")
	s.answered(talk, "m1")
	s.send(talk, "m2", "say hello")
	_, events := s.ended(talk, "m2", false)
	var got []canister.Canister
	for _, event := range events {
		if added, ok := event.(engine.Added); ok {
			got = append(got, added.Canister)
			if added.Position != len(got) {
				s.Fatalf("canister %d is delivered with the position %d", len(got), added.Position)
			}
		}
	}
	list := s.log(talk)
	sameIDs(s, got, list)
	for after := range list {
		var rest []canister.Canister
		for event := range s.watch(s.process.Engine, talk, after) {
			if added, ok := event.(engine.Added); ok {
				rest = append(rest, added.Canister)
			}
			if len(rest) == len(list)-after {
				break
			}
		}
		sameIDs(s, rest, list[after:])
	}
}

// sameIDs checks that canisters are the same.
func sameIDs(s *engineSubject, got, want []canister.Canister) {
	s.Helper()
	same := func(a, b canister.Canister) bool { return a.Header().ID == b.Header().ID && a.Kind() == b.Kind() }
	if !slices.EqualFunc(got, want, same) {
		s.Errorf("Watch yields %s, want %s", describe(got), describe(want))
	}
}

func watchBefore(s *engineSubject) {
	told := make(chan engine.Event, 100)
	ctx, cancel := context.WithCancel(s.context())
	defer cancel()
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	begun := make(chan struct{})
	watching.Go(func() {
		events := s.process.Engine.Watch(ctx, talk, 0)
		close(begun)
		for event := range events {
			select {
			case told <- event:
			default:
			}
		}
	})
	<-begun
	s.send(talk, "m1", "say hello")
	s.answered(talk, "m1")
	for {
		select {
		case event := <-told:
			if ended, ok := event.(engine.Ended); ok && ended.Turn == "m1" {
				return
			}
		case <-ctx.Done():
			s.Fatal("a watcher that started before the conversation did not receive the end of its first turn")
		}
	}
}

func watchLate(s *engineSubject) {
	s.send(talk, "m1", "say hello")
	s.answered(talk, "m1")
	s.waits("other", "m1", "one")
	s.restart()
	s.answered(talk, "m1")
	if ended, _ := s.ended("other", "m1", true); ended.Reason != converse.ReasonWaiting || len(ended.Waits) != 1 {
		s.Errorf("a watcher that starts while the conversation waits receives %+v", ended)
	}
}

func watchDeltas(s *engineSubject) {
	const words = "what is said in many small pieces, one after another"
	var text strings.Builder
	index, done := -1, false
	for event := range s.watchSend("hold " + words) {
		switch e := event.(type) {
		case engine.Delta:
			if done || e.Turn != "m1" || e.Ended != nil || e.Event == nil || e.Index <= index {
				s.Fatalf("a delta is %+v after number %d of m1; the message is complete: %v", e, index, done)
			}
			index = e.Index
			if text.WriteString(e.Text()); text.String() == words {
				s.stage.open(words)
			}
		case engine.Added:
			done = e.Canister.Kind() == canister.KindAssistant
			if done && text.String() != words {
				s.Errorf("before the message came only %q", text.String())
			}
		case engine.Ended:
			if done {
				return
			}
		}
	}
}

func watchAttempts(s *engineSubject) {
	const words = "what fails and is said again from the beginning"
	texts := map[int64]string{}
	var last int64
	for event := range s.watchSend("fail 2 hold " + words) { // deltas are not delivered after their message
		switch e := event.(type) {
		case engine.Added: // the texts alone matter
		case engine.Delta:
			if e.Text() == "" {
				continue
			}
			if e.Attempt < last {
				s.Errorf("a delta of attempt %d comes after one of attempt %d", e.Attempt, last)
			}
			last = e.Attempt
			texts[last] += e.Text()
			switch {
			case !strings.HasPrefix(words, texts[last]):
				s.Fatalf("the text of attempt %d is %q, want the beginning of %q", last, texts[last], words)
			case texts[last] == words:
				s.stage.open(words)
			}
		case engine.Ended:
			if e.Turn == "m1" && e.Again.IsZero() {
				if len(texts) < 2 {
					s.Errorf("the texts of the attempts are %v, want several", texts)
				}
				return
			}
		}
	}
}

// watchSend sends the message m1 to a conversation that is already being watched, and
// yields the events from there on.
func (s *engineSubject) watchSend(text string) iter.Seq[engine.Event] {
	return func(yield func(engine.Event) bool) {
		s.send(talk, "m0", "say hello")
		sent := false
		for event := range s.watch(s.process.Engine, talk, 0) {
			ended, is := event.(engine.Ended)
			switch {
			case sent && !yield(event):
				return
			case !sent && is && ended.Turn == "m0":
				sent = true
				s.send(talk, "m1", text)
			}
		}
	}
}

func watchDeleted(s *engineSubject) {
	s.send("idle", "m1", "say hello")
	s.answered("idle", "m1")
	s.send(talk, "m1", "call slow one")
	s.reached("one")
	for _, conversation := range []string{"idle", talk} {
		deleted := false
		err := s.soon("Watch of a conversation that is deleted", func() error {
			for _, err := range s.process.Engine.Watch(s.context(), conversation, 0) {
				if err != nil {
					return err
				}
				if !deleted {
					deleted = true
					if err := s.Store.Delete(s.context(), conversation, history.AnyLength); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if !errors.Is(err, history.ErrNotFound) {
			s.Errorf("Watch of the conversation %s, which was deleted, ends with %v, want ErrNotFound", conversation, err)
		}
		err = s.soon("Watch from a position that no longer exists", func() error {
			for _, err := range s.process.Engine.Watch(s.context(), conversation, 1) {
				return err
			}
			return nil
		})
		if !errors.Is(err, history.ErrNotFound) {
			s.Errorf("Watch of the conversation %s, from a former position, is %v, want ErrNotFound", conversation, err)
		}
	}
	s.stage.open("one")
	s.stays(talk)
	s.said(talk)
	s.said("idle")
}

func watchSuperseded(s *engineSubject) {
	s.send(talk, "m1", "call slow one")
	s.reached("one")
	begun := false
	for event := range s.watch(s.process.Engine, talk, 0) {
		if ended, ok := event.(engine.Ended); ok && ended.Turn == "m1" {
			if ended.Superseded != "m2" || ended.Reason != "" || ended.Error != "" {
				s.Errorf("the turn ended with %+v, want it superseded by m2", ended)
			}
			break
		}
		if !begun {
			begun = true
			s.goOn(talk, "m2", "say hello")
		}
	}
	s.stage.open("one")
	s.answered(talk, "m2")
	if ended, _ := s.ended(talk, "m1", false); ended.Superseded != "m2" {
		s.Errorf("a late watcher receives %+v, want m1 superseded by m2", ended)
	}
	s.effects("one", 1)
}

// goOn continues a conversation like another process that gives up the open calls.
func (s *engineSubject) goOn(conversation, id, text string) {
	s.Helper()
	list := s.log(conversation)
	var added []canister.Canister
	for _, invocation := range canister.Pending(list) {
		added = append(added, canister.Result{
			Head: canister.Head{ID: "r-" + invocation.ID, Time: time.Now()}, Invocation: invocation.ID,
			Code: string(invoker.OutcomeUnknown), Content: canister.Texts("The conversation went on."),
		})
	}
	said := message(id, text)
	said.Time = time.Now()
	if err := s.Store.Append(s.context(), conversation, len(list), append(added, said)...); err != nil {
		s.Fatalf("Append: %v", err)
	}
}

func watchEnds(s *engineSubject) {
	s.send(talk, "m1", "say hello")
	s.answered(talk, "m1")
	for range s.watch(s.process.Engine, talk, 0) {
		break
	}
	ends := func(what string, end func(cancel context.CancelFunc), want error) {
		ctx, cancel := context.WithCancel(s.context())
		defer cancel()
		err := s.soon("Watch after "+what, func() error {
			for _, err := range s.process.Engine.Watch(ctx, talk, 0) {
				if err != nil {
					return err
				}
				end(cancel)
			}
			return nil
		})
		if !errors.Is(err, want) {
			s.Errorf("after %s Watch ends with %v, want %v", what, err, want)
		}
	}
	ends("the end of its context", func(cancel context.CancelFunc) { cancel() }, context.Canceled)
	ends("the end of the engine", func(context.CancelFunc) {
		if err := s.process.Engine.Close(s.context()); err != nil {
			s.Errorf("Close: %v", err)
		}
	}, engine.ErrClosed)
}

func closeFinishes(s *engineSubject) {
	s.send(talk, "m1", "hold hello")
	s.reached("hello")
	closed := make(chan error, 1)
	go func() { closed <- s.process.Engine.Close(s.context()) }()
	for start := time.Now(); ; {
		err := s.process.Engine.Send(s.context(), "other", message(fmt.Sprint(time.Since(start)), "say hello"))
		if errors.Is(err, engine.ErrClosed) {
			break
		}
		if time.Since(start) > s.Patience {
			s.Fatalf("Send after Close is %v, want ErrClosed", err)
		}
	}
	s.stage.open("hello")
	if err := s.soon("Close", func() error { return <-closed }); err != nil {
		s.Errorf("Close: %v", err)
	}
	if err := s.process.Engine.Close(s.context()); err != nil {
		s.Errorf("Close once more: %v", err)
	}
	for name, err := range map[string]error{
		"Answer": s.process.Engine.Answer(s.context(), talk, answerTo("w1", canister.VerdictAllow)),
		"Cancel": s.process.Engine.Cancel(s.context(), talk),
	} {
		if !errors.Is(err, engine.ErrClosed) {
			s.Errorf("%s after Close is %v, want ErrClosed", name, err)
		}
	}
	s.process = s.start()
	s.answered(talk, "m1")
	s.said(talk, "hold hello", "hello")
}

func closeSuspends(s *engineSubject) {
	s.send(talk, "m1", "hold hello")
	s.send("other", "m1", "call slow one")
	s.reached("hello")
	s.reached("one")
	ctx, cancel := context.WithCancel(s.context())
	cancel()
	if err := s.soon("Close", func() error { return s.process.Engine.Close(ctx) }); err != nil {
		s.Errorf("Close with a context that has ended: %v", err)
	}
	s.stage.open("hello")
	s.process = s.start()
	s.answered(talk, "m1")
	s.answered("other", "m1")
	s.said(talk, "hold hello", "hello")
	s.effects("one", 1)
}

func crashExchange(s *engineSubject) {
	s.send(talk, "m1", "hold hello")
	s.reached("hello")
	s.process.Kill()
	s.stage.open("hello")
	s.process = s.start()
	s.answered(talk, "m1")
	s.said(talk, "hold hello", "hello")
}

func crashCall(s *engineSubject) {
	s.send(talk, "m1", "call slow one effect two")
	s.reached("one")
	s.restart()
	s.answered(talk, "m1")
	s.effects("one", 1)
	if got := s.stage.count("two"); got > 1 {
		s.Errorf("the effect of the other call happened %d times", got)
	}
	if pending := canister.Pending(s.log(talk)); len(pending) > 0 {
		s.Errorf("the call has no result: %s", describe(s.log(talk)))
	}
}

func crashMany(s *engineSubject) {
	const many = 30
	name := func(i int) string { return fmt.Sprint("talk-", i) }
	for i := range many {
		text := fmt.Sprintf("call effect e%d effect f%d", i, i)
		if i%3 == 0 {
			text = fmt.Sprintf("call slow e%d effect f%d", i, i)
		}
		s.send(name(i), "m1", text)
	}
	s.reached(fmt.Sprint("e", many-many%3-3))
	s.process.Kill()
	for i := range many {
		s.stage.open(fmt.Sprint("e", i)) // calls that were not begun
	}
	s.process = s.start()
	for i := range many {
		s.answered(name(i), "m1")
		for _, what := range []string{fmt.Sprint("e", i), fmt.Sprint("f", i)} {
			if got := s.stage.count(what); got > 1 {
				s.Errorf("the effect %s happened %d times", what, got)
			}
		}
		if said := wordsOf(s.log(name(i))); said[len(said)-1] != "done" {
			s.Errorf("the log of %s contains %q", name(i), said)
		}
	}
}

func twoSplit(s *engineSubject) {
	both := []Process{s.process, s.start()}
	for i := range 10 {
		s.process = both[i%2]
		s.send(fmt.Sprint("talk-", i), "m1", fmt.Sprint("call effect e", i))
	}
	for i := range 10 {
		s.process = both[(i+1)%2] // watchers and workers may be different engines
		s.answered(fmt.Sprint("talk-", i), "m1")
		// A starting engine may give a call up that the other one is about to make.
		s.reached(fmt.Sprint("e", i))
		s.effects(fmt.Sprint("e", i), 1)
	}
}

func twoOne(s *engineSubject) {
	both := []Process{s.process, s.start()}
	var sent sync.WaitGroup
	for i := range 2 {
		sent.Go(func() {
			for n := range 3 {
				for _, e := range []Process{both[i], both[1-i]} { // the same to both
					m := message(fmt.Sprintf("m%d-%d", i, n), fmt.Sprintf("call effect e%d-%d", i, n))
					if err := e.Engine.Send(s.context(), talk, m); err != nil {
						s.Errorf("Send: %v", err)
					}
				}
			}
		})
	}
	sent.Wait()
	list := s.log(talk)
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Kind() == canister.KindUser {
			s.answered(talk, list[i].Header().ID)
			break
		}
	}
	said := wordsOf(s.log(talk))
	for i := range 2 {
		for n := range 3 {
			if text := fmt.Sprintf("call effect e%d-%d", i, n); len(slices.DeleteFunc(slices.Clone(said), func(t string) bool { return t != text })) != 1 {
				s.Errorf("the log does not contain %q exactly once: %q", text, said)
			}
			if got := s.stage.count(fmt.Sprintf("e%d-%d", i, n)); got > 1 {
				s.Errorf("the effect e%d-%d happened %d times", i, n, got)
			}
		}
	}
}
