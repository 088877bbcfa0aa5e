// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"io"
	"testing"
)

// A frame that has arrived is not read once its sender has lost access.
func TestClosedFrameReader(t *testing.T) {
	for range 100 { // select chooses at random
		r := &frameReader{frames: make(chan []byte, 1), closed: make(chan struct{})}
		r.frames <- []byte("{}")
		r.Close()
		if n, err := r.Read(make([]byte, 10)); err != io.EOF {
			t.Fatalf("%d bytes are read, %v", n, err)
		}
	}
}
