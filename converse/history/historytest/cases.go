// SPDX-License-Identifier: Apache-2.0

package historytest

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/testing/suite"
)

// storeCases are the rules that apply to every store.
var storeCases = []storeCase{
	{"Append/read", "", "appended canisters are read back, starting at any index", appendRead},
	{"Append/nothing", "", "an append of nothing creates no conversation", appendNothing},
	{"Append/compare", "", "an append that expects another length changes nothing and is a conflict with both lengths", appendCompare},
	{"Append/again", "", "canisters that are already stored are not appended again; a part of them, or others, are a conflict", appendAgain},
	{"Append/whole", "", "an append with a canister that cannot be marshaled appends none, and is not a conflict", appendWhole},
	{"Append/race", "", "of concurrent appends that expect the same length one succeeds, and the others are conflicts", func(s *storeSubject) { s.race(s.store) }},
	{"Append/race-of-two", shared, "the same between two open stores", func(s *storeSubject) { s.race(s.store, s.open()) }},
	{"Append/race-of-same", "", "the same canisters, appended concurrently, are stored once, and every append succeeds", appendSame},
	{"Append/many", "", "many writers that retry lose nothing and keep their order", appendMany},
	{"Read/prefix", "", "a reader sees a prefix of whole appends while others append", func(s *storeSubject) { s.prefix(s.store) }},
	{"Read/prefix-of-two", shared, "the same if another open store appends", func(s *storeSubject) { s.prefix(s.open()) }},
	{"Read/snapshot", "", "a loop yields the canisters that existed when it started, and can be left early", readSnapshot},
	{"Read/long", "", "the end of a long conversation is read as fast as the end of a short one", readLong},
	{"Canisters/golden", "", "canisters of every version of the format are read back equal", canistersGolden},
	{"Canisters/odd", "", "unknown members, invalid UTF-8 and values of other programs are read back equal", canistersOdd},
	{"Canisters/large", "", "contents of every type and size are read back equal", canistersLarge},
	{"Histories/whole", "", "the log of a conversation is read back as it was written, whatever interrupted it, and has the same next step", histories},
	{"Histories/torn", "", "an append that a crash interrupted is stored completely or not at all, and can be repeated", historiesTorn},
	{"List/order", "", "the most recently changed conversation comes first", listOrder},
	{"List/filter", "", "List filters by tags, owner, open turns and times, also in combination", listFilter},
	{"List/search", "", "a search finds words of the title and of all messages, in any order and case", listSearch},
	{"List/limit", "", "a limit returns the first ones, and the loop can be left early", listLimit},
	{"List/deleting", "", "a list during which conversations are deleted yields no error", listDeleting},
	{"Describe", "", "title, tags and owner change independently, tags are sorted, and no canister changes", describeInfo},
	{"Info", "", "length, last kind and times are updated by appends", infoFollows},
	{"Fork/anywhere", "", "a fork starts with the first canisters of another conversation, of any number, and both continue independently", forkAnywhere},
	{"Fork/of-fork", "", "a fork remains when its origin is deleted, and so does a fork of the fork", forkOfFork},
	{"Fork/errors", "", "a fork of an unknown conversation is ErrNotFound, one to an existing conversation ErrExists, and neither changes anything", forkErrors},
	{"Delete/compare", "", "a delete that expects another length removes nothing and is a conflict with both lengths", deleteCompare},
	{"Delete/race", "", "of an append and deletes that run concurrently and expect the same length one succeeds, and the others fail", func(s *storeSubject) { s.raceDeletes(s.store, s.store) }},
	{"Delete/race-of-two", shared, "the same between two open stores", func(s *storeSubject) { s.raceDeletes(s.store, s.open()) }},
	{"Delete/frees", "", "a deleted conversation no longer exists, and its identity can be used again", deleteFrees},
	{"Identities/odd", "", "conversations with unusual identities are distinct", identitiesOdd},
	{"Identities/bad", "", "an invalid identity is an error without an effect", identitiesBad},
	{"Errors/not-found", "", "calls for a conversation that does not exist return ErrNotFound", errorsNotFound},
	{"End/context", "", "calls with a context that has ended have no effect and return its error", endContext},
	{"End/during", "", "a loop over canisters ends with the error of its context when that ends", endDuringRead},
	{"End/close", "", "a closed store returns ErrClosed, and can be closed again", endClose},
	{"Durable/all", durable, "everything is still there when the store is opened again", durableAll},
	{"Durable/appends", durable, "every append that has returned is still there when the store is opened again", durableAppends},
	{"Shared/seen", shared, "changes by one open store are visible in another at once", sharedSeen},
}

func appendRead(s *storeSubject) {
	all := numbered(0, 7)
	s.append("talk", 0, all[:1]...)
	s.append("talk", 1, all[1:4]...)
	s.append("talk", 4, all[4:]...)
	s.append("other", 0, says("c1", "another conversation"))
	for after := -1; after <= len(all)+2; after++ {
		s.equal("talk", s.read("talk", after), all[min(max(after, 0), len(all)):])
	}
	s.holds("other", says("c1", "another conversation"))
	s.missing("third")
}

func appendNothing(s *storeSubject) {
	s.append("talk", 0)
	s.missing("talk")
	s.conflict("talk", 0, 1)
	s.append("talk", 0, numbered(0, 2)...)
	s.append("talk", 2)
	s.conflict("talk", 2, 1)
	s.holds("talk", numbered(0, 2)...)
}

func appendCompare(s *storeSubject) {
	s.conflict("talk", 0, 1, says("x", "too far"))
	s.conflict("talk", 0, -1, says("x", "too near"))
	s.missing("talk")
	s.append("talk", 0, numbered(0, 3)...)
	for _, expected := range []int{-1, 0, 1, 2, 4, 1000, math.MaxInt} {
		s.conflict("talk", 3, expected, says("x", "wrong"))
	}
	s.holds("talk", numbered(0, 3)...)
}

func appendAgain(s *storeSubject) {
	all := numbered(0, 4)
	s.append("talk", 0, all...)
	changed := s.info("talk").Changed
	for from := range all {
		for to := from + 1; to <= len(all); to++ {
			s.append("talk", from, all[from:to]...)
		}
	}
	s.holds("talk", all...)
	if now := s.info("talk").Changed; !now.Equal(changed) {
		s.Errorf("Changed moves from %v to %v when nothing is appended", changed, now)
	}
	s.conflict("talk", 4, 2, all[2], all[3], says("c4", "partly there"))
	s.conflict("talk", 4, 2, all[3], all[2])
	s.conflict("talk", 4, 1, all[0])
	s.holds("talk", all...)

	anonymous := canister.User{Content: canister.Texts("A message without an identity.")}
	s.append("talk", 4, anonymous)
	s.conflict("talk", 5, 4, anonymous)
	s.append("talk", 5, anonymous)
	s.holds("talk", append(all, anonymous, anonymous)...)
}

func appendWhole(s *storeSubject) {
	bad := []canister.Canister{
		nil,
		&canister.User{},
		canister.User{Content: []canister.Content{nil}},
		canister.User{Head: canister.Head{Time: time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)}},
		canister.User{Content: []canister.Content{canister.StructuredContent{JSON: json.RawMessage("{")}}},
	}
	s.append("talk", 0, numbered(0, 2)...)
	for i, c := range bad {
		for conversation, length := range map[string]int{"talk": 2, "new": 0} {
			err := s.store.Append(s.context(), conversation, length, says("x", "good"), c, says("y", "good"))
			if conflict := new(history.ConflictError); err == nil || errors.As(err, &conflict) {
				s.Errorf("Append of the bad canister %d to %s: %v", i, conversation, err)
			}
		}
	}
	s.missing("new")
	s.holds("talk", numbered(0, 2)...)
}

// each calls f n times concurrently, and waits.
func (s *storeSubject) each(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

func (s *storeSubject) race(stores ...history.Store) {
	ctx := s.context()
	for round := range 12 {
		var won atomic.Int64
		s.each(8, func(i int) {
			pair := []canister.Canister{says(fmt.Sprintf("%d-%d-a", round, i), "first"), says(fmt.Sprintf("%d-%d-b", round, i), "second")}
			err := stores[i%len(stores)].Append(ctx, "talk", 2*round, pair...)
			var conflict *history.ConflictError
			switch {
			case err == nil:
				won.Add(1)
			case !errors.As(err, &conflict):
				s.Errorf("Append: %v", err)
			}
		})
		if won.Load() != 1 {
			s.Fatalf("%d of 8 appends at %d have succeeded", won.Load(), 2*round)
		}
		for _, store := range stores {
			list, err := suite.Collect(store.Read(ctx, "talk", 2*round))
			if err != nil || len(list) != 2 {
				s.Fatalf("after round %d: %s %v", round, identities(list), err)
			}
			a, b := list[0].Header().ID, list[1].Header().ID
			if strings.TrimSuffix(a, "a") != strings.TrimSuffix(b, "b") {
				s.Fatalf("two appends are mixed: %s, %s", a, b)
			}
		}
	}
}

func appendSame(s *storeSubject) {
	ctx := s.context()
	for round := range 8 {
		s.each(8, func(int) {
			if err := s.store.Append(ctx, "talk", 3*round, numbered(3*round, 3*round+3)...); err != nil {
				s.Errorf("Append: %v", err)
			}
		})
	}
	s.holds("talk", numbered(0, 24)...)
}

func appendMany(s *storeSubject) {
	const writers, each = 6, 15
	ctx := s.context()
	s.each(writers, func(i int) {
		length := 0
		for n := range each {
			for {
				err := s.store.Append(ctx, "talk", length, says(fmt.Sprintf("w%d-%d", i, n), "mine"))
				if err == nil {
					length++
					break
				}
				var conflict *history.ConflictError
				if !errors.As(err, &conflict) {
					s.Errorf("Append: %v", err)
					return
				}
				length = conflict.Length
			}
		}
	})
	next := [writers]int{}
	for _, c := range s.read("talk", 0) {
		var writer, n int
		if _, err := fmt.Sscanf(c.Header().ID, "w%d-%d", &writer, &n); err != nil || n != next[writer] {
			s.Fatalf("got %s, want number %d of this writer: %v", c.Header().ID, next[writer], err)
		}
		next[writer]++
	}
	for i, n := range next {
		if n != each {
			s.Errorf("want %d canisters of writer %d, got %d", each, i, n)
		}
	}
}

// prefix reads from a store while the subject's store is appended to.
func (s *storeSubject) prefix(reader history.Store) {
	const appends = 30
	ctx := s.context()
	var told atomic.Int64 // canisters whose append has returned
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range appends {
			if err := s.store.Append(ctx, "talk", 3*i, numbered(3*i, 3*i+3)...); err != nil {
				s.Errorf("Append: %v", err)
				return
			}
			told.Store(int64(3*i + 3))
		}
	}()
	defer func() { <-done }()
	for seen := 0; seen < 3*appends; {
		least := int(told.Load())
		list, err := suite.Collect(reader.Read(ctx, "talk", 0))
		if err != nil {
			s.Fatalf("Read: %v", err)
		}
		if len(list)%3 != 0 || len(list) < max(least, seen) {
			s.Fatalf("got %d canisters; %d were appended before in threes", len(list), max(least, seen))
		}
		s.equal("talk", list, numbered(0, len(list)))
		seen = len(list)
	}
}

func readSnapshot(s *storeSubject) {
	s.append("talk", 0, numbered(0, 5)...)
	length := 5
	for _, err := range s.store.Read(s.context(), "talk", 0) {
		if err != nil {
			s.Fatalf("Read: %v", err)
		}
		if length == 10 {
			s.Fatal("the loop yields a canister that was appended inside it")
		}
		s.append("talk", length, numbered(length, length+1)...)
		length++
	}
	for c, err := range s.store.Read(s.context(), "talk", 2) {
		if err != nil || c.Header().ID != "c2" {
			s.Fatalf("the loop begins with %v, %v", c, err)
		}
		break
	}
	s.holds("talk", numbered(0, 10)...)
}

func readLong(s *storeSubject) {
	// This measures only reading: a store that cannot find the end quickly has to read
	// the whole conversation, which takes a hundred times as long.
	const few, batch, tail = 1_000, 1_000, 5
	many := 100_000
	if shortened() {
		many = 10_000
	}
	fill := func(conversation string, length int) {
		for from := 0; from < length; from += batch {
			if err := s.store.Append(context.Background(), conversation, from, numbered(from, from+batch)...); err != nil {
				s.Fatalf("Append at %d: %v", from, err)
			}
		}
	}
	quickest := func(conversation string, length int) time.Duration {
		least := time.Duration(math.MaxInt64)
		for range 20 {
			start := time.Now()
			list := s.read(conversation, length-tail)
			least = min(least, time.Since(start))
			s.equal(conversation, list, numbered(length-tail, length))
		}
		return least
	}
	fill("short", few)
	fill("long", many)
	short, long := quickest("short", few), quickest("long", many)
	if long > 8*short+2*time.Millisecond {
		s.Errorf("reading the last %d canisters of %d takes %v, and of %d takes %v", tail, many, long, few, short)
	}
	count := 0
	for c, err := range s.store.Read(context.Background(), "long", 0) {
		if err != nil || c.Header().ID != fmt.Sprintf("c%d", count) {
			s.Fatalf("canister %d is %v, %v", count, c, err)
		}
		count++
	}
	if count != many || s.info("long").Length != many {
		s.Errorf("%d of %d canisters are read, and the length is %d", count, many, s.info("long").Length)
	}
}

//go:embed golden/*.jsonl
var golden embed.FS

func canistersGolden(s *storeSubject) {
	files, err := golden.ReadDir("golden")
	if err != nil || len(files) == 0 {
		s.Fatalf("the golden lines: %v", err)
	}
	for _, file := range files {
		text, err := golden.ReadFile("golden/" + file.Name())
		if err != nil {
			s.Fatal(err)
		}
		want, err := suite.Collect(canister.Decode(bytes.NewReader(text)))
		if err != nil {
			s.Fatal(err)
		}
		s.append(file.Name(), 0, want...)
		s.holds(file.Name(), want...)
		var again bytes.Buffer
		if err := canister.Encode(&again, s.read(file.Name(), 0)...); err != nil || !bytes.Equal(again.Bytes(), text) {
			s.Errorf("%s is not read back byte for byte: %v", file.Name(), err)
		}
	}
}

func canistersOdd(s *storeSubject) {
	extra := canister.Extra{
		Metadata: canister.Fields{"a": json.RawMessage(`{"z":0.10,"y":"<&>"}`), "io.github.consort-go/stored": json.RawMessage(`{"sha256":"0"}`)},
		Unknown:  canister.Fields{"newer": json.RawMessage(`[1e400,null]`), "sum": json.RawMessage(`"crc32c:00000000"`), "length": json.RawMessage(`0`)},
	}
	latin, nul := "latin-1: \xe9 \xff", "nothing: \x00, lines:\r\n\u2028, 🎻"
	head := func(id string) canister.Head {
		return canister.Head{ID: id, Time: time.Date(2026, 3, 1, 9, 30, 0, 123456789, time.UTC), Extra: extra}
	}
	content := []canister.Content{
		canister.TextContent{Text: latin, Extra: extra}, canister.Text(nul), canister.Text(""),
		canister.ImageContent{Data: []byte{}, MIME: "image/png", Extra: extra}, canister.StructuredContent{JSON: json.RawMessage(`{"a":1,"a":2.50}`), Extra: extra},
	}
	want := []canister.Canister{
		canister.User{Head: head("u" + latin), Content: content},
		canister.Supervisor{Head: head("s" + nul), Content: content},
		canister.Document{Head: head("d"), Title: latin, URI: nul, Content: content},
		canister.Assistant{Head: head("a"), Content: content, Model: latin, Finish: canister.Finish(nul), Usage: &canister.Usage{}},
		canister.Invocation{Head: head("i"), Message: "a", CallID: nul, Name: latin, Arguments: latin},
		canister.Result{Head: head("r"), Invocation: "i", Content: content, Code: "NEW_CODE", Retryable: true},
		canister.User{Head: canister.Head{ID: "first", Time: time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)}},
		canister.User{Head: canister.Head{ID: "last", Time: time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)}},
		canister.User{},
		canister.Intent{Head: head("t"), Invocation: "i", Attempt: math.MaxInt64, Key: nul, Repeatable: true, Wait: latin, Arguments: latin, Approved: time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC), Identity: nul, Fingerprint: latin},
		canister.Wait{Head: head("w"), For: "newer", Invocation: "i", Deadline: time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC),
			Who: latin, Conversation: nul, Identity: latin, Fingerprint: nul, Arguments: latin, Question: json.RawMessage(`{"a":1,"a":2.50}`)},
		canister.Answer{Head: head("n"), Wait: "w", Verdict: "newer", By: latin, Reason: nul, Arguments: json.RawMessage(`[1e400]`), Content: content},
	}
	s.append("talk", 0, want...)
	s.append("talk", 0, want[:8]...)
	s.holds("talk", want...)
}

func canistersLarge(s *storeSubject) {
	var want []canister.Canister
	for i, size := range []int{0, 1, 1000, 1023, 1024, 1025, 5000, 300_000} {
		data := make([]byte, size)
		for j := range data {
			data[j] = byte(j * (j + i) / 7)
		}
		text, extra := strings.Repeat("é", size/2), canister.Extra{Metadata: canister.Fields{"n": json.RawMessage("1")}}
		contents := []canister.Content{
			canister.TextContent{Text: text, Extra: extra}, canister.Text(string(data)), canister.Text(text),
			canister.ImageContent{Data: data, MIME: "image/png", Extra: extra}, canister.ImageContent{URL: "https://example.com/" + text},
			canister.AudioContent{Data: data, MIME: "audio/wav"},
			canister.ResourceContent{URI: "file:///a", Text: text}, canister.ResourceContent{URI: "file:///b", Blob: data, Extra: extra},
			canister.LinkContent{URI: "file:///c", Description: text},
			canister.StructuredContent{JSON: json.RawMessage(`"` + text + `"`)},
		}
		id := fmt.Sprint(size)
		want = append(want,
			canister.User{Head: canister.Head{ID: "u" + id}, Content: contents},
			canister.Invocation{Head: canister.Head{ID: "i" + id}, Arguments: text},
			canister.Result{Head: canister.Head{ID: "r" + id}, Content: contents})
	}
	s.append("talk", 0, want...)
	s.append("other", 0, want[0])
	s.append("other", 1, want[1:]...)
	s.fork("talk", len(want), "fork")
	for _, conversation := range []string{"talk", "other", "fork"} {
		s.holds(conversation, want...)
	}
	s.remove("talk")
	for _, conversation := range []string{"other", "fork"} {
		s.holds(conversation, want...)
	}
}
