// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
)

// paging is a server with paged lists: page writes the items of a page, by its number
// from 0, and the next cursor.
func paging(t *testing.T, page func(n int) (items, next string), members ...string) *mcptest.Scripted {
	return mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
		member := strings.TrimSuffix(m.Method, "/list")
		switch {
		case m.Method == "initialize":
			mcptest.Reply(w, m, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"scripted","version":"1"}}`)
		case !slices.Contains(members, member):
			return false
		default:
			var params struct{ Cursor string }
			_ = json.Unmarshal(m.Params, &params)
			n, _ := strconv.Atoi(params.Cursor)
			items, next := page(n)
			mcptest.Reply(w, m, fmt.Sprintf(`{%q:%s,"nextCursor":%q}`, member, items, next))
		}
		return true
	})
}

// described writes items of any list, from one number up to another.
func described(from, to int, description string) string {
	items := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		items = append(items, fmt.Sprintf(`{"name":"n%d","uri":"x:%d","inputSchema":{"type":"object"},"description":%q}`, i, i, description))
	}
	return "[" + strings.Join(items, ",") + "]"
}

// TestEndlessLists: no list keeps a client busy indefinitely or fills its memory.
func TestEndlessLists(t *testing.T) {
	large := described(0, 1, strings.Repeat("x", 1<<19))
	for want, page := range map[string]func(int) (string, string){
		"more than 1000 pages":    func(n int) (string, string) { return "[]", strconv.Itoa(n + 1) },
		"does not end":            func(n int) (string, string) { return described(n, n+1, ""), strconv.Itoa((n + 1) % 3) },
		"more than 4194304 bytes": func(n int) (string, string) { return large, strconv.Itoa(n + 1) },
		"4194304 bytes":           func(n int) (string, string) { return "[]", fmt.Sprintf("%0*d", 1<<19, n+1) }, // of cursors
		"the list":                func(int) (string, string) { return `{"a":1}`, "" },
	} {
		c := mcptest.Open(t, mcpadapter.HTTP(paging(t, page, "tools", "resources").URL, &mcpadapter.HTTPOptions{
			ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25", MaxMessage: 1 << 20},
		}))
		_, err := c.List(mcptest.Within(t))
		if invoker.AsFailure(err).Code != invoker.Protocol || !strings.Contains(err.Error(), want) {
			t.Errorf("tools: %v, want %s", err, want)
		}
		_, err = c.(ensemble.Library).Resources(mcptest.Within(t))
		if invoker.AsFailure(err).Code != invoker.Protocol || !strings.Contains(err.Error(), want) {
			t.Errorf("resources: %v, want %s", err, want)
		}
	}
}

// TestLongLists: resources beyond the limit are omitted, and so are invalid ones.
func TestLongLists(t *testing.T) {
	asked := 0
	s := paging(t, func(n int) (string, string) {
		if n == 0 {
			return `[null, 7, "x:a", [], {}, {"uri":7}, {"uri":"x:odd","size":"large"}]`, "1"
		}
		asked = n
		return described(n*4000, (n+1)*4000, ""), strconv.Itoa(n + 1)
	}, "resources")
	e := ensemble.New("long", mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25"}}), nil)
	defer e.Close(mcptest.Within(t))
	listed, aside, err := e.Resources(mcptest.Within(t))
	if err != nil || len(listed) != 10_000 || listed[0].URI != "x:odd" || asked != 3 {
		t.Fatalf("%d resources, %v, after %d pages", len(listed), err, asked)
	}
	if len(aside) != 1 || !strings.Contains(aside[0].Reason, "more than 10000 resources") {
		t.Errorf("aside: %v", aside)
	}
}
