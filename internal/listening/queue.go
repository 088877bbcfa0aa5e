// SPDX-License-Identifier: Apache-2.0

package listening

import "container/list"

// Queue holds values that wait, such as connections, by owner. The owner with the most
// values comes first, so that one owner cannot displace the values of others. The zero
// value is empty. It is not safe for concurrent use.
type Queue[T any] struct{ all group[T] }

// Place is the place of a value in a [Queue].
type Place struct {
	remove func()
}

// group holds the values of all owners, of one owner, or of a part of one.
type group[T any] struct {
	of      *group[T] // nil for the root
	key     any
	size    int
	at      *list.Element     // in of.bySize[size-1]
	members map[any]*group[T] // by key
	bySize  []*list.List      // members by size; the last list is not empty
	values  *list.List        // of T, oldest first
}

// Add adds a value. The owner may have several keys, such as an address and one of its
// connections: Next then chooses among the addresses first. Keys must be comparable,
// and all values of a queue must have the same number of keys.
func (q *Queue[T]) Add(value T, owner ...any) *Place {
	g := &q.all
	for _, key := range owner {
		g = g.member(key)
	}
	if g.values == nil {
		g.values = list.New()
	}
	at := g.values.PushBack(value)
	g.resize(1)
	return &Place{remove: func() {
		g.values.Remove(at)
		g.resize(-1)
	}}
}

// Remove removes the value, which must be in the queue.
func (p *Place) Remove() { p.remove() }

// Len returns the number of values.
func (q *Queue[T]) Len() int { return q.all.size }

// Next returns the oldest value of the owner with the most values, among the owners
// whose first keys are the given ones. If several owners have the most values, it
// chooses the one that has had that number for longest. It returns false if there is no
// value.
func (q *Queue[T]) Next(owner ...any) (value T, ok bool) {
	g := &q.all
	for _, key := range owner {
		if g = g.members[key]; g == nil {
			return value, false
		}
	}
	for len(g.bySize) > 0 {
		g = g.bySize[len(g.bySize)-1].Front().Value.(*group[T])
	}
	if g.size == 0 {
		return value, false
	}
	return g.values.Front().Value.(T), true
}

// member returns the member with a key.
func (g *group[T]) member(key any) *group[T] {
	m := g.members[key]
	if m == nil {
		if g.members == nil {
			g.members = make(map[any]*group[T])
		}
		m = &group[T]{of: g, key: key}
		g.members[key] = m
	}
	return m
}

// resize adds by to the size of g and of the groups that contain it.
func (g *group[T]) resize(by int) {
	for ; g != nil; g = g.of {
		if g.of != nil {
			g.of.place(g, g.size+by)
		}
		g.size += by
	}
}

// place moves a member to the list of the members with size values.
func (g *group[T]) place(m *group[T], size int) {
	if m.size > 0 {
		g.bySize[m.size-1].Remove(m.at)
	}
	if size > len(g.bySize) {
		g.bySize = append(g.bySize, list.New())
	}
	if size > 0 {
		m.at = g.bySize[size-1].PushBack(m)
	} else {
		delete(g.members, m.key)
	}
	for n := len(g.bySize); n > 0 && g.bySize[n-1].Len() == 0; n-- {
		g.bySize = g.bySize[:n-1]
	}
}
