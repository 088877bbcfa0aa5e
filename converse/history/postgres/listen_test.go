// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/testing/pgtest"
	"github.com/consort-go/consort/internal/testing/storetest"
	"github.com/jackc/pgx/v5"
)

// patient returns a context that ends when something ought to have happened.
func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// pull returns the function that yields the next of a loop, which must be there.
func pull[T any](t testing.TB, sequence iter.Seq2[T, error]) func() T {
	t.Helper()
	next, stop := iter.Pull2(sequence)
	t.Cleanup(stop)
	return func() T {
		t.Helper()
		v, err, ok := next()
		if err != nil || !ok {
			t.Fatal(err, ok)
		}
		return v
	}
}

// listening returns the same for a loop that hears already.
func listening(t testing.TB, s *Store, conversation string) func() []byte {
	t.Helper()
	next := pull(t, s.Listen(patient(t), conversation))
	if first := next(); first != nil {
		t.Fatalf("a loop begins with %q", first)
	}
	return next
}

func notify(t testing.TB, s *Store, conversation string, payload []byte) {
	t.Helper()
	if err := s.Notify(t.Context(), conversation, payload); err != nil {
		t.Fatal(err)
	}
}

// Payloads of any kind arrive in order at the listeners of their conversation, and only
// there.
func TestNotify(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, other := openAt(t, dsn, nil), openAt(t, dsn, nil)
	elsewhere := openAt(t, dsn, &Options{Schema: "elsewhere"})
	a, same, b, foreign := listening(t, s, "a"), listening(t, other, "a"), listening(t, s, "b"), listening(t, elsewhere, "a")
	random := bytes.Repeat([]byte{0, 1, 0xff, 'x', '"'}, maxPayload/5)
	payloads := [][]byte{
		[]byte(`{"text":"Ein kurzer Gruß"}`), {}, {0}, []byte("twice"), []byte("twice"), []byte("t"), []byte("1/1:"),
		[]byte(strings.Repeat("ü", frameText/2)), []byte(strings.Repeat("x", frameText+1)), random[:frameData], random[:frameData+1], random, []byte("end"),
	}
	for _, payload := range payloads {
		notify(t, other, "a", payload)
	}
	for name, next := range map[string]func() []byte{"the sender": same, "another": a} {
		for i, want := range payloads {
			if got := next(); got == nil || !bytes.Equal(got, want) {
				t.Fatalf("%s has %d bytes in place %d, want %d", name, len(got), i, len(want))
			}
		}
	}
	notify(t, s, "b", []byte("for b"))
	notify(t, elsewhere, "a", []byte("elsewhere"))
	if got := b(); string(got) != "for b" {
		t.Errorf("b has %q", got)
	}
	if got := foreign(); string(got) != "elsewhere" {
		t.Errorf("another schema has %q", got)
	}
	err := s.Notify(t.Context(), "a", make([]byte, maxPayload+1))
	if err == nil || !strings.Contains(err.Error(), "65537 bytes; it may have 65536") {
		t.Error(err)
	}
	if err := s.Notify(t.Context(), "", nil); err == nil {
		t.Error("there is a conversation without identity")
	}
}

// All loops of a store share a connection, which is gone with the last of them.
func TestOneConnectionListens(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, watcher := openAt(t, dsn, &Options{Connections: 1}), openAt(t, dsn, &Options{Connections: 1})
	connections := func() int {
		return value[int](t, watcher, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wait, heard sync.WaitGroup
	for i := range 50 {
		heard.Add(2)
		wait.Go(func() {
			for payload, err := range s.Listen(ctx, fmt.Sprint(i%20)) {
				switch {
				case err == nil && payload == nil, err == nil && string(payload) == fmt.Sprint("to ", i%20):
					heard.Done()
				case !errors.Is(err, context.Canceled):
					t.Errorf("%q, %v", payload, err)
				}
			}
		})
	}
	until(t, "all hear", func() bool {
		all := 0
		s.listener.each("", func(h *subscription) {
			if h.confirmed {
				all++
			}
		})
		return all == 50
	})
	for i := range 20 {
		notify(t, watcher, fmt.Sprint(i), fmt.Append(nil, "to ", i))
	}
	heard.Wait()
	if n := connections(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
	cancel()
	wait.Wait()
	until(t, "the connection is closed", func() bool { return connections() == 1 })
}

// Loops that start and end do not affect others.
func TestLoopsThatComeAndGo(t *testing.T) {
	s := open(t)
	stays := listening(t, s, "talk")
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				for range s.Listen(ctx, fmt.Sprint("other", i, n%3)) {
					break
				}
			}
		})
	}
	for i := range 500 {
		notify(t, s, "talk", fmt.Append(nil, i))
		if got := stays(); string(got) != fmt.Sprint(i) {
			t.Fatalf("in place %d stands %q", i, got)
		}
	}
	cancel()
	wait.Wait()
}

// A loop that is too slow has what fits, is told that it missed something, and
// hears again.
func TestSlowLoop(t *testing.T) {
	s := open(t)
	check := func(t *testing.T, payload string, kept int) {
		slow, quick, other := listening(t, s, "talk"), listening(t, s, "talk"), listening(t, s, "other")
		for i := range kept + 10 {
			notify(t, s, "talk", fmt.Append(nil, i, payload))
			quick()
		}
		notify(t, s, "other", nil)
		other() // all loops were offered what came before
		for i := range kept {
			if got := slow(); string(got) != fmt.Sprint(i, payload) {
				t.Fatalf("in place %d stands %.20q", i, got)
			}
		}
		if got := slow(); got != nil {
			t.Errorf("what was missed is %.20q", got)
		}
		notify(t, s, "talk", []byte("again"))
		if got := slow(); string(got) != "again" {
			t.Errorf("behind it stands %.20q", got)
		}
	}
	t.Run("many", func(t *testing.T) { check(t, "x", maxPayloads) })
	t.Run("large", func(t *testing.T) { check(t, strings.Repeat("x", maxBytes/20), 19) })
}

// A loop that has not yet been told that listening has begun misses nothing of what comes then.
func TestPayloadBehindAGap(t *testing.T) {
	sub := newSubscription(open(t), "channel", "talk", false)
	for _, frame := range []string{"", "", "ta", "tb", "", "tc"} {
		if frame == "" {
			sub.markMissed()
		} else {
			sub.handle(frame)
		}
	}
	got, err := sub.next(t.Context())
	if want := [][]byte{nil, []byte("a"), []byte("b"), nil, []byte("c")}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the loop gets %q (%v), want %q", got, err, want)
	}
}

// dropEar ends the connection that listens, in the server.
func dropEar(t testing.TB, s *Store) {
	t.Helper()
	until(t, "its connection is ended", func() bool {
		return value[int](t, s, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND (query LIKE 'LISTEN%' OR query LIKE '%SELECT id, length%') AND pid <> pg_backend_pid()`) > 0
	})
}

// A connection that is lost is made again, and whoever listens is told.
func TestListenAgain(t *testing.T) {
	s := open(t)
	next := listening(t, s, "talk")
	for i := range 3 {
		dropEar(t, s)
		if got := next(); got != nil {
			t.Errorf("after the loss comes %q", got)
		}
		notify(t, s, "talk", fmt.Append(nil, i))
		if got := next(); string(got) != fmt.Sprint(i) {
			t.Errorf("then comes %q", got)
		}
	}
}

// A watcher sees the latest length of whatever happens, wherever it is done.
func TestWatch(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, other := openAt(t, dsn, nil), openAt(t, dsn, nil)
	next := pull(t, s.Watch(patient(t), "talk"))
	want := func(length int) {
		t.Helper()
		for got, was := next(), -1; got != length; got, was = next(), got {
			if got == was {
				t.Fatalf("%d is told twice", got)
			}
		}
	}
	want(0)
	storetest.Add(t, other, "talk", 0, "a")
	want(1)
	for i := range 200 {
		storetest.Add(t, other, "talk", 1+i, "b")
	}
	want(201)
	if err := other.Delete(t.Context(), "talk", history.AnyLength); err != nil {
		t.Fatal(err)
	}
	want(0)
	storetest.Add(t, s, "from", 0, "a", "b", "c")
	if err := other.Fork(t.Context(), "from", 2, "talk"); err != nil {
		t.Fatal(err)
	}
	want(2)
	if err := other.Append(t.Context(), "talk", 2, storetest.Says("last", "words of a program that closes")); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	want(3)
}

// Changes without a notification are found, as after the death of a program between the
// append and the notification, and so are changes while the connection was lost.
func TestWatchFindsByItself(t *testing.T) {
	for name, beat := range map[string]time.Duration{"untold": 50 * time.Millisecond, "lost": time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			s.listener.heartbeat = beat
			storetest.Add(t, s, "talk", 0, "a")
			next := pull(t, s.Watch(patient(t), "talk"))
			if got := next(); got != 1 {
				t.Errorf("the length is %d", got)
			}
			if harm(t, s, "UPDATE @.conversations SET length = 5"); name == "lost" {
				dropEar(t, s)
			}
			if got := next(); got != 5 {
				t.Errorf("it is told that the length is %d, want 5", got)
			}
		})
	}
}

// While the server is away, the listener ends with its last loop, and starts again with the next.
func TestListenerEndsWithoutAServer(t *testing.T) {
	s := open(t)
	there := s.listener.config
	away := must(pgx.ParseConfig("postgres://" + nobodyThere(t)))
	s.listener.config, s.listener.heartbeat = away, time.Millisecond
	sub := must(s.listener.subscribe(t.Context(), 'p', "talk"))
	s.listener.unsubscribe(sub)
	ended := make(chan struct{})
	go func() {
		s.listener.runs.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-patient(t).Done():
		t.Fatal("the listener connects although no loop is left")
	}
	s.listener.config = there
	next := listening(t, s, "talk")
	notify(t, s, "talk", []byte("again"))
	if got := next(); string(got) != "again" {
		t.Errorf("a new loop has %q", got)
	}
}

// Watching and listening outlive the server.
func TestListenToANewServer(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	s := openAt(t, server.DSN(t), nil)
	storetest.Add(t, s, "talk", 0, "a")
	lengths, payloads := pull(t, s.Watch(patient(t), "talk")), listening(t, s, "talk")
	if got := lengths(); got != 1 {
		t.Errorf("the length is %d", got)
	}
	server.Restart(t)
	if got := payloads(); got != nil {
		t.Errorf("after the restart comes %q", got)
	}
	until(t, "the store writes again", func() bool { return s.Append(t.Context(), "talk", 1, storetest.Says("c1", "b")) == nil })
	if got := lengths(); got != 2 {
		t.Errorf("the length is %d", got)
	}
	notify(t, s, "talk", []byte("again"))
	for got := payloads(); string(got) != "again"; got = payloads() {
		if got != nil {
			t.Errorf("then comes %q", got)
		}
	}
}

// Loops end with their context, with the store, and with an error of the server, but not
// when the server is unreachable.
func TestLoopsEnd(t *testing.T) {
	t.Parallel()
	last := func(ctx context.Context, s *Store) (watch, listen error) {
		for _, err := range s.Watch(ctx, "talk") {
			watch = err
		}
		for _, err := range s.Listen(ctx, "talk") {
			listen = err
		}
		return watch, listen
	}
	s := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if watch, listen := last(ctx, s); !errors.Is(watch, context.DeadlineExceeded) || !errors.Is(listen, context.DeadlineExceeded) {
		t.Error(watch, listen)
	}
	for _, err := range s.Watch(t.Context(), "") {
		if err == nil {
			t.Error("there is a conversation without identity")
		}
	}
	var wait sync.WaitGroup
	began := make(chan bool, 2)
	wait.Go(func() {
		var last error
		for _, err := range s.Watch(t.Context(), "talk") {
			if last = err; err == nil {
				began <- true
			}
		}
		if !errors.Is(last, history.ErrClosed) {
			t.Error(last)
		}
	})
	wait.Go(func() {
		var last error
		for _, err := range s.Listen(t.Context(), "talk") {
			if last = err; err == nil {
				began <- true
			}
		}
		if !errors.Is(last, history.ErrClosed) {
			t.Error(last)
		}
	})
	<-began
	<-began
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wait.Wait()
	if watch, listen := last(t.Context(), s); !errors.Is(watch, history.ErrClosed) || !errors.Is(listen, history.ErrClosed) {
		t.Error(watch, listen)
	}
	if err := s.Notify(t.Context(), "talk", nil); !errors.Is(err, history.ErrClosed) {
		t.Error(err)
	}
	s = open(t)
	harm(t, s, "DROP TABLE @.conversations")
	for _, err := range s.Watch(patient(t), "talk") {
		if err == nil || !strings.Contains(err.Error(), "a table of the conversations is missing") {
			t.Error(err)
		}
	}
}

// For every frame from the server there is a payload or none, and never one above the
// limit.
func FuzzPuzzle(f *testing.F) {
	f.Add("t", "1/2:eA==", "2/2:eA==")
	f.Add("1/1:eA==", "2/1:", "0/0:")
	f.Add("-1/9999999999999999999:eA==", "1/2:eA==", "1/2:eA==")
	f.Add("1/1", "1/1:", "")
	f.Fuzz(func(t *testing.T, one, two, three string) {
		p := assembler{}
		for _, frame := range []string{one, two, three, two, three} {
			payload, whole, fits := p.add(frame)
			if whole && (payload == nil || !fits) || len(p.have) > maxPayload {
				t.Errorf("%q gives %q, %v, %v", frame, payload, whole, fits)
			}
		}
		for _, payload := range []string{one + two, three, strings.Repeat(one+"\x00", 1+frameText/(len(one)+1)*2)} {
			if len(payload) > maxPayload {
				continue
			}
			all := frames([]byte(payload))
			for i, frame := range all {
				got, whole, fits := p.add(frame)
				if last := i == len(all)-1; len(frame) >= 8000 || whole != last || !fits || last && string(got) != payload {
					t.Errorf("frame %d of %d of %q gives %q", i, len(all), payload, got)
				}
			}
		}
	})
}
