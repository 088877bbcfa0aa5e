// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/consort-go/consort/canister"
)

// pages serves a conversation whose canister n has the ID n, and records the
// requests.
type pages struct {
	length, most int // canisters, and how many of them a page has for their bytes
	wants        []string
	lacks        int // the index of a canister that is an error
}

var errLacks, errClosed = errors.New("the row is missing"), errors.New("closed")

func (p *pages) page(want Want) (canisters []canister.Canister, err error) {
	p.wants = append(p.wants, fmt.Sprintf("%d-%d in %d", want.At, want.To, want.Bytes))
	for at := want.At; at < want.To && len(canisters) < p.most; at++ {
		if at == p.lacks {
			return canisters, errLacks
		}
		canisters = append(canisters, canister.User{Head: canister.Head{ID: fmt.Sprint(at)}})
	}
	return canisters, nil
}

// read reads after an index, and stops after so many canisters.
func (p *pages) read(after, most int, usable func() error) (n int, err error) {
	length := func() (Extent, error) { return Extent{Length: p.length}, nil }
	for c, err := range read(after, usable, length, p.page) {
		if err != nil {
			return n, err
		}
		if want := fmt.Sprint(max(after, 0) + n); c.Header().ID != want {
			return n, fmt.Errorf("canister %s, want %s", c.Header().ID, want)
		}
		if n++; n == most {
			break
		}
	}
	return n, nil
}

func open() error { return nil }

func TestPages(t *testing.T) {
	for name, test := range map[string]struct {
		length, after, most int // canisters to look at
		full                int // canisters of a page
		wants               []string
	}{
		"nothing":                   {0, 0, -1, 9999, nil},
		"behind the end":            {7, 7, -1, 9999, nil},
		"far behind it":             {7, 9, -1, 9999, nil},
		"a short one":               {7, 0, -1, 9999, []string{"0-7 in 65536"}},
		"from before the beginning": {7, -3, -1, 9999, []string{"0-7 in 65536"}},
		"the end of a long one":     {100_000, 99_872, -1, 9999, []string{"99872-100000 in 65536"}},
		"the first of many":         {100_000, 1000, 1, 9999, []string{"1000-1016 in 65536"}},
		"a section":                 {100_000, 1000, 17, 9999, []string{"1000-1016 in 65536", "1016-1516 in 1048576"}},
		"a page too far from an end": {1129, 1000, -1, 9999,
			[]string{"1000-1016 in 65536", "1016-1129 in 1048576"}},
		"all":       {1000, 0, -1, 9999, []string{"0-16 in 65536", "16-516 in 1048576", "516-1000 in 1048576"}},
		"long ones": {10, 0, -1, 4, []string{"0-10 in 65536", "4-10 in 1048576", "8-10 in 1048576"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pages{length: test.length, most: test.full, lacks: -1}
			n, err := p.read(test.after, test.most, open)
			want := max(0, test.length-max(test.after, 0))
			if test.most > 0 {
				want = test.most
			}
			if err != nil || n != want || !slices.Equal(p.wants, test.wants) {
				t.Errorf("%d canisters, want %d; %v; pages %q, want %q", n, want, err, p.wants, test.wants)
			}
		})
	}
}

// The canisters before what an error is about come before it, and nothing comes
// of a store that was closed meanwhile.
func TestErrors(t *testing.T) {
	p := &pages{length: 1000, most: 9999, lacks: 20}
	if n, err := p.read(0, -1, open); n != 20 || !errors.Is(err, errLacks) {
		t.Errorf("%d canisters, and %v", n, err)
	}
	looked := 0
	if n, err := p.read(0, -1, func() error {
		if looked++; looked > 3 {
			return errClosed
		}
		return nil
	}); n != 3 || !errors.Is(err, errClosed) {
		t.Errorf("%d canisters, and %v", n, err)
	}
	lost := func() (Extent, error) { return Extent{}, errClosed }
	for c, err := range read(0, open, lost, p.page) {
		if c != nil || !errors.Is(err, errClosed) {
			t.Errorf("%v, and %v", c, err)
		}
	}
}
