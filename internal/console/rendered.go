// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"slices"
	"sync"
)

// Limits of the cache that streams share.
const (
	maxRendered  = 16 // renderings
	renderedLife = 10 // seconds: the secrets of the configuration may change
)

// renderings caches the entries of live conversations as HTML. All streams of a conversation
// share one rendering for each role.
type renderings struct {
	form string // replaces the form token of a session; random

	mu     sync.Mutex
	all    map[renderingKey]func() []liveEntry
	oldest []renderingKey
}

// renderingKey identifies a rendering of the entries of a turn.
type renderingKey struct {
	conversation, last, model string // last is the ID of the last canister
	position, canisters       int
	role                      Role
	period                    int64
}

// liveEntry is an entry of a turn, as JSON for the script of the page. Its forms have
// renderings.form as their token.
type liveEntry struct {
	key  string
	data []byte
}

func newRenderings() *renderings {
	return &renderings{form: rand.Text(), all: map[renderingKey]func() []liveEntry{}}
}

// get returns the rendering for a key. Only the first caller makes it.
func (r *renderings) get(key renderingKey, render func() []liveEntry) []liveEntry {
	r.mu.Lock()
	found := r.all[key]
	if found == nil {
		found = sync.OnceValue(render)
		r.all[key] = found
		if r.oldest = append(r.oldest, key); len(r.oldest) > maxRendered {
			delete(r.all, r.oldest[0])
			r.oldest = r.oldest[1:]
		}
	}
	r.mu.Unlock()
	return found()
}

// rendered returns the entries of the turn of a stream.
func (s *stream) rendered() []liveEntry {
	c := s.pages.console
	key := renderingKey{conversation: s.info.ID, last: s.recent[len(s.recent)-1].Header().ID, model: s.model, position: s.position,
		canisters: len(s.recent), role: s.person.Role, period: c.Now().Unix() / renderedLife}
	turn, info, pages := slices.Clone(s.recent), s.info, s.pages
	return c.renderings.get(key, func() []liveEntry {
		anyone := &person{Caller: Caller{Role: key.role}, session: &session{form: c.renderings.form}}
		all := entries(key.position-key.canisters, turn)
		var rendered []liveEntry
		for i, item := range pages.items(anyone, info, all, key.model) {
			id := entryID(all[i])
			data, err := json.Marshal(map[string]string{"id": id, "html": fragment(c.clean, item)})
			if err == nil { // texts have a form
				rendered = append(rendered, liveEntry{id, data})
			}
		}
		return rendered
	})
}

// own returns an entry with the token of a session.
func (r *renderings) own(e liveEntry, s *session) json.RawMessage {
	return bytes.ReplaceAll(e.data, []byte(r.form), []byte(s.form))
}
