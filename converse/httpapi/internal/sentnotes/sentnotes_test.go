// SPDX-License-Identifier: Apache-2.0

package sentnotes

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// TestNotes: a note lasts until the client has its answer, and a few minutes after the client has left, or one after its
// response has begun.
func TestNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n Notes
		want := func(request, conversation string) {
			t.Helper()
			if got := n.Find(request); got != conversation {
				t.Errorf("the request %q is in %q, want %q", request, got, conversation)
			}
		}
		want("a", "")
		n.Add("a", "one")
		n.Add("b", "two")
		n.Add("", "three")
		n.Add("d", "four")
		want("", "")
		time.Sleep(time.Hour)
		n.Remove("b", "one") // another request has added it
		n.Leave("b", "one")
		n.Leave("a", "one")
		n.Leave("c", "one")
		want("c", "")
		n.Begin("d", "four")
		time.Sleep(time.Minute)
		want("d", "four")
		n.Leave("d", "four") // it expires all the same
		time.Sleep(time.Second)
		want("d", "")
		time.Sleep(lasting - time.Minute - time.Second)
		want("a", "one")
		time.Sleep(time.Second)
		want("a", "")
		want("b", "two")
		n.Remove("b", "two")
		want("b", "")
	})
}

// TestManyNotes: they are bounded.
func TestManyNotes(t *testing.T) {
	var n Notes
	for i := range most + 100 {
		n.Add(strconv.Itoa(i), "one")
	}
	if len(n.of) != 100 || n.Find(strconv.Itoa(most+99)) != "one" {
		t.Errorf("there are %d notes", len(n.of))
	}
}
