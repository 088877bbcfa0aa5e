// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Scope says what shares an account of a cap.
type Scope string

// The scopes of a [Cap].
const (
	Conversation Scope = "conversation" // each conversation, by its ID
	Identity     Scope = "identity"     // each user, by trusted values; see converse.Options.Identity
	Roster       Scope = "roster"       // all with the same [Policy.Roster]
)

// Window is the period of a cap: a calendar period in UTC. An amount counts in the
// window of its reservation, however long the work takes.
type Window string

// The windows of a [Cap].
const (
	Lifetime Window = "" // everything counts indefinitely
	Hour     Window = "hour"
	Day      Window = "day"
	Month    Window = "month"
)

// Cap limits what each member of a scope may spend in a window. Tokens, Money and Time
// are unlimited where they are 0; at least one must be set.
type Cap struct {
	Scope  Scope
	Window Window
	Tokens int64 // of requests and answers together
	Money  Money // needs Policy.Prices
	// Time is the wall-clock time of exchanges with the model and of running tools, and of
	// questions to a person while they run.
	// Work that runs concurrently in a conversation counts once.
	Time time.Duration
}

// unit is a quantity that a cap can limit. Its text is part of account names.
type unit string

const (
	tokens unit = "tokens"
	money  unit = "money"
	span   unit = "time"
)

// limit returns the limit of the unit; 0 means unlimited.
func (c Cap) limit(u unit) int64 {
	switch u {
	case tokens:
		return c.Tokens
	case money:
		return int64(c.Money)
	}
	return int64(c.Time)
}

// check validates a cap.
func (c Cap) check() error {
	switch c.Scope {
	case Conversation, Identity, Roster:
	default:
		return fmt.Errorf("the scope is %q; it must be %q, %q or %q", c.Scope, Conversation, Identity, Roster)
	}
	switch c.Window {
	case Lifetime, Hour, Day, Month:
	default:
		return fmt.Errorf("the window is %q; it must be %q, %q, %q or empty", c.Window, Hour, Day, Month)
	}
	limited := false
	for _, u := range []unit{tokens, money, span} {
		limit := c.limit(u)
		if limit < 0 || limit > MaxAmount {
			return fmt.Errorf("the limit of %s is %d; it must be from 1 to %d, or 0 for none", u, limit, int64(MaxAmount))
		}
		limited = limited || limit > 0
	}
	if !limited {
		return errors.New("it limits neither tokens, money nor time")
	}
	return nil
}

// Period returns the name of the window that contains now, which is part of the names of
// accounts, and when the window ends; both are zero for a lifetime.
func (w Window) Period(now time.Time) (name string, ends time.Time) {
	now = now.UTC()
	year, month, day := now.Date()
	switch w {
	case Hour:
		return now.Format("2006-01-02T15"), now.Truncate(time.Hour).Add(time.Hour)
	case Day:
		return now.Format("2006-01-02"), time.Date(year, month, day+1, 0, 0, 0, 0, time.UTC)
	case Month:
		return now.Format("2006-01"), time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC)
	}
	return "", time.Time{}
}

// whom describes the scope in error messages.
func (s Scope) whom() string {
	if s == Roster {
		return "all together"
	}
	return "each " + string(s)
}

// per returns the window as the suffix of an amount.
func (w Window) per() string {
	if w == Lifetime {
		return ""
	}
	return " per " + string(w)
}

// Who identifies the spender. Account names contain only the SHA-256 of its fields, so
// the fields cannot be read from them; but a reader of a name who guesses the fields
// can verify the guess.
type Who struct {
	Conversation string
	Identity     string
}

// account returns the name of an account, and when it ends.
func (p *Policy) account(c Cap, u unit, who Who, now time.Time) (name string, ends time.Time) {
	period, ends := c.Window.Period(now)
	parts := []string{string(c.Scope)}
	switch c.Scope {
	case Conversation:
		parts = append(parts, digest(who.Conversation))
	case Identity:
		parts = append(parts, digest(who.Identity))
	case Roster:
		parts = append(parts, digest(p.Roster))
	}
	if c.Window != Lifetime {
		parts = append(parts, period)
	}
	if u == money {
		return strings.Join(append(parts, string(u), p.Currency), "/"), ends
	}
	return strings.Join(append(parts, string(u)), "/"), ends
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
