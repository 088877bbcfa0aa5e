// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/testing/pgtest"
	"github.com/consort-go/consort/internal/testing/storetest"
)

// A search whose connection is lost between its words finds the same.
func TestSearchOverAConnectionThatIsLost(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	between := newWall(t, must(url.Parse(dsn)).Host)
	store := openAt(t, as(t, dsn, "", "", "", between.Addr().String()), nil)
	for id, text := range map[string]string{"both": "alpha omega", "first": "alpha", "second": "omega"} {
		storetest.Add(t, store, id, 0, text)
	}
	for _, limit := range []int{0, 10} {
		last := "%omega%"
		between.cut.Store(&last)
		var found []string
		for info, err := range store.List(patient(t), history.Filter{Text: "alpha omega", Limit: limit}) {
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, info.ID)
		}
		if fmt.Sprint(found) != "[both]" {
			t.Errorf("with the limit %d the search finds %q", limit, found)
		}
		if between.cut.Load() != nil {
			t.Error("no connection was cut")
		}
	}
}
