// SPDX-License-Identifier: Apache-2.0

package files

import (
	"fmt"
	"os"
	"reflect"
	"testing"

	"github.com/consort-go/consort/canister"
)

// What a store remembers after an append is what it would find in the file.
func TestGrownIndex(t *testing.T) {
	s, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	length := 0
	folder, err := s.folder("talk")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 1, 2, 59, 1, 1, 63, 64, 65, 1, 200, 1} {
		var list []canister.Canister
		for i := range n {
			list = append(list, canister.User{Head: canister.Head{ID: fmt.Sprint(length + i)}, Content: canister.Texts("x")})
		}
		if err := s.Append(t.Context(), "talk", length, list...); err != nil {
			t.Fatal(err)
		}
		length += n
		file, err := os.Open(linesOf(folder))
		if err != nil {
			t.Fatal(err)
		}
		want, err := index{}.scan(file)
		if err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		got := s.indexes[folder]
		s.mu.Unlock()
		got, err = got.scan(file)
		file.Close()
		got.file, want.file = nil, nil
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("after %d: %+v, want %+v (%v)", length, got, want, err)
		}
		at := 0
		for c, err := range s.Read(t.Context(), "talk", length/2) {
			if err != nil || c.Header().ID != fmt.Sprint(length/2+at) {
				t.Fatalf("%v %v", c, err)
			}
			at++
		}
	}
}
