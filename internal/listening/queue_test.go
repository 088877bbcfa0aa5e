// SPDX-License-Identifier: Apache-2.0

package listening

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// The owner that has most loses first: the address, and of it the connection.
func TestQueue(t *testing.T) {
	var q Queue[string]
	if value, ok := q.Next(); ok {
		t.Errorf("an empty queue has %q", value)
	}
	places := make(map[string]*Place)
	add := func(address, connection, value string) { places[value] = q.Add(value, address, connection) }
	add("a", "1", "a1")
	add("b", "1", "b1")
	add("b", "2", "b2")
	add("b", "2", "b3")
	add("c", "1", "c1")
	if value, _ := q.Next("c"); value != "c1" {
		t.Errorf("of c, %q is next", value)
	}
	if value, ok := q.Next("d"); ok {
		t.Errorf("of d, %q is next", value)
	}
	for i, want := range []string{"b2", "b1", "a1", "c1", "b3"} {
		value, ok := q.Next()
		if !ok || value != want || q.Len() != 5-i {
			t.Fatalf("%q of %d is next, want %q", value, q.Len(), want)
		}
		places[value].Remove()
	}
	if _, ok := q.Next(); ok || q.Len() != 0 || len(q.all.members) != 0 || len(q.all.bySize) != 0 {
		t.Errorf("left: %+v", q.all)
	}
}

// Whatever is added and removed, the next one is of an owner that has most.
func TestQueueIsFair(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var q Queue[string]
	type entry struct {
		owner string
		place *Place
	}
	var entries []entry
	has := make(map[string]int)
	for range 20_000 {
		if n := len(entries); n > 0 && random.IntN(100) < 48 {
			i := random.IntN(n)
			entries[i].place.Remove()
			has[entries[i].owner]--
			entries[i] = entries[n-1]
			entries = entries[:n-1]
		} else {
			owner := fmt.Sprint(random.IntN(20))
			entries = append(entries, entry{owner, q.Add(owner, owner)})
			has[owner]++
		}
		most := 0
		for _, n := range has {
			most = max(most, n)
		}
		if next, ok := q.Next(); ok != (most > 0) || has[next] != most || q.Len() != len(entries) {
			t.Fatalf("%q has %d, and another one %d; %d in all, want %d", next, has[next], most, q.Len(), len(entries))
		}
	}
}

// An address that opens connections as fast as it can takes no place of others,
// also where it may have as many as all together.
func TestAddressDisplacesNoOther(t *testing.T) {
	inner := &fakes{}
	l := Limit(inner, Limits{Connections: 100, PerAddress: 1000})
	connect := func(address string) *fake {
		f := &fake{address: address}
		inner.next = append(inner.next, f)
		_, _ = l.Accept()
		return f
	}
	var others []*fake
	for i := range 50 {
		others = append(others, connect(fmt.Sprint("192.0.2.", i%10)))
	}
	for range 1000 {
		connect("198.51.100.1")
	}
	for i, other := range others {
		if other.closed {
			t.Errorf("connection %d of another address is closed", i)
		}
	}
}
