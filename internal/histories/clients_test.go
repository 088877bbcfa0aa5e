// SPDX-License-Identifier: Apache-2.0

package histories_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/histories"
)

// damaged is a store with a list that ends with conversations that cannot be read.
type damaged struct {
	history.Store
	fine, bad []history.Info
}

func (s damaged) List(context.Context, history.Filter) iter.Seq2[history.Info, error] {
	return func(yield func(history.Info, error) bool) {
		for _, info := range s.fine {
			if !yield(info, nil) {
				return
			}
		}
		for _, info := range s.bad {
			if !yield(info, errors.New("damaged")) {
				return
			}
		}
	}
}

// A part of a store has the errors about its conversations and about those whose owner is not known.
func TestListOnlyNextToDamage(t *testing.T) {
	now := time.Now()
	store := damaged{
		fine: []history.Info{{ID: "a", Owner: "ada", Changed: now}, {ID: "b", Owner: "ben", Changed: now}},
		bad:  []history.Info{{ID: "c", Owner: "ada", Changed: now}, {ID: "d", Owner: "ben", Changed: now}, {ID: "e"}},
	}
	var got []string
	for info, err := range histories.ListOnly(t.Context(), store, history.Filter{}, func(info history.Info) bool { return info.Owner == "ada" }) {
		if (err == nil) != (info.ID == "a") {
			t.Errorf("%s: %v", info.ID, err)
		}
		got = append(got, info.ID)
	}
	if want := []string{"a", "c", "e"}; !slices.Equal(got, want) {
		t.Errorf("listed are %q, want %q", got, want)
	}
}

// A full page of a part of a store has the errors, too, which a list has at its end.
func TestListOnlyFullNextToDamage(t *testing.T) {
	now := time.Now()
	store := damaged{
		fine: []history.Info{{ID: "a", Owner: "ada", Changed: now}, {ID: "b", Owner: "ada", Changed: now}},
		bad:  []history.Info{{ID: "c", Owner: "ben", Changed: now}, {ID: "d"}},
	}
	var got []string
	for info := range histories.ListOnly(t.Context(), store, history.Filter{Limit: 1}, func(info history.Info) bool { return info.Owner == "ada" }) {
		got = append(got, info.ID)
	}
	if want := []string{"a", "d"}; !slices.Equal(got, want) {
		t.Errorf("listed are %q, want %q", got, want)
	}
}
