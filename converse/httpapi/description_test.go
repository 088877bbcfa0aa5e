// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestBoundsOfDescriptions: a page of a list has up to 500 titles with their tags, so each has a bound.
func TestBoundsOfDescriptions(t *testing.T) {
	s := serve(t, echo, nil, nil)
	tags := make([]string, 33)
	for i := range tags {
		tags[i] = fmt.Sprintf("%02d", i) + strings.Repeat("t", 254)
	}
	title := strings.Repeat("ä", 256)
	created := s.want(http.StatusCreated, "POST", "/api/conversations", object{"message": "hello", "title": title, "tags": tags[:32]})
	if got := created.form["tags"].([]any); created.form["title"] != title || len(got) != 32 || got[31] != tags[31] {
		t.Errorf("the description is %s", created.text)
	}
	s.want(http.StatusCreated, "POST", created.header.Get("Location")+"/fork", object{})
	for _, one := range []struct {
		param string
		form  object
	}{
		{"title", object{"title": title + "ä"}},
		{"tags", object{"tags": tags}},
		{"tags", object{"tags": slices.Repeat([]string{"t"}, 33)}},
		{"tags", object{"tags": []string{"t", tags[0] + "t"}}},
	} {
		one.form["message"] = "hello"
		refused := s.want(http.StatusBadRequest, "POST", "/api/conversations", one.form)
		if got := refused.form["error"].(object); got["code"] != "invalid_request" || got["param"] != one.param {
			t.Errorf("%s: %s", one.param, refused.text)
		}
	}
	if all := s.want(http.StatusOK, "GET", "/api/conversations", nil).form["conversations"].([]any); len(all) != 2 {
		t.Errorf("there are %d conversations", len(all))
	}
}
