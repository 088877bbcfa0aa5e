// SPDX-License-Identifier: Apache-2.0

package opencount

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o Count
		o.Init()
		waited := func() time.Duration {
			start := time.Now()
			o.Wait(time.Minute)
			return time.Since(start)
		}
		if !o.Add() {
			t.Fatal("an open count takes nothing")
		}
		if o.Close(); o.Add() {
			t.Fatal("a closed count takes more")
		}
		if d := waited(); d != time.Minute {
			t.Fatalf("waited %v for what stays open, want a minute", d)
		}
		time.AfterFunc(time.Second, o.Done)
		if d := waited(); d != time.Second {
			t.Fatalf("waited %v for what ends after a second", d)
		}
		if o.Close(); waited() != 0 {
			t.Fatal("waited although nothing is open")
		}
	})
}
