// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/internal/waitrules"
	"github.com/consort-go/consort/invoker"
)

var ErrNotOpen = errors.New("converse: no open wait with this ID")

// CheckAnswer returns why an answer is not valid for the open waits of a history.
func CheckAnswer(conversation string, history []canister.Canister, answer canister.Answer, now time.Time) error {
	waits := Waits(conversation, history, now)
	i := slices.IndexFunc(waits, func(w canister.Wait) bool { return w.ID == answer.Wait })
	if i < 0 {
		return fmt.Errorf("%w: wait %s", ErrNotOpen, textcut.Bytes(answer.Wait, bounds.MaxQuoted))
	}
	wait := waits[i]
	switch verdicts := wait.For.Answers(); {
	case !slices.Contains(verdicts, answer.Verdict):
		return fmt.Errorf("converse: the verdict %s does not answer a wait for %s: want one of %q", textcut.Bytes(string(answer.Verdict), bounds.MaxQuoted), wait.For, verdicts)
	case answer.By == "":
		return errors.New("converse: the answer has no By: it must say who gives it")
	case wait.Who != "" && answer.By != wait.Who:
		return fmt.Errorf("converse: the wait %s must be answered by %s, not by %s", textcut.Bytes(wait.ID, bounds.MaxQuoted), textcut.Bytes(wait.Who, bounds.MaxQuoted), textcut.Bytes(answer.By, bounds.MaxQuoted))
	case !answer.Time.IsZero() && !answer.Time.Before(wait.Deadline): // it would not hold
		return fmt.Errorf("converse: the answer was given at %s, but the deadline of the wait %s is %s", answer.Time.UTC().Format(time.RFC3339Nano), textcut.Bytes(wait.ID, bounds.MaxQuoted), wait.Deadline.UTC().Format(time.RFC3339Nano))
	case wait.For == canister.WaitApproval && !answer.Time.IsZero() && waitrules.Expiry(wait, answer).Before(now): // the approval would be asked for again
		return fmt.Errorf("converse: the answer was given at %s and has expired: an approval is valid for as long as the wait for it could last", answer.Time.UTC().Format(time.RFC3339Nano))
	case answer.Verdict == canister.VerdictChange && !jsontext.IsObject(answer.Arguments):
		return errors.New("converse: the changed arguments must be one JSON object")
	case answer.Verdict == canister.VerdictAccept && len(answer.Arguments) > 0 && !jsontext.IsObject(answer.Arguments):
		return errors.New("converse: the person's answer must be one JSON object, or empty")
	}
	return fits(answer)
}

// MaxAnswer is the maximum size in bytes of an answer in its JSON form.
const MaxAnswer = 1 << 20

// fits returns why an answer cannot be appended. An answer is never cut: its author can
// give another one.
func fits(answer canister.Answer) error {
	line, err := canister.Marshal(answer)
	switch {
	case err != nil:
		return fmt.Errorf("converse: the answer cannot be stored: %w", err)
	case len(line) > MaxAnswer:
		return fmt.Errorf("converse: the answer has %d bytes in its JSON form; at most %d are allowed: give a shorter one", len(line), MaxAnswer)
	}
	return nil
}

// Elicited converts an answer to the form that a tool receives.
func Elicited(answer canister.Answer) *invoker.ElicitResult {
	switch answer.Verdict {
	case canister.VerdictAccept:
		result := &invoker.ElicitResult{Action: invoker.Accept}
		var exact map[string]json.RawMessage
		if len(answer.Arguments) == 0 || json.Unmarshal(answer.Arguments, &result.Content) == nil && json.Unmarshal(answer.Arguments, &exact) == nil {
			for name, text := range exact {
				if n, err := strconv.ParseInt(string(text), 10, 64); err == nil && (n > 1<<53 || n < -1<<53) {
					result.Content[name] = n
				}
			}
			return result
		}
	case canister.VerdictDecline:
		return &invoker.ElicitResult{Action: invoker.Decline}
	}
	return &invoker.ElicitResult{Action: invoker.Dismiss}
}
