// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/files"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/histories"
	"github.com/creack/pty"
)

// climate is a conversation with the word snow in each of its parts.
func climate(t *testing.T, store history.Store) {
	t.Helper()
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	head := func(id string) canister.Head { at = at.Add(time.Second); return canister.Head{ID: id, Time: at} }
	if err := store.Append(t.Context(), "climate", 0,
		canister.User{Head: head("u"), Content: canister.Texts("Is there SNOW in Tromsø?")},
		canister.Assistant{Head: head("a")},
		canister.Invocation{Head: head("i"), Message: "a", CallID: "c", Name: "atlas__weather", Arguments: `{"city":"Tromsø","kind":"snow"}`},
		canister.Result{
			Head: head("r"), Invocation: "i",
			Content: canister.Texts(strings.Repeat("fog ", 200) + "then snow\u202e at\nlast " + strings.Repeat("rain ", 200)),
		},
		canister.Assistant{Head: head("b"), Content: canister.Texts("Yes, snow in Tromsø.")},
		canister.User{Head: head("v"), Content: canister.Texts("Thanks. No more weather.")},
		canister.Assistant{Head: head("w"), Content: canister.Texts("Bye.")},
	); err != nil {
		t.Fatal(err)
	}
}

// A search shows where the words are, in each store.
func TestSearchShowsThePlaces(t *testing.T) {
	t.Parallel()
	sqlite := file(t, historyTable)
	climate(t, open(t, sqlite))
	folder := file(t, "[history]\nstore = \"files\"\npath = \"talks\"\n")
	store, err := files.Open(filepath.Join(filepath.Dir(folder), "talks"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	climate(t, store)
	for _, path := range []string{sqlite, folder} {
		searchClimate(t, run{}, path)
	}
}

func TestSearchShowsThePlacesOnAServer(t *testing.T) {
	t.Parallel()
	table, r, store := onServer(t)
	climate(t, store)
	searchClimate(t, r, file(t, table))
}

func searchClimate(t *testing.T, r run, path string) {
	t.Helper()
	search := func(args ...string) histories.Found {
		t.Helper()
		var list histories.FoundList
		o := r.consort(t, append([]string{"history", "search", "--json", "--config", path}, args...)...).expect(t, exit.Done)
		if err := json.Unmarshal([]byte(o.stdout), &list); err != nil || len(list.Conversations) != 1 || list.Conversations[0].ID != "climate" {
			t.Fatalf("%v: %s", err, o.stdout)
		}
		return list.Conversations[0]
	}
	places := func(found histories.Found) (all string) {
		for _, hit := range found.Hits {
			all += fmt.Sprintf("%d %s %s %q; ", hit.Number, hit.Kind, hit.Tool, hit.Match)
		}
		return fmt.Sprintf("%s%d more", all, found.More)
	}
	for args, want := range map[string]string{
		"snow --hits 0":        `1 user  "SNOW"; 3 invocation atlas__weather "snow"; 4 result atlas__weather "snow"; 5 assistant  "snow"; 0 more`,
		"snow":                 `1 user  "SNOW"; 3 invocation atlas__weather "snow"; 4 result atlas__weather "snow"; 1 more`,
		"tromsø snow --hits 3": `1 user  "SNOW"; 3 invocation atlas__weather "Tromsø"; 5 assistant  "snow"; 1 more`,
		"thanks":               `6 user  "Thanks"; 0 more`,
	} {
		if got := places(search(strings.Fields(args)...)); got != want {
			t.Errorf("%s: %s", args, got)
		}
	}
	hit := search("snow", "--hits", "0").Hits[2]
	if !strings.HasPrefix(hit.Before, "…fog") || !strings.HasSuffix(hit.Before, "fog then ") || !strings.HasPrefix(hit.After, "<U+202E> at last rain") ||
		!strings.HasSuffix(hit.After, "rain…") || len(hit.Before+hit.After) > 200 || hit.Time.Location() != time.UTC {
		t.Errorf("%+v", hit)
	}
	o := r.consort(t, "history", "search", "snow", "--time-zone", "Europe/Oslo", "--config", path).expect(t, exit.Done)
	contains(t, "the places", o.stdout, "climate Is there SNOW in Tromsø?\n", "  1 user, 2026-07-01 14:00:01 CEST\n    Is there SNOW in Tromsø?\n",
		"  3 invocation atlas__weather, 2026-07-01 14:00:03 CEST\n", "  1 more; see ", "history show climate")
	lacks(t, "the places", o.stdout, "\x1b", "\u202e")
	r.consort(t, "history", "search", "snow", "--hits", "-1", "--config", path).expect(t, exit.Usage)
	r.consort(t, "history", "search", "snow", "--time-zone", "Mars/Olympus", "--config", path).expect(t, exit.Usage)
}

// On a terminal the words are marked, and no line is longer than the terminal is wide.
func TestSearchFitsTheTerminal(t *testing.T) {
	t.Parallel()
	path := file(t, historyTable)
	climate(t, open(t, path))
	for _, wide := range []int{40, 80} {
		x := run{env: []string{"TZ=Europe/Oslo"}}.onTerminalOf(
			t, pty.Winsize{Rows: 40, Cols: uint16(wide)}, "history", "search", "snow", "Tromsø", "--config", path,
		)
		text := x.ends(exit.Done)
		contains(t, "the screen", text, "\x1b[1mSNOW\x1b", "\x1b[1mTromsø\x1b", "CEST")
		for line := range strings.Lines(colour.ReplaceAllString(text, "")) {
			if n := len([]rune(strings.TrimRight(line, "\r\n"))); n > wide {
				t.Errorf("at %d columns a line has %d: %q", wide, n, line)
			}
		}
	}
}

// A secret is not found, and a place that is cut within one shows no part of it.
func TestSearchShowsNoSecrets(t *testing.T) {
	t.Parallel()
	path := file(t, historyTable, "[trusted]\nkey = {value = \"hunter2-4711\", secret = true}\n")
	said := canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("snow " + strings.Repeat("hunter2-4711", 40))}
	if err := open(t, path).Append(t.Context(), "a", 0, said); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"snow"}, {"snow", "--json"}, {"hunter2"}, {"hunter2", "--json"}} {
		o := consort(t, append([]string{"history", "search", "--config", path}, args...)...).expect(t, exit.Done)
		lacks(t, strings.Join(args, " "), o.stdout, "unter2-", "4711", "2-47")
	}
}

// Times are those of the zone that TZ or the flag names.
func TestHistoryHasLocalTimes(t *testing.T) {
	t.Parallel()
	path := file(t, historyTable)
	climate(t, open(t, path))
	for _, args := range []string{"show climate", "export climate --format markdown", "export climate --format html"} {
		o := run{env: []string{"TZ=Europe/Oslo"}}.consort(t, append([]string{"history", "--config", path}, strings.Fields(args)...)...).expect(t, exit.Done)
		contains(t, args, o.stdout, "2026-07-01 14:00:01 CEST")
		o = run{env: []string{"TZ=Europe/Oslo"}}.consort(
			t, append([]string{"history", "--config", path, "--time-zone", "Asia/Tokyo"}, strings.Fields(args)...)...,
		).expect(t, exit.Done)
		contains(t, args, o.stdout, "2026-07-01 21:00:01 JST")
	}
	o := run{env: []string{"TZ=Europe/Oslo"}}.consort(t, "history", "show", "climate", "--json", "--config", path).expect(t, exit.Done)
	contains(t, "JSON", o.stdout, "2026-07-01T12:00:01Z")
}

// On a terminal, Markdown of people and models is rendered; for programs and in results it is
// as it was written.
func TestShowRendersMarkdown(t *testing.T) {
	t.Parallel()
	path := file(t, historyTable)
	if err := open(t, path).Append(t.Context(), "a", 0,
		canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Is it **cold**?")},
		canister.Assistant{Head: canister.Head{ID: "m"}},
		canister.Invocation{Head: canister.Head{ID: "i"}, Message: "m", CallID: "c", Name: "atlas__weather", Arguments: `{}`},
		canister.Result{Head: canister.Head{ID: "r"}, Invocation: "i", Content: canister.Texts("**-3**")},
		canister.Assistant{Head: canister.Head{ID: "n"}, Content: canister.Texts("It is **-3** °C.")},
	); err != nil {
		t.Fatal(err)
	}
	plain := consort(t, "history", "show", "a", "--config", path).expect(t, exit.Done).stdout
	contains(t, "the text", plain, "\nIs it **cold**?\n", "\n3 invocation atlas__weather\n{}\n4 result\n**-3**\n", "\nIt is **-3** °C.\n")
	lacks(t, "the text", plain, "2 assistant")
	contains(t, "standard error", consort(t, "history", "show", "a", "--config", path).stderr, "not shown (1 here). --full shows them.")
	contains(t, "the whole", consort(t, "history", "show", "a", "--full", "--config", path).expect(t, exit.Done).stdout, "\n2 assistant\n")
	shown := run{}.onTerminal(t, "history", "show", "a", "--config", path).ends(exit.Done)
	contains(t, "the screen", colour.ReplaceAllString(shown, ""), "Is it cold?", "**-3**\r\n", "It is -3 °C.")
}
