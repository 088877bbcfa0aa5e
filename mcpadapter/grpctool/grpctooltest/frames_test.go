// SPDX-License-Identifier: Apache-2.0

package grpctooltest

import (
	"slices"
	"testing"
)

// The streams that a client opens are found however its bytes are cut.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(preface+"\x00\x00\x00\x04\x00\x00\x00\x00\x00"+"\x00\x00\x02\x01\x05\x80\x00\x00\x03ab"+"\x00\x00\x01\x01\x05\x00\x00\x00\x05c"), 3)
	f.Add([]byte(preface), 1)
	f.Fuzz(func(t *testing.T, data []byte, piece int) {
		var whole, cut frames
		want := whole.read(data)
		var got []uint32
		for rest := data; len(rest) > 0; {
			n := min(max(piece, 1), len(rest))
			got = append(got, cut.read(rest[:n])...)
			rest = rest[n:]
		}
		if !slices.Equal(got, want) {
			t.Errorf("in one piece %v, in pieces of %d %v", want, piece, got)
		}
	})
}

func TestFrames(t *testing.T) {
	var f frames
	got := f.read([]byte(preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" + "\x00\x00\x02\x01\x05\x80\x00\x00\x03ab" +
		"\x00\x00\x03\x00\x00\x00\x00\x00\x03abc" + "\x00\x00\x01\x01\x05\x00\x00\x00\x05c"))
	if !slices.Equal(got, []uint32{3, 5}) {
		t.Errorf("the streams are %v", got)
	}
}
