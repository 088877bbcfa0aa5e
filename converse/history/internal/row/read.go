// SPDX-License-Identifier: Apache-2.0

package row

import (
	"iter"

	"github.com/consort-go/consort/canister"
)

// Extent is the state of a conversation when a loop over it begins.
type Extent struct {
	ID     string
	Key    int64 // in its table
	Length int
}

// Want describes a page to read: the canisters from the position At up to To, or fewer
// if they reach that number of bytes.
type Want struct {
	Extent
	At, To, Bytes int
}

// The size of a page.
const (
	PageRows  = 500
	PageBytes = 1 << 20
)

// The first page is smaller, since many loops end after the first canister; but a short
// end of a conversation is one page.
const (
	firstRows  = 16
	firstBytes = 64 << 10
	shortEnd   = 128
)

// Read yields the canisters of a conversation except the first after ones. It holds one
// page in memory at a time, and loads the next when that is consumed. It calls usable
// before each canister. The function page returns at least one canister, or an error
// and the canisters before the failure.
func Read(after int, usable func() error, extent func() (Extent, error), page func(Want) ([]canister.Canister, error)) iter.Seq2[canister.Canister, error] {
	return func(yield func(canister.Canister, error) bool) {
		from, err := extent()
		if err != nil {
			yield(nil, err)
			return
		}
		want := Want{Extent: from, At: max(after, 0), Bytes: firstBytes}
		want.To = want.At + firstRows
		if from.Length-want.At <= shortEnd {
			want.To = from.Length
		}
		for want.At < from.Length {
			canisters, failed := page(want)
			for _, c := range canisters {
				if err := usable(); err != nil {
					yield(nil, err)
					return
				}
				if !yield(c, nil) {
					return
				}
			}
			if failed != nil {
				yield(nil, failed)
				return
			}
			want.At += len(canisters)
			want.To, want.Bytes = min(want.At+PageRows, from.Length), PageBytes
		}
	}
}
