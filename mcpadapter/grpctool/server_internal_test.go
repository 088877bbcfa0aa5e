// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"testing"
)

// A client that has nothing under way is forgotten.
func TestClientsAreForgotten(t *testing.T) {
	s := NewServer(nil, &ServerOptions{Parallel: 2})
	for _, client := range []string{"ada", "ada", "ben"} {
		if s.enter(client) != admitted {
			t.Fatalf("%s is not admitted", client)
		}
	}
	if s.enter("ada") != tooMany {
		t.Error("ada is admitted a third time")
	}
	for _, client := range []string{"ada", "ben", "ada"} {
		s.leave(client)
	}
	if len(s.load) != 0 {
		t.Errorf("%v are remembered", s.load)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s.enter("ada") != tooLate {
		t.Error("ada is admitted by a closed server")
	}
}
