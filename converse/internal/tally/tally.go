// SPDX-License-Identifier: Apache-2.0

// Package tally counts the use of the model and tools by a piece of work.
package tally

import (
	"sync"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker/telemetry"
)

// Tally is the use of the model and tools by a piece of work, including its tools'
// exchanges.
type Tally struct {
	mu          sync.Mutex
	exchanges   int // begun, including failed ones
	invocations int
	usage       canister.Usage
	finish      canister.Finish // of the latest exchange
}

// Exchange counts an exchange.
func (s *Tally) Exchange(message canister.Assistant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exchanges++
	if message.Usage != nil {
		s.usage = s.usage.Add(*message.Usage)
	}
	if message.Finish != "" {
		s.finish = message.Finish
	}
}

// Invocation counts an invocation.
func (s *Tally) Invocation() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.invocations++
}

// Result returns the use so far. reason says why the work ended.
func (s *Tally) Result(reason string) telemetry.AgentResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	return telemetry.AgentResult{
		Reason: reason, Usage: s.usage, Exchanges: s.exchanges, Invocations: s.invocations, Finish: string(s.finish),
	}
}
