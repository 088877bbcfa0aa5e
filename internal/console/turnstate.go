// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"slices"
	"strconv"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
)

// saidOf says for people how a turn has ended.
func saidOf(e engine.Ended, clean cleaner) string {
	switch {
	case e.Error != "" && !e.Again.IsZero():
		return "The turn failed, and is tried again at " + e.Again.UTC().Format("15:04:05 MST") + ": " + clean.shown(e.Error)
	case e.Error != "":
		return "The turn failed: " + clean.shown(e.Error)
	case e.Superseded != "":
		return "Another message came before the turn was over."
	case e.Reason == converse.ReasonWaiting:
		return "The turn waits for an answer."
	}
	return "The turn is over: " + string(e.Reason)
}

// changesState reports whether the page shows another state of the turn after a canister.
func changesState(one canister.Canister) bool {
	switch one.Kind() {
	case canister.KindUser, canister.KindWait, canister.KindAnswer:
		return true
	}
	return false
}

// continues reports whether this process works on a turn of which the page may say that it does not.
func (s *stream) continues() bool {
	active := s.pages.console.Active
	return s.isLeft && active != nil && active(s.info.ID)
}

// sendState sends the parts of the page that depend on the turn, by the IDs of their elements. The
// entries are not among them.
func (s *stream) sendState(ctx context.Context) error {
	info, err := s.pages.console.visible(ctx, s.person, s.info.ID)
	if err != nil {
		return err
	}
	s.isLeft = s.pages.isLeft(info)
	var open part
	if slices.ContainsFunc(s.recent, isFromModel) { // otherwise no call waits
		open = s.pages.openWaits(ctx, s.person, info, window{from: s.position - len(s.recent), to: s.position, canisters: s.recent})
	}
	clean, shown := s.pages.console.clean, info
	shown.Length = s.position // the reader has no later canisters
	return s.send("", "state", map[string]string{
		"badges": fragment(clean, badges(info)), "length": strconv.Itoa(info.Length),
		"waits": fragment(clean, open), "actions": fragment(clean, s.pages.actions(s.person, shown, written{id: s.form})),
	})
}
