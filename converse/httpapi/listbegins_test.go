// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/consort-go/consort/converse/history"
)

// begins is a store in which the caller's first conversation begins while the caller lists none.
type begins struct {
	history.Store
	lists atomic.Int32
}

func (b *begins) List(ctx context.Context, f history.Filter) iter.Seq2[history.Info, error] {
	if f.Owner != "" && b.lists.Add(1) == 1 {
		return func(func(history.Info, error) bool) {}
	}
	return b.Store.List(ctx, f)
}

// A list that is empty when it is read, and has a conversation a moment later, is an answer.
func TestListWhileTheFirstBegins(t *testing.T) {
	store := &begins{Store: history.NewMemory()}
	store.lists.Store(1)
	s := serveStore(t, store, nil, uses, nil, nil)
	id := s.create("hello")
	store.lists.Store(0)
	request, _ := http.NewRequestWithContext(t.Context(), "GET", s.server.URL+"/api/conversations", nil)
	request.Header.Set(who, "ann")
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request) // does not repeat it
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var form struct {
		Conversations []struct{ ID string }
		Next          string
	}
	if err := json.NewDecoder(response.Body).Decode(&form); err != nil || response.StatusCode != http.StatusOK || form.Next != "" {
		t.Fatalf("%s, %v: %+v", response.Status, err, form)
	}
	if len(form.Conversations) != 1 || form.Conversations[0].ID != id {
		t.Errorf("the list is %+v, want %s", form, id)
	}
}
