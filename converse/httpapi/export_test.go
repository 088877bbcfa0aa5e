// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"slices"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/engine"
)

// Routes returns the routes of the handler.
func Routes() (routes []string) {
	for pattern := range (&handler{}).patterns() {
		routes = append(routes, strings.ReplaceAll(pattern, "...}", "}"))
	}
	slices.Sort(routes)
	return routes
}

// Topics returns how many conversations a feed watches.
func Topics(f *Feed) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.topics)
}

// CallID is the ID of a call for clients of OpenAI's APIs.
var CallID = callID

// KeptOf returns what a request that follows a turn keeps of a canister, after the others.
func KeptOf(c canister.Canister, earlier ...canister.Canister) canister.Canister {
	t := &turn{earlier: earlier}
	_ = t.add(engine.Added{Canister: c}, sink{}) // the sink returns no error
	return t.canisters[0]
}

// KeptBytes returns the size of the events that a feed keeps.
func KeptBytes(f *Feed) (size int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.topics {
		t.mu.Lock()
		for _, event := range t.events {
			size += len(event.Data)
		}
		t.mu.Unlock()
	}
	return size
}
