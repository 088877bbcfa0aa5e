// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/files"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/testing/consolestage"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// damage makes a file of a conversation of a store unreadable.
func damage(t *testing.T, parts ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(parts...), []byte("{]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A search that cannot look into a conversation says so, also if its page is full.
func TestSearchSaysWhatIsUnread(t *testing.T) {
	store := &away{Store: history.NewMemory()}
	store.after.Store(-1)
	s := consolestage.Start(t, consolestage.Options{Store: store})
	for i := range 60 {
		stored(t, store, fmt.Sprint("plan", i), "owner-ada")
	}
	ada := s.Login(t, consolestage.Ada)
	store.after.Store(1)
	if page := ada.Get("/conversations?failed=1").Text; !strings.Contains(page, neutral) {
		t.Errorf("the page of a search:\n%s", page)
	}
	store.after.Store(-1)
	s.Console.Store = partly{store}
	if page := ada.Get("/conversations").Text; !strings.Contains(page, neutral) || !strings.Contains(page, "Older conversations") {
		t.Errorf("a full page:\n%s", page)
	}
}

// partly is a store that cannot read one more conversation.
type partly struct{ history.Store }

func (p partly) List(ctx context.Context, filter history.Filter) iter.Seq2[history.Info, error] {
	return func(yield func(history.Info, error) bool) {
		if yield(history.Info{}, io.ErrUnexpectedEOF) {
			p.Store.List(ctx, filter)(yield)
		}
	}
}

const neutral = "The log of the server says which"

// A damaged conversation is named to auditors and operators only. Others read that there is one, and
// their exports go on without it unless it is theirs; the log names it.
func TestDamagedConversations(t *testing.T) {
	dir := t.TempDir()
	store, err := files.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	core, logged := observer.New(zap.WarnLevel)
	s := consolestage.Start(t, consolestage.Options{Store: store, Logger: zap.New(core)})
	for id, owner := range map[string]string{"own": "owner-ada", "own-too": "owner-ada", "foreign": "owner-ben", "private": "owner-ben"} {
		stored(t, store, id, owner)
	}
	damage(t, dir, "foreign", "info.json")
	damage(t, dir, "private", "history.jsonl")
	ada, ops := s.Login(t, consolestage.Ada), s.Login(t, consolestage.Ops)
	hidden := func(where, text string) {
		t.Helper()
		for _, secret := range []string{dir, "foreign", "private"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s names %s:\n%s", where, secret, text)
			}
		}
	}
	for _, path := range []string{"/", "/waiting", "/conversations", "/conversations?q=plan", "/spend"} {
		page := ada.Get(path).Text
		if hidden(path, page); !strings.Contains(page, neutral) {
			t.Errorf("%s does not say that conversations are missing:\n%s", path, page)
		}
		if page := ops.Get(path).Text; !strings.Contains(page, filepath.Join(dir, "foreign")) {
			t.Errorf("%s does not name the conversation to an operator:\n%s", path, page)
		}
	}
	if n := logged.FilterField(logevent.ConsoleUnread).FilterMessage("conversations cannot be read").Len(); n == 0 || n > 4 {
		t.Errorf("the log has %d lines, want one for each reason", n)
	}
	if reply := ops.Get("/spend.json"); reply.StatusCode != http.StatusInternalServerError || !strings.Contains(reply.Text, dir) {
		t.Errorf("the export of an operator: %s\n%s", reply.Status, reply.Text)
	}
	if reply := ada.Get("/spend.json"); reply.StatusCode != http.StatusOK {
		t.Errorf("the export of a person: %s\n%s", reply.Status, reply.Text)
	}
	damage(t, dir, "own-too", "history.jsonl")
	reply := ada.Get("/spend.json")
	if reply.StatusCode != http.StatusInternalServerError || !strings.Contains(reply.Text, "the log of the server says which") {
		t.Errorf("an export without a conversation of the person: %s\n%s", reply.Status, reply.Text)
	} else {
		hidden("the export", reply.Text)
	}
}
