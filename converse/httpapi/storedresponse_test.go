// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
)

// changing is a store in which a conversation changes just after its next Info.
type changing struct {
	history.Store
	isGrowing   atomic.Bool // the last canister comes after the Info
	isDeleting  atomic.Bool // the conversation is deleted after the Info
	isBeginning atomic.Bool // the conversation is begun after the Info
}

func (c *changing) Info(ctx context.Context, id string) (history.Info, error) {
	info, err := c.Store.Info(ctx, id)
	if err == nil && c.isGrowing.CompareAndSwap(true, false) {
		info.Length--
	}
	if err == nil && c.isBeginning.CompareAndSwap(true, false) {
		return history.Info{}, history.ErrNotFound
	}
	if err == nil && c.isDeleting.CompareAndSwap(true, false) {
		err = c.Store.Delete(ctx, id, history.AnyLength)
	}
	return info, err
}

// TestCancelOfAGrowingResponse: a response whose log grows while it is read is cancelled.
func TestCancelOfAGrowingResponse(t *testing.T) {
	store, begun := &changing{Store: history.NewMemory()}, make(chan struct{}, 1)
	blocks := func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		if !strings.HasPrefix(lastText(request), "did ") {
			echo(ctx, request, yield)
			return
		}
		begun <- struct{}{}
		<-ctx.Done()
		yield(nil, ctx.Err())
	}
	s := serveStore(t, store, nil, blocks, nil, nil)
	form := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "call: it", "background": true}).form
	<-begun
	store.isGrowing.Store(true)
	got := s.want(http.StatusOK, "POST", "/v1/responses/"+form["id"].(string)+"/cancel", nil).form
	if got["status"] != "cancelled" {
		t.Errorf("got %v", got)
	}
}

// TestResponseOfADeletedConversation: a response whose conversation is deleted while it is read does
// not exist.
func TestResponseOfADeletedConversation(t *testing.T) {
	for _, c := range []struct {
		method, path string
		body         func(id any) any
	}{
		{"GET", "/v1/responses/ID", func(any) any { return nil }},
		{"POST", "/v1/responses/ID/cancel", func(any) any { return nil }},
		{"POST", "/v1/responses", func(id any) any { return object{"input": "more", "previous_response_id": id} }},
	} {
		store := &changing{Store: history.NewMemory()}
		s := serveStore(t, store, nil, echo, nil, nil)
		form := s.want(http.StatusOK, "POST", "/v1/responses", object{"input": "hello"}).form
		store.isDeleting.Store(true)
		got := s.want(http.StatusNotFound, c.method, strings.Replace(c.path, "ID", form["id"].(string), 1), c.body(form["id"]))
		if !strings.Contains(got.text, `"response_not_found"`) {
			t.Errorf("%s %s: got %s", c.method, c.path, got.text)
		}
	}
}
