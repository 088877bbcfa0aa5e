// SPDX-License-Identifier: Apache-2.0

// Package storetest provides helpers for tests of stores in databases, in addition to the
// suite that every store must pass: short ways to write to a store, checks of the
// promises of the tables, and other processes that write to the same store and are
// killed.
package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
)

// Says returns a user message.
func Says(id, text string) canister.Canister {
	return canister.User{Head: canister.Head{ID: id}, Content: canister.Texts(text)}
}

// Add appends texts to a conversation. The test fails if that is not possible.
func Add(t testing.TB, s history.Store, conversation string, length int, texts ...string) {
	t.Helper()
	var list []canister.Canister
	for i, text := range texts {
		list = append(list, Says(fmt.Sprintf("c%d", length+i), text))
	}
	if err := s.Append(t.Context(), conversation, length, list...); err != nil {
		t.Fatal(err)
	}
}

// Read returns the lines of a conversation, and the error that ended the read.
func Read(ctx context.Context, s history.Store, conversation string, after int) (lines []string, err error) {
	for c, err := range s.Read(ctx, conversation, after) {
		if err != nil {
			return lines, err
		}
		line, err := canister.Marshal(c)
		if err != nil {
			return lines, err
		}
		lines = append(lines, string(line))
	}
	return lines, nil
}

// Texts returns the texts of a conversation.
func Texts(t testing.TB, s history.Store, conversation string) (list []string) {
	t.Helper()
	for c, err := range s.Read(t.Context(), conversation, 0) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, history.TextOf(c))
	}
	return list
}

// Find returns the sorted IDs of the conversations that match a filter.
func Find(t testing.TB, s history.Store, filter history.Filter) string {
	t.Helper()
	var ids []string
	for info, err := range s.List(t.Context(), filter) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, info.ID)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}
