// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"
	"testing"
)

// The table of clients stays small, whatever clients connect, and keeps every client with
// a running request.
func TestClientsAreBounded(t *testing.T) {
	c := New(Limits{Rate: 0.001, Burst: 1, Parallel: 1})
	c.Arrive("busy")
	end := c.Begin("busy", Request)
	for i := range 50_000 {
		if wait := c.Arrive(fmt.Sprint(i)); wait > 0 {
			t.Fatalf("client %d waits %v", i, wait)
		}
	}
	if len(c.of) > most {
		t.Errorf("%d clients", len(c.of))
	}
	if c.Arrive("busy") == 0 || c.Begin("busy", Request) != nil {
		t.Error("the busy client is forgotten")
	}
	end()
	if c.Begin("busy", Request) == nil {
		t.Error("its place is not free")
	}
}

func TestAddress(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[2001:db8::1]:80": "2001:db8::/64", "[2001:db8::ffff:1]:1": "2001:db8::/64",
		"[2001:db8:0:1::1]:80": "2001:db8:0:1::/64", "[::ffff:192.0.2.1]:80": "::ffff:192.0.2.1", "[fe80::1%eth0]:80": "fe80::/64", "@": "@", "": "",
	} {
		if got := Address(address); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}
