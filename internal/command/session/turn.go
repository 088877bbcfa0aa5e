// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"fmt"
	"iter"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/terminal"
)

// Play runs a turn and renders its events.
func Play(events iter.Seq2[converse.Event, error], to terminal.Renderer) (converse.Turn, error) {
	defer to.Done()
	var last converse.Turn
	for event, err := range events {
		if err != nil {
			return last, err
		}
		if err := to.Show(event); err != nil {
			return last, err
		}
		if completed, ok := event.(converse.TurnCompleted); ok {
			last = completed.Turn
		}
	}
	return last, nil
}

// roomAgain tells the user what to do about a reached cap.
func roomAgain(reached *budget.ReachedError) string {
	if window := reached.Cap.Window; window != budget.Lifetime {
		return fmt.Sprintf("More can be spent when the %s ends, in UTC, or with a higher cap (budgets.caps)", window)
	}
	return "More can be spent only with a higher cap (budgets.caps)"
}

// Shortfall returns an error that explains why a turn ended without a complete answer;
// nil if it is complete. Limits are those of the conversation.
func Shortfall(t converse.Turn, limits converse.Limits) error {
	var final string
	if limits.FinalAnswer && t.Text() != "" {
		final = "; the answer is the final one, given without tools (conversation.final_answer)"
	}
	switch t.Reason {
	case converse.ReasonExchanges:
		limit := cmp.Or(limits.Exchanges, converse.DefaultExchanges)
		return exit.With(exit.Limit, fmt.Errorf("the turn reached its limit of exchanges with the model, which is %d (conversation.exchanges)%s", limit, final))
	case converse.ReasonTime:
		return exit.With(exit.Limit, fmt.Errorf("the turn reached its limit of time (conversation.time)"))
	case converse.ReasonTokens:
		return exit.With(exit.Limit, fmt.Errorf("the turn used %d tokens, and its limit is %d (conversation.tokens)%s", t.Usage.Total(), limits.Tokens, final))
	case converse.ReasonBudget:
		return exit.With(exit.Limit, fmt.Errorf("a cap of [budgets] ended the turn: %w. %s", t.Reached, roomAgain(t.Reached)))
	case converse.ReasonWaiting:
		return exit.With(exit.Waits, nil) // AdviseResume explains it
	case converse.ReasonLength:
		return exit.With(exit.Limit, fmt.Errorf("the model reached its limit of output tokens (model.max_tokens, or the model's own), so the answer is cut"))
	case converse.ReasonContentFilter:
		return exit.With(exit.Done, fmt.Errorf("the model's server withheld text (content filter)"))
	case converse.ReasonRefusal:
		return exit.With(exit.Done, fmt.Errorf("the model declined to answer"))
	}
	return nil
}
