// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/consort-go/consort/internal/terminal"
)

// Close ends also if the program does not, with a backlog that is full.
func TestCloseHasABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		var killed atomic.Bool
		u := &UI{
			options: Options{Screen: terminal.NewScreen(null, null)}, backlog: newBacklog(), over: make(chan struct{}),
			restore: func() {}, kill: func() { killed.Store(true) },
		}
		u.backlog.put(note{"x"}, maxBacklog+1)
		if err := u.Close(); err == nil || !killed.Load() {
			t.Errorf("killed: %v, %v", killed.Load(), err)
		}
		if u.backlog.put(note{"y"}, 1) {
			t.Error("the backlog is open")
		}
	})
}
