// SPDX-License-Identifier: Apache-2.0

// Package repeats tells a message or an answer that is sent again from another one with the same ID.
package repeats

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
)

// ErrReused says that a conversation has something else with the ID of a message or an answer.
var ErrReused = errors.New("httpapi: the ID was used for something else")

// Check returns [ErrReused] if the log of a conversation has another message, or another answer, with the same ID.
func Check(ctx context.Context, log history.Log, conversation string, sent canister.Canister) error {
	canisters, err := until(ctx, log, conversation, sent)
	return errors.Join(err, checkIn(canisters, sent))
}

// CheckBegun is Check for the message that begins a conversation. It also returns [ErrReused] if the log has messages
// of the user and none has this ID.
func CheckBegun(ctx context.Context, log history.Log, conversation string, sent canister.User) error {
	canisters, err := until(ctx, log, conversation, sent)
	isUser := func(c canister.Canister) bool { return c.Kind() == canister.KindUser }
	if err == nil && indexOf(canisters, sent) < 0 && slices.ContainsFunc(canisters, isUser) {
		return ErrReused
	}
	return errors.Join(err, checkIn(canisters, sent))
}

// until returns the end of a conversation, as far back as the canister with the ID of one that was sent.
func until(ctx context.Context, log history.Log, conversation string, sent canister.Canister) ([]canister.Canister, error) {
	_, canisters, err := history.Tail(ctx, log, conversation, func(_ int, end []canister.Canister) bool { return indexOf(end, sent) >= 0 })
	return canisters, err
}

// checkIn returns [ErrReused] if one of the canisters is another message, or another answer, with the same ID.
func checkIn(canisters []canister.Canister, sent canister.Canister) error {
	if i := indexOf(canisters, sent); i >= 0 && canisters[i].Kind() == sent.Kind() && !Same(canisters[i], sent) {
		return ErrReused
	}
	return nil
}

func indexOf(canisters []canister.Canister, sent canister.Canister) int {
	return slices.IndexFunc(canisters, func(c canister.Canister) bool { return c.Header().ID == sent.Header().ID })
}

// Same reports whether two messages or answers say the same, at any time, with any metadata, and by any person.
func Same(one, other canister.Canister) bool {
	a, err := canister.Marshal(said(one))
	b, wrong := canister.Marshal(said(other))
	return err == nil && wrong == nil && bytes.Equal(a, b)
}

// said returns the part of a message or an answer that its author has given.
func said(c canister.Canister) canister.Canister {
	switch c := c.(type) {
	case canister.User:
		return canister.User{Content: c.Content}
	case canister.Answer:
		return canister.Answer{Wait: c.Wait, Verdict: c.Verdict, Reason: c.Reason, Arguments: c.Arguments, Content: c.Content}
	default:
		return c
	}
}
