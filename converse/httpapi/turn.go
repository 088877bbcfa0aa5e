// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi/internal/openwaits"
	"github.com/consort-go/consort/converse/internal/clienttools"
	"github.com/consort-go/consort/converse/internal/compaction"
	"github.com/consort-go/consort/internal/turncancel"
)

// turn is a turn of a conversation, or the part after an answer, as one request
// follows it.
type turn struct {
	h            *handler
	conversation string
	id           string // of the message that the turn began with
	after        int    // position in the log where the part that the request follows begins

	earlier   []canister.Canister // of the turn, before that position
	canisters []canister.Canister // of the turn, after it
	waits     []openwaits.Wait    // that the turn waits for, except timers
	attempt   int64
	sent      bool            // this request has put its message or answer into the log
	isOver    bool            // the client has received the turn up to its end or its next wait
	repeated  bool            // the log had the message of the request already
	stale     int64           // the number of the last event before the request sent its message again, or its last answer
	key       string          // of the request, if its message may not be sent twice; see openAI.start
	returned  map[string]bool // invocations whose results the request brought
}

// sink receives what happens in a turn. An error ends the turn for the request; nil functions
// are not called.
type sink struct {
	text  func(piece string) error                      // of the message that is being written
	again func() error                                  // the message is written again, from its beginning
	added func(position int, c canister.Canister) error // supersedes the pieces
	idle  *heartbeat
}

// errRewritten says that the text that was sent is wrong: the model has written the message
// differently when it was asked again. No text is sent after a piece that was lost: see [gaps].
var errRewritten = failure(http.StatusBadGateway, "rewritten",
	"The answer begins differently from what was sent: the model was asked again.",
	"Read the answer with GET /api/conversations/{id}/history.")

// errFailed says that the turn failed; the log of the server has the reason.
var errFailed = failure(http.StatusBadGateway, "turn_failed", "The model failed, and what was said so far is stored.", "Send another message to try again.")

// errSuperseded says that another program continued the conversation.
var errSuperseded = failure(http.StatusConflict, "superseded",
	"Another program continued the conversation before the message was answered.", "Read the conversation.")

// follow passes what happens to a sink until the turn is over or waits for an answer.
func (t *turn) follow(ctx context.Context, to sink) (engine.Ended, error) {
	var result engine.Ended
	var failed error
	t.h.followed.Add(t.conversation, 1)
	defer t.h.followed.Add(t.conversation, -1)
	err := t.h.feed.read(ctx, t.conversation, Cursor{Position: t.after}, to.idle, func(event Event) bool {
		isOver := false
		switch e := event.Event.(type) {
		case engine.Added:
			failed = t.add(e, to)
		case engine.Delta:
			failed = t.delta(e, to)
		case engine.Ended:
			if (e.Error != "" || e.Attempt > 0) && event.number <= t.stale {
				return true // that failure, or the budget, is why the message was sent again
			}
			isOver, failed = t.end(ctx, e)
			result = e
		}
		return !isOver && failed == nil
	})
	err = cmp.Or(errors.Join(failed, err), ctx.Err())
	t.isOver = err == nil
	return result, err
}

func (t *turn) add(e engine.Added, to sink) error {
	if t.id == "" && e.Canister.Kind() == canister.KindUser {
		t.id = e.Canister.Header().ID
	}
	kept := e.Canister
	switch c := kept.(type) { // without what the client has sent, which does not count among the bodies any longer
	case canister.User:
		kept = canister.User{Head: canister.Head{ID: c.ID}}
	case canister.Answer:
		kept = canister.Answer{Head: canister.Head{ID: c.ID}, Wait: c.Wait, Verdict: c.Verdict}
	case canister.Result:
		if t.isPassed(c.Invocation) {
			kept = canister.Result{Head: canister.Head{ID: c.ID}, Invocation: c.Invocation, Parent: c.Parent, Code: c.Code}
		}
	}
	t.attempt, t.canisters = 0, append(t.canisters, kept)
	if to.added == nil {
		return nil
	}
	return to.added(e.Position, e.Canister)
}

func (t *turn) delta(e engine.Delta, to sink) error {
	if e.Turn != t.id {
		return nil
	}
	isAgain := e.BeginsAgain(t.attempt)
	if t.attempt = e.Attempt; isAgain && to.again != nil {
		if err := to.again(); err != nil {
			return err
		}
	}
	piece := e.Text()
	if piece == "" || to.text == nil {
		return nil
	}
	return to.text(piece)
}

// end reports whether an end belongs to the turn.
func (t *turn) end(ctx context.Context, e engine.Ended) (isOver bool, err error) {
	onlyUser := !slices.ContainsFunc(t.canisters, func(c canister.Canister) bool { return c.Kind() != canister.KindUser })
	switch {
	case e.Turn != t.id || len(t.canisters) == 0 && t.sent:
		return false, nil
	case e.Superseded != "" && onlyUser:
		t.id = e.Superseded // that turn answers both messages
		return false, nil
	case e.Superseded != "":
		return true, errSuperseded
	case e.Error != "":
		if e.Again.IsZero() {
			return true, errFailed
		}
		return false, nil
	case e.Reason == converse.ReasonWaiting:
		_, open, err := t.h.state(ctx, t.conversation)
		isOver := func(id string) bool { _, isOpen := openwaits.Find([][]openwaits.Wait{open}, id); return !isOpen }
		if err == nil && slices.ContainsFunc(e.Waits, isOver) {
			return false, nil // the turn has gone on since, and comes to another end
		}
		t.waits = slices.DeleteFunc(open, func(wait openwaits.Wait) bool { return wait.For == canister.WaitTimer })
		return len(t.waits) > 0 || err != nil, err // a timer ends by itself
	}
	return true, nil
}

// isPassed reports whether a call was passed on to the client.
func (t *turn) isPassed(invocation string) bool {
	is := func(c canister.Canister) bool {
		wait, is := c.(canister.Wait)
		return is && wait.Invocation == invocation && clienttools.IsCall(wait)
	}
	return slices.ContainsFunc(t.canisters, is) || slices.ContainsFunc(t.earlier, is)
}

// answered reports whether the client has stayed until its response was complete. The same request then is a new one.
func (t *turn) answered(ctx context.Context) bool {
	if ctx.Err() != nil {
		t.h.sent.Leave(t.key, t.conversation)
		return false
	}
	t.h.sent.Remove(t.key, t.conversation)
	return true
}

// abandon cancels the turn if its client has gone. It does not if the process shuts down, because the
// next process continues the turn then, or if another request follows the turn, such as a repeated one:
// the end of a broken connection can be noticed late.
func (t *turn) abandon(ctx context.Context) {
	if t.answered(ctx) {
		return
	}
	isEnding := t.h.Ending != nil && t.h.Ending.Err() != nil || t.h.feed.life.Err() != nil
	if !t.sent || t.isOver || isEnding || t.h.followed.Add(t.conversation, 0) > 0 {
		return
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), turncancel.Limit)
	defer cancel()
	_, canisters, err := engine.LastTurn(bounded, t.h.store, t.conversation, time.Now())
	if err == nil && compaction.LastUserID(canisters) != t.id {
		return // another message has begun a turn, which is not this client's
	}
	_ = t.h.engine.Cancel(bounded, t.conversation) // the turn goes on then
}

// endTurn ends a turn that may be under way. It goes on if the client leaves: the work of the turn has been stopped by
// then, and would begin again if the log did not record its end.
func (h *handler) endTurn(ctx context.Context, conversation string) error {
	ctx, cancel := turncancel.Outlive(ctx)
	defer cancel()
	return unlessKept(h.engine.Cancel(ctx, conversation))
}

// usage returns the tokens that the turn has used.
func (t *turn) usage() (sum canister.Usage) {
	for _, c := range t.canisters {
		if message, is := c.(canister.Assistant); is && message.Usage != nil {
			sum = sum.Add(*message.Usage)
		}
	}
	return sum
}

// continued returns the turn of a conversation that continues after an answer.
func (h *handler) continued(ctx context.Context, of history.Info) (*turn, error) {
	before, canisters, err := engine.LastTurn(ctx, h.store, of.ID, time.Now())
	if err != nil {
		return nil, err
	}
	t := &turn{h: h, conversation: of.ID, after: before + len(canisters), earlier: canisters}
	if i := compaction.LastUser(canisters); i >= 0 { // there may be earlier turns
		t.id, t.earlier = canisters[i].Header().ID, canisters[i:]
	}
	return t, nil
}
