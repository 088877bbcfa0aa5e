// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi/internal/repeats"
	"github.com/consort-go/consort/converse/internal/clienttools"
	"github.com/consort-go/consort/converse/waits"
)

// openWait is the JSON form of an open wait.
type openWait struct {
	ID         string             `json:"id"`
	For        canister.WaitFor   `json:"for"`
	Deadline   time.Time          `json:"deadline"`
	Who        string             `json:"who,omitzero"`
	Invocation string             `json:"invocation,omitzero"`
	Tool       string             `json:"tool,omitzero"`
	Arguments  string             `json:"arguments,omitzero"` // as the model wrote them
	Question   json.RawMessage    `json:"question,omitempty"`
	Verdicts   []canister.Verdict `json:"verdicts"`
	Client     bool               `json:"client,omitzero"` // a call of a tool of the client

	place int // of the invocation
}

// openWaits returns the open waits at the end of a conversation.
func openWaits(id string, canisters []canister.Canister, now time.Time) []openWait {
	all := []openWait{}
	for _, wait := range waits.Open(id, canisters, now) {
		form := openWait{
			ID: wait.ID, For: wait.For, Deadline: wait.Deadline.UTC(), Who: wait.Who, Invocation: wait.Invocation,
			Arguments: wait.Arguments, Question: wait.Question, Verdicts: wait.For.Answers(), Client: clienttools.IsCall(wait),
		}
		for i, c := range canisters {
			if invocation, is := c.(canister.Invocation); is && invocation.ID == wait.Invocation {
				form.Tool, form.Arguments, form.place = invocation.Name, cmp.Or(wait.Arguments, invocation.Arguments), i
			}
		}
		all = append(all, form)
	}
	return all
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
	writeJSON(w, http.StatusOK, map[string]any{"waits": append([]openWait{}, open...)})
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
		err = h.answerWait(r.Context(), found, given)
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

// answerWait answers a wait of a conversation as the caller. Giving the same answer again, by
// its ID, is not an error. The wait can be answered while other calls of the turn are made.
func (h *handler) answerWait(ctx context.Context, of history.Info, given canister.Answer) error {
	given.By = h.Name(ctx)
	now := time.Now()
	_, canisters, err := engine.LastTurn(ctx, h.store, of.ID, now)
	if err != nil {
		return err
	}
	open := openWaits(of.ID, canisters, now)
	i := slices.IndexFunc(open, func(wait openWait) bool { return wait.ID == given.Wait })
	if i >= 0 {
		if err := check(open[i], given); err != nil {
			return err
		}
	} else if given.ID == "" {
		return waits.ErrNotOpen
	}
	return h.Admit(ctx, Entry{Conversation: of.ID, Canister: given}, func(ctx context.Context) error {
		h.feed.prepare(ctx, of.ID) // the client is going to read the events
		err := h.engine.Answer(ctx, of.ID, given)
		if errors.Is(err, engine.ErrKept) {
			return nil
		}
		return err
	})
}

// check returns why an answer does not answer a wait. The engine checks it again.
func check(wait openWait, given canister.Answer) error {
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
