// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/internal/testing/consolestage"
)

// poll waits until an expression of the page is true.
func poll(expression string) step {
	return func(ctx context.Context, target *chromedp.Target) (done chromedp.Void, err error) {
		_, err = chromedp.Poll[bool](expression)(ctx, target)
		return done, err
	}
}

// countFetches makes the page count its requests. It makes one after the other.
const countFetches = `window.fetched = 0; { const fetch = window.fetch; window.fetch = (...of) => { fetched++; return fetch(...of); }}`

// What happens right after a page was loaded is on the page, and the notice of an action stays until
// the reader leaves the page.
func TestPageStaysCurrent(t *testing.T) {
	s, ctx := furnished(t), open(t)
	entered(t, ctx, s)
	visit(t, ctx, s.URL+"/waiting")
	waits := func(id, title string) { waiting(t, s, id, title) }
	shows := func(title string) step {
		return poll(`document.getElementById("main").textContent.includes("` + title + `")`)
	}
	waits("late", "Edit another file")
	run(t, ctx, shows("Edit another file"))

	run(t, ctx, chromedp.Submit(chromedp.CSS(`input[name=verdict][value=deny]`)), chromedp.WaitVisible(chromedp.CSS("#flash")),
		chromedp.Evaluate[chromedp.Void](countFetches+`window.same = document.querySelector("h1"); undefined`), poll("fetched >= 3"))
	if !value(t, ctx, chromedp.Evaluate[bool](`same.isConnected`)) {
		t.Error("a refresh without a change has replaced the content")
	}
	waits("later", "Edit a third file")
	run(t, ctx, shows("Edit a third file"))
	if got := value(t, ctx, chromedp.Evaluate[string](`document.getElementById("flash")?.textContent ?? ""`)); got != "Answered." {
		t.Errorf("after a change the notice is %q", got)
	}
	visit(t, ctx, s.URL+"/waiting")
	if page := value(t, ctx, chromedp.Text(chromedp.CSS("main"))); strings.Contains(page, "Answered.") {
		t.Errorf("the notice is shown again:\n%s", page)
	}
}

// waiting stores a conversation that waits for an approval.
func waiting(t *testing.T, s *consolestage.Stage, id, title string) {
	t.Helper()
	head := func(id string) canister.Head { return canister.Head{ID: id, Time: at} }
	put(t, s.Store, id, title, canister.User{Head: head("u"), Content: canister.Texts("Change it.")},
		canister.Assistant{Head: head("a"), Finish: canister.FinishInvocations},
		canister.Invocation{Head: head("i"), Message: "a", CallID: "i", Name: "local__edit_file", Arguments: `{"path":"b.txt"}`},
		canister.Wait{Head: head("w"), For: canister.WaitApproval, Invocation: "i", Deadline: at.AddDate(50, 0, 0), Conversation: id,
			Arguments: `{"path":"b.txt"}`})
}

// A page that the reader uses does not change, and says that there is something new. When it changes, the
// fields keep what was written.
func TestPageInUse(t *testing.T) {
	s, ctx := furnished(t), open(t)
	entered(t, ctx, s)
	visit(t, ctx, s.URL+"/waiting")
	has := func(text string) bool {
		return value(t, ctx, chromedp.Evaluate[bool](`document.getElementById("main").textContent.includes("`+text+`")`))
	}
	run(t, ctx, chromedp.Evaluate[chromedp.Void](`document.querySelector("textarea[name=reason]").value = "It is too late.";
		getSelection().selectAllChildren(document.querySelector("h1")); undefined`))
	waiting(t, s, "late", "Edit another file")
	run(t, ctx, poll(`document.getElementById("note")?.textContent.includes("something new")`))
	if has("Edit another file") {
		t.Error("the page changes while a text is selected")
	}
	run(t, ctx, chromedp.Evaluate[chromedp.Void](`getSelection().removeAllRanges(); undefined`),
		poll(`document.getElementById("main").textContent.includes("Edit another file")`), chromedp.WaitNotPresent(chromedp.CSS("#note")))
	got := value(t, ctx, chromedp.Evaluate[string](`[...document.querySelectorAll("textarea[name=reason]")].map((each) => each.value).join("")`))
	if got != "It is too late." {
		t.Errorf("the fields have %q", got)
	}
}

// What was written comes back into its form after an error and after another login, once.
func TestUnsentText(t *testing.T) {
	s, ctx := furnished(t), open(t)
	entered(t, ctx, s)
	visit(t, ctx, s.URL+"/conversations/weather")
	logOut := func(ctx context.Context, target *chromedp.Target) (done chromedp.Void, err error) {
		_, err = cdp.Call(ctx, target, network.ClearBrowserCookies, cdp.Empty{})
		return done, err
	}
	run(t, ctx, chromedp.SendKeys(chromedp.CSS("#actions textarea"), "A long text."), logOut,
		chromedp.Evaluate[chromedp.Void](`document.querySelector("#actions textarea").form.requestSubmit(); undefined`),
		chromedp.WaitNotPresent(chromedp.CSS("nav")))
	if page := value(t, ctx, chromedp.Text(chromedp.CSS("main"))); !strings.Contains(page, "You are not logged in") {
		t.Errorf("the page says %s", page)
	}
	entered(t, ctx, s)
	for _, want := range []string{"A long text.", ""} {
		visit(t, ctx, s.URL+"/conversations/weather")
		if got := value(t, ctx, chromedp.Evaluate[string](`document.querySelector("#actions textarea").value`)); got != want {
			t.Errorf("the form has %q, want %q", got, want)
		}
	}
}

// An entry that comes late is where its number belongs.
func TestLateEntryIsPlaced(t *testing.T) {
	s, ctx := consolestage.Start(t, consolestage.Options{}), open(t)
	entered(t, ctx, s)
	head := func(id string) canister.Head { return canister.Head{ID: id, Time: at} }
	put(t, s.Store, "plan", "A plan", canister.User{Head: head("u"), Content: canister.Texts("one")}, canister.Assistant{Head: head("a"),
		Content: canister.Texts("two"), Finish: canister.FinishStop}, canister.User{Head: head("v"), Content: canister.Texts("three")})
	visit(t, ctx, s.URL+"/conversations/plan")
	run(t, ctx, poll(`document.getElementById("live-status").textContent !== ""`), chromedp.Evaluate[chromedp.Void](
		`document.getElementById("c2").remove(); const shown = Object.create(Stream.prototype); shown.timeline = timeline;
		shown.entry({id: "c2", html: '<li id="c2" class="entry">again</li>'}); shown.entry({id: "c9", html: '<li id="c9" class="entry">last</li>'});
		shown.entry({id: "c0", html: '<li id="c0" class="entry">first</li>'}); undefined`))
	if got := value(t, ctx, chromedp.Evaluate[string](`[...timeline.children].map(each => each.id).join(" ")`)); got != "c0 c1 c2 c3 c9" {
		t.Errorf("the entries are %s", got)
	}
}

// A page that connects again, or whose message begins again, shows the text of the message once.
func TestTextBeginsAgain(t *testing.T) {
	s, ctx := furnished(t), open(t)
	entered(t, ctx, s)
	visit(t, ctx, s.URL+"/conversations/weather")
	for _, again := range []string{`say("begin", null)`, `say("delta", {again: true})`} {
		run(t, ctx, chromedp.Evaluate[chromedp.Void](`{
			const fake = new EventTarget(), say = (name, data) => fake.dispatchEvent(new MessageEvent(name, {data: JSON.stringify(data)}));
			fake.close = () => {};
			window.EventSource = function () { return fake; };
			new Stream(timeline);
			say("delta", {text: "Take a "}); `+again+`; say("delta", {text: "Take a warm "}); say("delta", {text: "coat."});
		} undefined`))
		if got := value(t, ctx, chromedp.Evaluate[string](`[...document.querySelectorAll(".streaming")].map(each => each.textContent).join("|")`)); got != "Take a warm coat." {
			t.Errorf("after %s the page has %q", again, got)
		}
		run(t, ctx, chromedp.Evaluate[chromedp.Void](`document.querySelector(".streaming").remove()`))
	}
}

// What waits for an answer comes onto the open page with its form, keeps what the reader writes, and goes
// when it is answered elsewhere; so does the button that cancels.
func TestOpenPageAsks(t *testing.T) {
	call := func(path string) conversetest.Line {
		return conversetest.Line{Calls: []conversetest.Call{{Name: "local__edit_file", Arguments: `{"path":"` + path + `","old_text":"one","new_text":"two"}`}}}
	}
	s := consolestage.Start(t, consolestage.Options{Lines: []conversetest.Line{call("a.txt"), call("b.txt"), {Text: "It is done."}}})
	ctx := open(t)
	entered(t, ctx, s)
	visit(t, ctx, s.URL+"/conversations")
	run(t, ctx, chromedp.SendKeys(chromedp.CSS("textarea[name=message]"), "Change both."), chromedp.Submit(chromedp.CSS("textarea[name=message]")),
		chromedp.WaitVisible(chromedp.CSS("#timeline .entry.user")), chromedp.Evaluate[chromedp.Void]("window.same = 1; undefined"),
		chromedp.WaitVisible(chromedp.CSS("#waits input[name=verdict][value=allow] ~ button")),
		poll(`document.getElementById("live-status").textContent === "The turn waits for an answer."`),
		chromedp.SendKeys(chromedp.CSS("#actions textarea[name=message]"), "And then?"))
	answer := func(file string) {
		t.Helper()
		at := value(t, ctx, chromedp.Evaluate[string](`document.querySelector("#waits form").getAttribute("action").replace("/console", "")`))
		if page := value(t, ctx, chromedp.Evaluate[string](`document.getElementById("waits").textContent`)); !strings.Contains(page, file) {
			t.Errorf("the form is about another call:\n%s", page)
		}
		s.Login(t, consolestage.Ops).Post(at, "verdict", "allow")
	}
	answer("a.txt")
	run(t, ctx, poll(`document.getElementById("waits").textContent.includes("b.txt")`))
	answer("b.txt")
	run(t, ctx, chromedp.WaitVisible(chromedp.CSS(".entry.assistant .text")), chromedp.WaitNotPresent(chromedp.CSS("#waits form")),
		chromedp.WaitNotPresent(chromedp.CSS("#actions form[action$=cancel]")), chromedp.WaitNotPresent(chromedp.CSS("#badges .open")))
	written, same := value(t, ctx, chromedp.Evaluate[string](`document.querySelector("#actions textarea").value`)), value(t, ctx,
		chromedp.Evaluate[int]("window.same"))
	if length := value(t, ctx, chromedp.Text(chromedp.CSS("#length"))); written != "And then?" || same != 1 || length != "14" {
		t.Errorf("the box has %q; the page is the same: %d; it says %q canisters", written, same, length)
	}
}

// A click right after the page has changed the forms that decide sends none of them, and a second click does
// not send a form twice.
func TestClicksAfterAChange(t *testing.T) {
	s, ctx := furnished(t), open(t)
	entered(t, ctx, s)
	visit(t, ctx, s.URL+"/waiting")
	click := func(before string) string {
		return value(t, ctx, chromedp.Evaluate[string](before+`
			{ let outcome = "";
			document.getElementById("note")?.remove();
			addEventListener("submit", (event) => { outcome = event.defaultPrevented ? "held" : "sent"; event.preventDefault(); }, { once: true });
			document.querySelector(".answers button").click();
			outcome + (document.getElementById("note") ? " and said" : ""); }`))
	}
	for _, one := range []struct{ before, want string }{
		{`changed = performance.now();`, "held and said"}, {`changed = -Infinity; moved = performance.now();`, "held and said"},
		{`changed = moved = -Infinity;`, "sent"}, {``, "held"}, // a second click
	} {
		if got := click(one.before); got != one.want {
			t.Errorf("after %q a click is %s, want %s", one.before, got, one.want)
		}
	}
}

// The focus and the place in a text stay where they are when the stream replaces the forms around them, and do
// not go to the form of another wait.
func TestFocusStays(t *testing.T) {
	s, ctx := furnished(t), open(t)
	entered(t, ctx, s)
	visit(t, ctx, s.URL+"/conversations/edit")
	for focus, want := range map[string]string{
		`document.querySelector("#waits .answers button")`:                     "Allow this call",
		`document.querySelector("#actions textarea")`:                          "3",
		`document.querySelector("#waits article").querySelector("summary")`:    "Arguments as JSON",
		`document.querySelectorAll("#waits .answers form")[1].elements.reason`: "3",
	} {
		got := value(t, ctx, chromedp.Evaluate[string](`{
			document.querySelectorAll("details").forEach((each) => { each.open = true; });
			const field = `+focus+`; field.focus();
			if (field.setSelectionRange) { field.value = "abcdef"; field.setSelectionRange(3, 3); }
			for (const id of ["waits", "actions"]) {
				const old = document.getElementById(id);
				const other = "<article id=other><form action=/other><button>Allow this call</button></form></article>";
				const extra = id === "waits" ? other : "";
				exchange(old, extra + old.innerHTML);
			}
			const now = document.activeElement;
			const other = now.closest("#other") ? "other " : "";
			document.getElementById("other")?.remove();
			other + (now.selectionStart ?? now.textContent); }`))
		if got != want {
			t.Errorf("%s: the focus is at %q, want %q", focus, got, want)
		}
	}
}

// A page that is not seen has no connection, and gets what it has missed when it is seen again; a long timeline
// loses its beginning, with a link to it.
func TestUnseenPage(t *testing.T) {
	s, ctx := furnished(t), open(t)
	entered(t, ctx, s)
	visit(t, ctx, s.URL+"/conversations/weather")
	run(t, ctx, poll(`document.getElementById("live-status").textContent !== ""`), chromedp.Evaluate[chromedp.Void](`
		window.hiddenNow = true; Object.defineProperty(document, "hidden", { get: () => hiddenNow });
		{ const close = EventSource.prototype.close; EventSource.prototype.close = function () { window.left = true; return close.call(this); }; }
		document.dispatchEvent(new Event("visibilitychange")); undefined`), poll(`window.left === true`),
		chromedp.Evaluate[chromedp.Void](`window.left = false; window.background = new Stream(timeline); undefined`),
		poll(`window.left === true`))
	if err := s.Store.Append(t.Context(), "weather", 8, canister.User{Head: canister.Head{ID: "v", Time: at},
		Content: canister.Texts("And now?")}); err != nil {
		t.Fatal(err)
	}
	run(t, ctx, chromedp.Evaluate[chromedp.Void](`hiddenNow = false; document.dispatchEvent(new Event("visibilitychange")); undefined`),
		poll(`timeline.textContent.includes("And now?") && document.getElementById("length").textContent === "9"`),
		chromedp.Evaluate[chromedp.Void](`{ const shown = Object.create(Stream.prototype); shown.timeline = timeline; shown.atEnd = () => true;
			for (let i = 10; i < 1300; i++) { shown.entry({ id: "c" + i, html: '<li id="c' + i + '" class="entry">again</li>' }); } } undefined`))
	got := value(t, ctx,
		chromedp.Evaluate[string](`{
			const to = new URL(document.getElementById("earlier").href).searchParams.get("to");
			timeline.children.length + " " + (timeline.firstElementChild.id === "c" + (Number(to) + 1)); }`))
	if !strings.HasSuffix(got, " true") || len(got) != len("1199 true") {
		t.Errorf("the timeline: %s", got)
	}
}

// A page says that the server no longer sends it, and that goes when it does again.
func TestStalePage(t *testing.T) {
	s, ctx := furnished(t), open(t)
	entered(t, ctx, s)
	visit(t, ctx, s.URL+"/waiting")
	run(t, ctx,
		chromedp.Evaluate[chromedp.Void](`window.real = window.fetch; window.fetch = () => Promise.reject(new Error("away")); undefined`),
		chromedp.WaitVisible(chromedp.CSS("#note")), chromedp.Evaluate[chromedp.Void](`window.fetch = real; undefined`),
		chromedp.WaitNotPresent(chromedp.CSS("#note")))
}
