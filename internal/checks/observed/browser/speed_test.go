// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/testing/consolestage"
)

// rounds is how often each page is loaded for its times.
func rounds() int {
	if os.Getenv("CONSORT_TEST_SPEED") != "" {
		return 15
	}
	return 1
}

// size bounds what a page makes the browser do, whatever else the machine does. A slow machine
// lays out a page once for each piece that arrives, up to 13 times so far. A script that lays
// out anew for each entry that it visits does so hundreds of times on a long page.
type size struct{ Bytes, Elements, Layouts int }

// usual bounds a page, and larger one that shows much. Bytes and elements are about twice what
// they were when they were written down.
var (
	usual  = size{20e3, 500, 60}
	larger = map[string]size{"conversations": {50e3, 1400, 60}, "long": {200e3, 5000, 60}}
)

// load is what the browser reports of a page.
type load struct {
	Paint           float64 // milliseconds from the beginning of the navigation
	Bytes, Elements int
}

// A page is painted soon after it was asked for: it has few bytes and elements, and no script
// lays it out again and again. With CONSORT_TEST_SPEED the times mean something: each page is loaded
// more often.
func TestFirstPaint(t *testing.T) {
	s, ctx := many(t, 2000), open(t)
	entered(t, ctx, s)
	ops := s.Login(t, consolestage.Ops)
	paths := map[string]string{"long": "/conversations/long"}
	maps.Copy(paths, pages)
	for _, name := range slices.Sorted(maps.Keys(paths)) { // the audit has what the visits before have read
		path := paths[name]
		l, layouts, cpu := counted(t, ctx, s.URL+path)
		most, ok := larger[name]
		if !ok {
			most = usual
		}
		if got := (size{l.Bytes, l.Elements, layouts}); got.Bytes > most.Bytes || got.Elements > most.Elements || got.Layouts > most.Layouts {
			t.Errorf("%s has %+v, at most %+v", name, got, most)
		}
		paints, answers := []float64{l.Paint}, []float64(nil)
		for range rounds() {
			begun := time.Now()
			ops.Get(path)
			answers = append(answers, float64(time.Since(begun).Microseconds())/1000)
			if rounds() > 1 {
				paints = append(paints, loaded(t, ctx, s.URL+path).Paint)
			}
		}
		t.Logf("%-21s painted after %5.1f ms, of which until the last byte %5.1f ms; %5.1f ms of CPU of the page; %6d bytes, %4d elements, %d layouts", name,
			median(paints), median(answers), cpu, l.Bytes, l.Elements, layouts)
	}
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// threadTime makes the browser measure the CPU of a page's thread.
func threadTime(ctx context.Context, target *chromedp.Target) (done chromedp.Void, err error) {
	_, err = cdp.Call(ctx, target, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks})
	return done, err
}

// metrics returns the counters of a page.
func metrics(t *testing.T, ctx context.Context) map[string]float64 {
	t.Helper()
	got := value(t, ctx, func(ctx context.Context, target *chromedp.Target) (performance.GetMetricsResult, error) {
		return cdp.Call(ctx, target, performance.GetMetrics, cdp.Empty{})
	})
	all := map[string]float64{}
	for _, one := range got.Metrics {
		all[one.Name] = one.Value
	}
	return all
}

// painted returns what load has, once the page was painted.
const painted = `new Promise(done => {
	const look = () => {
		const paint = performance.getEntriesByType("paint").find(e => e.name === "first-contentful-paint"), page = performance.getEntriesByType("navigation")[0];
		if (!paint || document.readyState !== "complete") { requestAnimationFrame(look); return; }
		done(JSON.stringify({Paint: paint.startTime, Bytes: page.decodedBodySize, Elements: document.querySelectorAll("*").length}));
	};
	look();
})`

func loaded(t *testing.T, ctx context.Context, address string) (l load) {
	t.Helper()
	visit(t, ctx, address)
	if err := json.Unmarshal([]byte(value(t, ctx, chromedp.Evaluate[string](painted, chromedp.EvalAwaitPromise))), &l); err != nil {
		t.Fatal(err)
	}
	return l
}

// counted loads a page in a tab of its own. It returns the number of layouts too, and the CPU
// of the page's thread in milliseconds.
func counted(t *testing.T, ctx context.Context, address string) (l load, layouts int, cpu float64) {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(ctx)
	defer closeTab()
	run(t, ctx, threadTime)
	l = loaded(t, ctx, address)
	m := metrics(t, ctx)
	return l, int(m["LayoutCount"]), 1000 * m["TaskDuration"]
}

// many returns a stage with some hundred conversations, one of which has five canisters for
// each turn.
func many(t *testing.T, turns int) *consolestage.Stage {
	t.Helper()
	s := furnished(t)
	var long []canister.Canister
	for i := range turns {
		head := func(kind string) canister.Head {
			return canister.Head{ID: fmt.Sprintf("%s%d", kind, i), Time: at.Add(time.Duration(i) * time.Minute)}
		}
		long = append(long,
			canister.User{Head: head("u"), Content: canister.Texts(strings.Repeat("And what should I wear tomorrow? ", 1+i%5))},
			canister.Assistant{Head: head("a"), Model: "scripted", Finish: canister.FinishInvocations},
			canister.Invocation{Head: head("i"), Message: head("a").ID, CallID: head("i").ID, Name: "local__weather", Arguments: `{"city":"Oslo"}`},
			canister.Result{Head: head("r"), Invocation: head("i").ID, Content: canister.Texts(strings.Repeat("Snow in Oslo.\n", 1+i%20))},
			canister.Assistant{Head: head("b"), Model: "scripted", Finish: canister.FinishStop,
				Content: canister.Texts("Take a **warm coat**.\n\n| city | sky |\n|---|---|\n| Oslo | snow |\n\n```\nls -l\n```\n")})
	}
	put(t, s.Store, "long", "Weather of all days", long...)
	for i := range 300 {
		head := canister.Head{ID: "u", Time: at}
		put(t, s.Store, fmt.Sprint("talk", i), fmt.Sprint("Talk ", i), canister.User{Head: head, Content: canister.Texts("Is it warm?")},
			canister.Assistant{Head: canister.Head{ID: "a", Time: at}, Content: canister.Texts("It is warm."), Finish: canister.FinishStop})
	}
	return s
}

// scrolling scrolls up and down for a while, and returns the times between frames.
const scrolling = `new Promise(done => {
	const frames = [];
	let last = performance.now(), by = -80;
	const until = last + %d, step = now => {
		frames.push(now - last);
		last = now;
		if (scrollY === 0) by = 80;
		if (innerHeight + scrollY >= document.documentElement.scrollHeight - 1) by = -80;
		scrollBy({top: by, behavior: "instant"});
		if (now < until || frames.length < 20) requestAnimationFrame(step); else done(JSON.stringify(frames.slice(2)));
	};
	requestAnimationFrame(step);
})`

// extending loads all earlier canisters, as a reader does who scrolls up. It returns the
// number of entries, of the elements that the browser considers in each frame, and by how many
// pixels the entry at the top of the screen moved when the first ones came.
const extending = `new Promise(done => {
	const link = document.getElementById("earlier"), first = document.querySelector(".entry"), top = first.getBoundingClientRect().top;
	let moved = null;
	new MutationObserver(() => requestAnimationFrame(() => {
		moved ??= Math.abs(first.getBoundingClientRect().top - top);
		if (document.getElementById("earlier")) { scrollTo({top: 0, behavior: "instant"}); return; }
		const auto = [...document.querySelectorAll(".timeline, .entry")].filter(each => getComputedStyle(each).contentVisibility === "auto");
		done(JSON.stringify([document.querySelectorAll(".entry").length, auto.length, moved]));
	})).observe(document.getElementById("main"), {childList: true});
	link.click();
})`

// A conversation of 10,000 canisters is on one page after the reader has scrolled to its
// beginning, and to scroll there takes little of a frame's 16.7 ms.
func TestScrolling(t *testing.T) {
	turns := 100 + 1900*(rounds()/15)
	s, ctx := many(t, turns), open(t)
	entered(t, ctx, s)
	run(t, ctx, threadTime, chromedp.EmulateViewport(1680, 900))
	visit(t, ctx, s.URL+"/conversations/long")
	before := metrics(t, ctx)
	var entries, considered int
	var moved float64
	text := value(t, ctx, chromedp.Evaluate[string](extending, chromedp.EvalAwaitPromise))
	if err := json.Unmarshal([]byte(text), &[]any{&entries, &considered, &moved}); err != nil {
		t.Fatal(err)
	}
	after := metrics(t, ctx)
	loads := (5*turns+199)/200 - 1
	t.Logf("%d entries; another 200 canisters take %.1f ms of CPU", entries, 1000*(after["TaskDuration"]-before["TaskDuration"])/float64(loads))
	if entries != 4*turns || considered > 161+4*loads || moved > 1 {
		t.Errorf("%d entries of %d turns; the browser considers %d in each frame; the page moved by %v pixels", entries, turns, considered, moved)
	}
	before = after
	var frames []float64
	text = value(t, ctx, chromedp.Evaluate[string](fmt.Sprintf(scrolling, 300*rounds()), chromedp.EvalAwaitPromise))
	if err := json.Unmarshal([]byte(text), &frames); err != nil {
		t.Fatal(err)
	}
	after = metrics(t, ctx)
	middle, n := median(frames), float64(len(frames))
	layouts := (after["LayoutCount"] - before["LayoutCount"]) / n
	t.Logf("%d frames: median %.1f ms, 95th percentile %.1f ms; %.2f ms of CPU and %.2f layouts a frame", len(frames), middle,
		frames[len(frames)*95/100], 1000*(after["TaskDuration"]-before["TaskDuration"])/n, layouts)
	if layouts > 2 {
		t.Errorf("%.2f layouts a frame", layouts)
	}
}

// dictated is a model that answers with the deltas that it is given.
type dictated chan string

func (d dictated) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		var all strings.Builder
		for text := range d {
			all.WriteString(text)
			if !yield(converse.Delta{Text: text}, nil) {
				return
			}
		}
		yield(converse.Reply{Message: canister.Assistant{Head: canister.Head{ID: request.NewID()}, Content: canister.Texts(all.String()), Finish: canister.FinishStop}}, nil)
	}
}

// watching notes what the timeline has in each frame that follows a change, and when that frame
// was painted.
const watching = `window.paints = [], window.waits = [];
new MutationObserver(() => requestAnimationFrame(() => {
	const after = new MessageChannel(), text = document.getElementById("timeline").textContent;
	after.port1.onmessage = () => {
		paints.push({at: performance.timeOrigin + performance.now(), text});
		waits.splice(0).forEach(check => check());
	};
	after.port2.postMessage(0);
})).observe(document.getElementById("timeline"), {childList: true, subtree: true, characterData: true})`

// has returns when a text was on the screen.
const has = `new Promise(done => {
	const check = () => {
		const first = paints.find(each => each.text.includes(%q));
		if (first) done(first.at); else waits.push(check);
	};
	check();
})`

// A delta of the model is on the screen soon.
func TestDeltaToPixel(t *testing.T) {
	model := make(dictated)
	s, ctx := consolestage.Start(t, consolestage.Options{Model: model}), open(t)
	entered(t, ctx, s)
	visit(t, ctx, s.URL+"/conversations")
	run(t, ctx, chromedp.SendKeys(chromedp.CSS("textarea[name=message]"), "What should I wear?"), chromedp.Submit(chromedp.CSS("textarea[name=message]")),
		chromedp.WaitVisible(chromedp.CSS("#timeline .entry.user")), chromedp.Evaluate[chromedp.Void](watching))
	var took []float64
	for i := range 10 * rounds() {
		word := fmt.Sprintf("word-%d ", i)
		sent := float64(time.Now().UnixMicro()) / 1000
		model <- word
		took = append(took, value(t, ctx, chromedp.Evaluate[float64](fmt.Sprintf(has, word), chromedp.EvalAwaitPromise))-sent)
	}
	close(model)
	run(t, ctx, chromedp.WaitVisible(chromedp.CSS(".entry.assistant")))
	middle := median(took)
	t.Logf("%d deltas: median %.1f ms, 95th percentile %.1f ms", len(took), middle, took[len(took)*95/100])
}
