// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/consort-go/consort/canister"
)

// Canisters returns the messages as canisters, without IDs and times, for a
// conversation to add. An assistant's message becomes one of the model, even if it is
// the first or the last: a conversation accepts both, and after the last it is the
// user's turn. Messages of any other role become the user's.
func (m *Messages) Canisters() []canister.Canister {
	var all []canister.Canister
	for _, message := range m.Messages {
		content := slices.Clone(message.Content)
		if message.Role == "assistant" {
			all = append(all, canister.Assistant{Content: content, Finish: canister.FinishStop})
		} else {
			all = append(all, canister.User{Content: content})
		}
	}
	return all
}

// Document reads a resource and returns it as a canister for a conversation: its title
// or name, its URI, its contents, and in the metadata the name of the ensemble and the
// URI as "ensemble/name" and "ensemble/uri". It returns the same errors as
// [Roster.ReadResource].
func (r *Roster) Document(ctx context.Context, uri string) (canister.Document, error) {
	e, err := r.Select(nil).holder(ctx, uri)
	if err != nil {
		return canister.Document{}, err
	}
	parts, err := e.ReadResource(ctx, uri)
	if err != nil {
		return canister.Document{}, err
	}
	document := canister.Document{Title: e.titleOf(ctx, uri), URI: uri}
	document.Metadata = canister.Fields{"ensemble/name": text(e.name), "ensemble/uri": text(uri)}
	for _, part := range parts {
		document.Content = append(document.Content, part)
	}
	return document, nil
}

// titleOf returns the title or name of a resource; empty if it is not listed.
func (e *Ensemble) titleOf(ctx context.Context, uri string) string {
	listed, err := e.lists.resources.list(ctx)
	if err != nil {
		return ""
	}
	for _, r := range listed.found {
		if r.URI == uri {
			return cmp.Or(r.Title, r.Name)
		}
	}
	return ""
}

// text returns a string as JSON.
func text(s string) json.RawMessage {
	encoded, _ := json.Marshal(s) // never fails for a string
	return encoded
}
