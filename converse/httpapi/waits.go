// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi/internal/openwaits"
	"github.com/consort-go/consort/converse/httpapi/internal/repeats"
	"github.com/consort-go/consort/converse/waits"
)

// unanswered returns the answers of a request that are not in the log yet, if all of them can be given. After an
// error of one of its answers, the request may be sent again; the turn then begins at the first answer in the log.
func (t *turn) unanswered(ctx context.Context, answers []canister.Answer) (left []canister.Answer, err error) {
	open, first := openwaits.Open(t.conversation, t.earlier, time.Now()), len(t.earlier)
	for _, one := range answers {
		one.By = t.h.Name(ctx)
		wait, isOpen := openwaits.Find([][]openwaits.Wait{open}, one.Wait)
		given := slices.IndexFunc(t.earlier, func(c canister.Canister) bool { return repeats.Same(c, one) })
		isTwice := slices.ContainsFunc(left, func(other canister.Answer) bool { return other.Wait == one.Wait }) // a result, and an answer
		switch {
		case isOpen && !isTwice:
			if err := check(wait, one); err != nil {
				return nil, err
			}
			left = append(left, one)
		case given < 0:
			return nil, waits.ErrNotOpen
		default:
			first = min(first, given)
		}
	}
	if len(left) == 0 {
		return nil, waits.ErrNotOpen
	}
	t.after -= len(t.earlier) - first
	t.earlier = t.earlier[:first]
	return left, nil
}

// waits lists the open waits of a conversation.
func (h *handler) waits(w http.ResponseWriter, r *http.Request) error {
	found, err := h.owned(r)
	if err != nil {
		return err
	}
	_, open, err := h.state(r.Context(), found.ID)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"waits": append([]openwaits.Wait{}, open...)})
	return nil
}

// answer answers a wait.
func (h *handler) answer(w http.ResponseWriter, r *http.Request) error {
	found, err := h.owned(r)
	if err != nil {
		return err
	}
	var form struct {
		ID        string           `json:"id"`
		Verdict   canister.Verdict `json:"verdict"`
		Reason    string           `json:"reason"`
		Arguments json.RawMessage  `json:"arguments"`
		Content   json.RawMessage  `json:"content"`
	}
	if err := decode(w, r, &form); err != nil {
		return err
	}
	given := canister.Answer{
		Head: canister.Head{ID: form.ID}, Wait: r.PathValue("wait"), Verdict: form.Verdict, Reason: form.Reason, Arguments: form.Arguments,
	}
	if len(form.ID) > maxMessageID {
		return invalid("id", fmt.Sprintf("It has more than %d bytes.", maxMessageID), "Use a shorter one, or none.")
	}
	if len(form.Content) > 0 {
		if given.Content, err = contents(form.Content); err != nil {
			return invalid("content", "It is not a list of contents: "+err.Error()+".", "See docs/canisters.md for the forms of contents.")
		}
	}
	isNamed := form.ID != "" // it may have been given before
	if isNamed {
		err = repeats.Check(r.Context(), h.store, found.ID, given)
	}
	if err == nil {
		err = h.answerWait(r.Context(), found, given, new(int64))
	}
	if err == nil && isNamed { // another one may have come first
		err = repeats.Check(r.Context(), h.store, found.ID, given)
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// laterError is the error of an answer after others of the same request were given, if there are any.
type laterError struct {
	error
	given []canister.Answer
}

// Unwrap returns the error without the note about the answers before.
func (e *laterError) Unwrap() error { return e.error }

// note returns a sentence for clients, after the message of the error.
func (e *laterError) note() string {
	var ids []string
	for _, one := range e.given {
		ids = append(ids, one.Wait)
	}
	return fmt.Sprintf(" The answers before it were given, to the waits %q.", ids)
}

// answerWait answers a wait of a conversation as the caller. Giving the same answer again, by
// its ID, is not an error. The wait can be answered while other calls of the turn are made. answerWait sets stale to the
// number of the last event before the answer.
func (h *handler) answerWait(ctx context.Context, of history.Info, given canister.Answer, stale *int64) error {
	given.By = h.Name(ctx)
	now := time.Now()
	_, canisters, err := engine.LastTurn(ctx, h.store, of.ID, now)
	if err != nil {
		return err
	}
	open := openwaits.Open(of.ID, canisters, now)
	i := slices.IndexFunc(open, func(wait openwaits.Wait) bool { return wait.ID == given.Wait })
	if i >= 0 {
		if err := check(open[i], given); err != nil {
			return err
		}
	} else if given.ID == "" {
		return waits.ErrNotOpen
	}
	return h.Admit(ctx, Entry{Conversation: of.ID, Canister: given}, func(ctx context.Context) error {
		h.feed.prepare(ctx, of.ID) // the client is going to read the events
		*stale = h.feed.latest.Load()
		return unlessKept(h.engine.Answer(ctx, of.ID, given))
	})
}

// check returns why an answer does not answer a wait. The engine checks it again.
func check(wait openwaits.Wait, given canister.Answer) error {
	object := map[string]json.RawMessage{}
	isObject := json.Unmarshal(given.Arguments, &object) == nil && object != nil
	switch {
	case !slices.Contains(wait.Verdicts, given.Verdict):
		return invalid("verdict", fmt.Sprintf("It does not answer a wait for %s.", wait.For), fmt.Sprintf("Use one of %q.", wait.Verdicts))
	case wait.Who != "" && wait.Who != given.By:
		return failure(http.StatusForbidden, "not_yours_to_answer", "Another person has to answer this wait.", "Ask that person, or cancel the turn.")
	case given.Verdict == canister.VerdictChange && !isObject, len(given.Arguments) > 0 && !isObject:
		return invalid("arguments", "They are not a JSON object.", "Send the arguments of the call, or the answer to the question, as one object.")
	}
	said := canister.Answer{Wait: given.Wait, Verdict: given.Verdict, Reason: given.Reason, Arguments: given.Arguments, Content: given.Content}
	_, err := lineOf(said, "answer")
	return err
}
