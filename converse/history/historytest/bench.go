// SPDX-License-Identifier: Apache-2.0

package historytest

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
)

// BenchStore measures a store and, in the same run, a baseline to compare it with. Open
// opens the store; each call of it must open the same store, in an empty location that
// belongs to the sub-benchmark. The sub-benchmarks are
//
//   - append: canisters of 1 KiB a second, of one writer and of 32, each in its own
//     conversation, and for comparison lines of that size written and synced to a file.
//   - load: milliseconds, the best of all rounds, for a conversation of 1,000 canisters of
//     1 KiB, and for reading a file of the same lines; and the median of the difference
//     between the two, measured in pairs.
//   - tail: microseconds, the best of all rounds, for the last five canisters of 100 and of
//     100,000, for the first canister after the middle, and for the first read of
//     history.Tail. With -short it is 10,000 instead of 100,000.
//   - turn: microseconds, the best of all rounds, to open a conversation that has 100 and
//     100,000 canisters in the store, with a summary for all except the last ones, and for a
//     turn with a model that answers immediately.
//   - idle: bytes of memory for each of 10,000 conversations that were listed and are not in
//     use.
func BenchStore(b *testing.B, newOpen func(b *testing.B) (open func() (history.Store, error))) {
	run := func(name string, bench func(*benched)) {
		b.Run(name, func(b *testing.B) {
			s := &benched{B: b, opens: newOpen(b)}
			s.store = s.open()
			bench(s)
		})
	}
	run("append", benchAppend)
	run("load", benchLoad)
	run("tail", benchTail)
	run("turn", benchTurn)
	run("idle", benchIdle)
}

// benched is a store being measured.
type benched struct {
	*testing.B
	opens func() (history.Store, error)
	store history.Store
}

func (s *benched) open() history.Store {
	s.Helper()
	store, err := s.opens()
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := store.Close(); err != nil {
			s.Error(err)
		}
	})
	return store
}

// sized returns a canister whose JSON form has about that many bytes: of the user at
// even places, and of the model at odd ones.
func sized(index, size int) canister.Canister {
	text := strings.Repeat("All work and no play makes Jack a dull boy.\n", size/44+1)
	head, content := canister.Head{ID: fmt.Sprintf("c%d", index), Time: time.Unix(1, 0)}, canister.Texts(text[:max(size-120, 0)])
	if index%2 == 1 {
		return canister.Assistant{Head: head, Content: content, Finish: canister.FinishStop}
	}
	return canister.User{Head: head, Content: content}
}

// fill creates a conversation of canisters of a size.
func (s *benched) fill(conversation string, length, size int) []canister.Canister {
	s.Helper()
	list := make([]canister.Canister, length)
	for i := range list {
		list[i] = sized(i, size)
	}
	for from := 0; from < length; from += 1000 {
		if err := s.store.Append(context.Background(), conversation, from, list[from:min(from+1000, length)]...); err != nil {
			s.Fatal(err)
		}
	}
	return list
}

// ages is longer than every measured duration.
const ages = time.Hour

// report reports the mean of the rounds.
func (s *benched) report(unit string, value float64) { s.ReportMetric(value/float64(s.N), unit) }

// quarter is how long each kind of append is measured in a round.
const quarter = 250 * time.Millisecond

func benchAppend(s *benched) {
	file, err := os.Create(filepath.Join(s.TempDir(), "lines"))
	if err != nil {
		s.Fatal(err)
	}
	defer file.Close()
	line := bytes.Repeat([]byte("x"), 1024)
	var bare, one, many float64
	for round := 0; s.Loop(); round++ {
		bare += s.perSecond(1, func(int, int) error {
			_, err := file.Write(line)
			if err == nil {
				err = file.Sync()
			}
			return err
		})
		for writers, rate := range map[int]*float64{1: &one, 32: &many} {
			*rate += s.perSecond(writers, func(writer, n int) error {
				conversation := fmt.Sprintf("talk %d of %d in round %d", writer, writers, round)
				return s.store.Append(context.Background(), conversation, n, sized(n, 1024))
			})
		}
	}
	s.report("bare/s", bare)
	s.report("1-writer/s", one)
	s.report("32-writers/s", many)
}

// perSecond returns how often that many writers complete do in a second.
func (s *benched) perSecond(writers int, do func(writer, n int) error) float64 {
	var all sync.WaitGroup
	counts := make([]int, writers)
	began := time.Now()
	for w := range writers {
		all.Go(func() {
			for ; time.Since(began) < quarter; counts[w]++ {
				if err := do(w, counts[w]); err != nil {
					s.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return float64(sum) / time.Since(began).Seconds()
}

func benchLoad(s *benched) {
	const length = 1000
	path := filepath.Join(s.TempDir(), "lines")
	var lines bytes.Buffer
	if err := canister.Encode(&lines, s.fill("talk", length, 1024)...); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(path, lines.Bytes(), 0o600); err != nil {
		s.Fatal(err)
	}
	load, raw := ages, ages
	var beyond []time.Duration
	for s.Loop() {
		loaded := s.timeRead("talk", 0, length)
		began := time.Now()
		if text, err := os.ReadFile(path); err != nil || len(text) != lines.Len() {
			s.Fatal(len(text), err)
		}
		read := time.Since(began)
		load, raw, beyond = min(load, loaded), min(raw, read), append(beyond, loaded-read)
	}
	slices.Sort(beyond)
	s.ReportMetric(load.Seconds()*1e3, "ms/load")
	s.ReportMetric(raw.Seconds()*1e3, "ms/bytes")
	s.ReportMetric(beyond[len(beyond)/2].Seconds()*1e3, "ms/median-beyond")
}

// timeRead reads the canisters after a place, and returns how long that took.
func (s *benched) timeRead(conversation string, after, want int) time.Duration {
	began := time.Now()
	for _, err := range s.store.Read(context.Background(), conversation, after) {
		if want--; err != nil {
			s.Fatal(err)
		}
	}
	if want != 0 {
		s.Fatalf("%s: %d canisters are missing", conversation, want)
	}
	return time.Since(began)
}

const few = 100

// many returns the length of a long conversation.
func many() int {
	if shortened() {
		return 10_000
	}
	return 100_000
}

func benchTail(s *benched) {
	lengths := map[string]int{fmt.Sprint(few): few, fmt.Sprint(many()): many()}
	best := map[string]time.Duration{}
	for id, length := range lengths {
		s.fill(id, length, 160)
	}
	for s.Loop() {
		for id, length := range lengths {
			for kind, took := range map[string]time.Duration{
				"last-5-of-": s.timeRead(id, length-5, 5),
				"one-of-":    s.timeOne(id, length/2),
				"tail-of-":   s.timeTail(id),
			} {
				if was, ok := best[kind+id]; !ok || took < was {
					best[kind+id] = took
				}
			}
		}
	}
	for what, took := range best {
		s.ReportMetric(took.Seconds()*1e6, "µs/"+what)
	}
}

// timeOne reads the first canister after a place, and returns how long that took.
func (s *benched) timeOne(conversation string, after int) time.Duration {
	began := time.Now()
	for _, err := range s.store.Read(context.Background(), conversation, after) {
		if err != nil {
			s.Fatal(err)
		}
		break
	}
	return time.Since(began)
}

// timeTail reads the end of a conversation as a turn does, and returns how long that
// took.
func (s *benched) timeTail(conversation string) time.Duration {
	began := time.Now()
	_, end, err := history.Tail(context.Background(), s.store, conversation, func(int, []canister.Canister) bool { return true })
	if err != nil || len(end) == 0 {
		s.Fatal(len(end), err)
	}
	return time.Since(began)
}

// prompt is a model that answers immediately.
type prompt struct{}

func (prompt) Exchange(_ context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		message := canister.Assistant{Head: canister.Head{ID: request.NewID()}, Content: canister.Texts("Yes."), Finish: canister.FinishStop}
		yield(converse.Reply{Message: message}, nil)
	}
}

func benchTurn(s *benched) {
	ask := func(id string, compaction *converse.Compaction) time.Duration {
		began := time.Now()
		c := converse.New(prompt{}, nil, &converse.Options{ID: id, Log: s.store, Compaction: compaction})
		if _, err := c.Ask(context.Background(), canister.Text("Well?")); err != nil {
			s.Fatal(err)
		}
		took := time.Since(began)
		if held := len(c.History()); compaction == nil && held > many()/10 { // each round adds two
			s.Fatalf("%s: %d canisters were taken up", id, held)
		}
		return took
	}
	for id, length := range map[string]int{"short": few, "long": many()} {
		s.fill(id, length, 160)
		ask(id, &converse.Compaction{Window: int64(length) * 60, At: 0.1})
	}
	quick, slow := ages, ages
	for s.Loop() {
		quick = min(quick, ask("short", nil))
		slow = min(slow, ask("long", nil))
	}
	s.ReportMetric(quick.Seconds()*1e6, fmt.Sprint("µs/", few))
	s.ReportMetric(slow.Seconds()*1e6, fmt.Sprint("µs/", many()))
}

func benchIdle(s *benched) {
	const conversations = 10_000
	var all sync.WaitGroup
	for w := range 32 {
		all.Go(func() {
			for i := w; i < conversations; i += 32 {
				if err := s.store.Append(context.Background(), fmt.Sprint("talk ", i), 0, sized(0, 1024)); err != nil {
					s.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := s.store.Close(); err != nil {
		s.Fatal(err)
	}
	var grown float64
	for s.Loop() {
		before := inUse()
		store := s.open()
		for info, err := range store.List(context.Background(), history.Filter{}) {
			if err != nil || info.Length != 1 {
				s.Fatal(info, err)
			}
		}
		grown += float64(inUse()) - float64(before)
		runtime.KeepAlive(store)
	}
	s.report("B/conversation", max(grown, 0)/conversations)
}

// inUse returns the number of bytes of memory in use.
func inUse() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc + stats.StackInuse
}
