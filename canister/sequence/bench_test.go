// SPDX-License-Identifier: Apache-2.0

package sequence_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
)

func BenchmarkHistory(b *testing.B) {
	history := conversation(rand.New(rand.NewPCG(1, 2)), 1000)
	var lines bytes.Buffer
	if err := canister.Encode(&lines, history...); err != nil {
		b.Fatal(err)
	}
	discard := struct{ io.Writer }{io.Discard} // with io.Discard itself, Encode only checks
	for name, work := range map[string]func(){
		"Encode": func() { _ = canister.Encode(discard, history...) },
		"Decode": func() {
			for range canister.Decode(bytes.NewReader(lines.Bytes())) {
			}
		},
		"Check":   func() { sequence.Check(history) },
		"Repair":  func() { sequence.Repair(history) },
		"Pending": func() { canister.Pending(history) },
	} {
		b.Run(fmt.Sprintf("%s/%d", name, len(history)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				work()
			}
		})
	}
}
