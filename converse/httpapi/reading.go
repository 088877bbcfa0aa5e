// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"strconv"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/listpage"
	"github.com/consort-go/consort/internal/sender"
)

// The bounds of one page of a list.
const (
	defaultPage = 50
	maxPage     = 500
)

// number returns a parameter of the query.
func number(r *http.Request, name string, otherwise, most int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, invalid(name, "It is not a number from 0 to "+strconv.Itoa(most)+".", "Use such a number, or leave it out.")
	}
	return n, nil
}

// list lists the conversations of the caller, the most recently changed first.
func (h *handler) list(w http.ResponseWriter, r *http.Request) error {
	owner, err := h.owner(r.Context())
	if err != nil {
		return err
	}
	limit, err := number(r, "limit", defaultPage, maxPage)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	filter := history.Filter{Owner: owner, Text: query.Get("text"), Tags: query["tag"]}
	var after listpage.Place
	if text := query.Get("after"); text != "" {
		if after, err = listpage.Parse(text); err != nil {
			return invalid("after", "It is not a value of the member next of a list.", "Send that of the previous page, or leave it out.")
		}
	}
	answer := struct {
		Conversations []info `json:"conversations"`
		Next          string `json:"next,omitzero"`
	}{Conversations: []info{}}
	found, isLast, err := listpage.Read(r.Context(), h.store, filter, after, max(limit, 1), func(i history.Info) bool { return i.Owner == owner })
	if err != nil {
		return err
	}
	for _, one := range found {
		answer.Conversations = append(answer.Conversations, infoOf(one))
	}
	if !isLast {
		answer.Next = listpage.After(found[len(found)-1]).String()
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

// history writes canisters of a conversation.
func (h *handler) history(w http.ResponseWriter, r *http.Request) error {
	found, err := h.owned(r)
	if err != nil {
		return err
	}
	after, err := number(r, "after", 0, maxPosition)
	if err != nil {
		return err
	}
	limit, err := number(r, "limit", maxPage, maxPage)
	if err != nil {
		return err
	}
	answer := struct {
		Length    int              `json:"length"`
		Canisters []placedCanister `json:"canisters"`
	}{found.Length, []placedCanister{}}
	size := int64(0)
	for c, err := range h.store.Read(r.Context(), found.ID, after) {
		if err != nil {
			return err
		}
		line, err := canister.Marshal(sender.Without(c))
		if err != nil {
			return err
		}
		size += int64(len(line))
		if len(answer.Canisters) == max(limit, 1) || size > maxPageSize && len(answer.Canisters) > 0 {
			break
		}
		after++
		answer.Canisters = append(answer.Canisters, placedCanister{after, line})
	}
	if len(answer.Canisters) > 0 {
		answer.Length = max(found.Length, after)
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

// maxPageSize bounds the canisters of one response, in bytes. One canister is always there.
const maxPageSize = 8 << 20
