// SPDX-License-Identifier: Apache-2.0

//go:build unix

package faultserver_test

import (
	"testing"
	"time"

	. "github.com/consort-go/consort/ensemble/ensembletest/faultserver"
)

func processClaims() map[Fault]claim {
	return map[Fault]claim{
		FloodStderr: {Rule{Size: 2 << 20}, func(s *scene) {
			eventually(s.T, "a flood", func() bool { return s.stdio.stderr.Size() >= 2<<20 })
			s.alive()
		}, false, false},
		IgnoreTerm: {Rule{}, func(s *scene) {
			s.struck()
			terminate(s.stdio.cmd)
			s.alive()
			_ = s.stdio.stdin.Close()
			s.seen().never(s, "the end", func() bool { return s.seen().ended })
			if !s.stdio.running() {
				s.Error("the process ended")
			}
		}, false, false},
		StopReading: {Rule{}, func(s *scene) {
			s.struck()
			s.send(ping)
			_ = s.stdio.stdin.Close()
			s.seen().never(s, "an answer or the end", func() bool { return s.seen().answers["9"] > 0 || s.seen().ended })
			terminate(s.stdio.cmd)
			s.stdio.waitExit()
		}, false, false},
		LeaveChild: {Rule{}, func(s *scene) {
			child := s.child()
			_ = s.stdio.stdin.Close()
			s.stdio.waitExit()
			s.seen().must(s, "the end of stdout", func() bool { return s.seen().ended })
			if !alive(child) {
				s.Error("the child ended with the server")
			}
		}, false, false},
		LeaveChildHoldingPipes: {Rule{}, func(s *scene) {
			child := s.child()
			_ = s.stdio.stdin.Close()
			s.stdio.waitExit()
			s.seen().never(s, "the end of stdout", func() bool { return s.seen().ended })
			if !alive(child) {
				s.Error("the child ended with the server")
			}
		}, false, false},
	}
}

// struck waits until the fault stands in the ledger, and has had its turn.
func (s *scene) struck() {
	s.Helper()
	eventually(s.T, "the fault", func() bool { return len(readLedger(s.T, s.script.Dir).Of(KindStruck)) == 1 })
	if s.place != AtStart {
		time.Sleep(20 * time.Millisecond) // the entry comes first
	}
}

// child waits for the child that the server left.
func (s *scene) child() int {
	s.Helper()
	var children Ledger
	eventually(s.T, "a child", func() bool {
		children = readLedger(s.T, s.script.Dir).Of(KindChild)
		return len(children) == 1
	})
	return children[0].Child
}

// eventually waits for something that tells nobody when it happens.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came: %s", what)
		}
	}
}
