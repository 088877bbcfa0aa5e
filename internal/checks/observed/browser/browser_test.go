// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/internal/testing/consolestage"
	"github.com/consort-go/consort/internal/testing/hostile"
	"github.com/consort-go/consort/internal/testing/installed"
)

var update = flag.Bool("update", false, "write the golden files, and the README's pictures")

// limit bounds each test.
const limit = 2 * time.Minute

// open starts a browser and returns its context.
func open(t *testing.T) context.Context {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil || installed.Hidden() {
		installed.Missing(t, errors.New("chromium is not installed: .ci/install-servers installs it"))
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-dev-shm-usage", true))
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	run(t, ctx)
	return ctx
}

type step = chromedp.Action[chromedp.Void]

// run runs steps in the browser.
func run(t *testing.T, ctx context.Context, steps ...step) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// value returns the value of an action in the browser.
func value[T any](t *testing.T, ctx context.Context, action chromedp.Action[T]) T {
	t.Helper()
	got, err := chromedp.Run(ctx, action)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// visit opens a page and waits until its script has run.
func visit(t *testing.T, ctx context.Context, address string) {
	t.Helper()
	run(t, ctx, chromedp.Navigate(address), chromedp.WaitReady(chromedp.CSS("main")))
}

// entered opens the console with a link.
func entered(t *testing.T, ctx context.Context, s *consolestage.Stage) {
	t.Helper()
	link := strings.TrimSuffix(s.URL, "/console") + s.Console.Link(consolestage.Ops)
	run(t, ctx, chromedp.Navigate(link), chromedp.WaitVisible(chromedp.CSS("nav")))
}

// at is the time of everything in the stage of the golden files.
var at = time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)

// furnished returns a stage with a conversation that ended and one that waits.
func furnished(t *testing.T) *consolestage.Stage {
	t.Helper()
	s := consolestage.Start(t, consolestage.Options{})
	head := func(id string) canister.Head { return canister.Head{ID: id, Time: at} }
	usage := &canister.Usage{Input: 1200, Output: 80}
	put(t, s.Store, "weather", "Weather in Oslo",
		canister.User{Head: head("u"), Content: canister.Texts("What should I wear in **Oslo**?")},
		canister.Assistant{Head: head("a"), Model: "scripted", Usage: usage, Finish: canister.FinishInvocations},
		canister.Invocation{Head: head("i"), Message: "a", CallID: "i", Name: "local__weather", Arguments: `{"city":"Oslo"}`},
		canister.Intent{Head: head("n"), Invocation: "i", Attempt: 1},
		canister.Result{Head: canister.Head{ID: "r", Time: at.Add(120 * time.Millisecond)}, Invocation: "i",
			Content: canister.Texts("Snow in Oslo.")},
		canister.Invocation{Head: head("j"), Message: "a", CallID: "j", Name: "local__weather", Arguments: `{"city":"Atlantis"}`},
		canister.Result{Head: head("q"), Invocation: "j", Code: "NOT_FOUND", Content: canister.Texts("There is no city of this name.")},
		canister.Assistant{Head: head("b"), Model: "scripted", Usage: usage,
			Content: canister.Texts("Take a warm coat.\n\n| city | sky |\n|---|---|\n| Oslo | snow |"), Finish: canister.FinishStop})
	put(t, s.Store, "edit", "Edit a file",
		canister.User{Head: head("u"), Content: canister.Texts("Change it.")}, canister.Assistant{Head: head("a"),
			Finish: canister.FinishInvocations},
		canister.Invocation{Head: head("i"), Message: "a", CallID: "i", Name: "local__edit_file",
			Arguments: `{"path":"a.txt","old_text":"one","new_text":"two"}`},
		canister.Wait{Head: head("w"), For: canister.WaitApproval, Invocation: "i", Deadline: at.AddDate(50, 0, 0), Conversation: "edit",
			Arguments: `{"path":"a.txt","old_text":"one","new_text":"two"}`})
	return s
}

func put(t *testing.T, store history.Store, id, title string, canisters ...canister.Canister) {
	t.Helper()
	owner := "owner-ada"
	if err := store.Append(t.Context(), id, 0, canisters...); err != nil {
		t.Fatal(err)
	}
	if err := store.Describe(t.Context(), id, history.Change{Title: &title, Owner: &owner}); err != nil {
		t.Fatal(err)
	}
}

// pages are the pages of the furnished stage, by the names of their golden files.
var pages = map[string]string{
	"now": "/", "waiting": "/waiting", "conversations": "/conversations?q=warm", "conversation": "/conversations/weather",
	"waiting-conversation": "/conversations/edit",
	"tools":                "/tools", "tool": "/tools/local__weather", "library": "/library", "resource": "/library/resource?uri=note%3A%2F%2Fpacking",
	"prompt": "/library/prompts/local__greet",
	"spend":  "/spend?from=2026-02-20&to=2026-03-05", "pins": "/pins", "audit": "/audit", "missing": "/none",
}

// submitted are pages whose form is filled in and sent.
var submitted = []struct{ name, path, field, value string }{
	{"resource-read", "/library/resource", "main input[name=uri]", "note://packing"},
	{"bytes-read", "/library/resource", "main input[name=uri]", "note://map.svg"},
	{"prompt-got", "/library/prompts/local__greet", "main input[name=v-guest]", "Eve"},
}

// widths are those of a phone, a tablet and a wide screen.
var widths = []int64{360, 820, 1680}

// Each page is as its golden file has it. axe-core finds no violation, in light and in dark,
// and nothing is wider than the screen.
func TestPages(t *testing.T) {
	axe, err := os.ReadFile(filepath.Join("..", "..", "..", "..", ".ci", "npm", "node_modules", "axe-core", "axe.min.js"))
	if err != nil || installed.Hidden() {
		installed.Missing(t, errors.New("axe-core is not installed: .ci/install-servers installs it"))
	}
	s, ctx := furnished(t), open(t)
	visit(t, ctx, s.URL+"/login")
	accessible(t, ctx, "login", string(axe))
	entered(t, ctx, s)
	visit(t, ctx, s.URL+"/tools")                          // connects the tools, whose state other pages show
	for _, name := range slices.Sorted(maps.Keys(pages)) { // the audit has the visits before
		visit(t, ctx, s.URL+pages[name])
		looked(t, ctx, name, string(axe))
	}
	for _, one := range submitted {
		visit(t, ctx, s.URL+one.path)
		run(t, ctx, chromedp.SendKeys(chromedp.CSS(one.field), one.value), chromedp.Submit(chromedp.CSS(one.field)),
			chromedp.WaitVisible(chromedp.CSS(".outcome")))
		looked(t, ctx, one.name, string(axe))
	}
}

// looked compares the open page with its golden file, and looks at it at each width.
func looked(t *testing.T, ctx context.Context, name, axe string) {
	t.Helper()
	golden(t, ctx, name)
	for i, width := range widths {
		scheme := []string{"light", "dark", "light"}[i]
		run(t, ctx, chromedp.EmulateViewport(width, 900), prefers(scheme))
		accessible(t, ctx, fmt.Sprintf("%s at %d, %s", name, width, scheme), axe)
		if wide := value(t, ctx, chromedp.Evaluate[int64]("document.documentElement.scrollWidth")); wide > width {
			t.Errorf("%s is %d wide on a screen of %d", name, wide, width)
		}
		picture(t, ctx, outside, fmt.Sprintf("%s-%d", name, width))
		if *update && slices.Contains(inReadme, name) && width == widths[1] {
			run(t, ctx, chromedp.EmulateViewport(width, 640), chromedp.Evaluate[chromedp.Void](
				`void document.getElementById("timeline")?.scrollIntoView({behavior: "instant"})`))
			picture(t, ctx, filepath.Join("docs", "images"), "console-"+name)
		}
	}
}

// prefers makes the browser prefer light or dark.
func prefers(scheme string) step {
	return func(ctx context.Context, target *chromedp.Target) (done chromedp.Void, err error) {
		_, err = cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return done, err
	}
}

// accessible fails for each violation that axe-core finds on the page.
func accessible(t *testing.T, ctx context.Context, name, axe string) {
	t.Helper()
	run(t, ctx, chromedp.Evaluate[chromedp.Void](axe+";0"))
	found := value(t, ctx, chromedp.Evaluate[string](
		`axe.run().then(r => JSON.stringify(r.violations.map(v => ({rule: v.id, help: v.help, nodes: v.nodes.map(n => n.html.slice(0, 200))}))))`, chromedp.EvalAwaitPromise))
	var violations []struct {
		Rule, Help string
		Nodes      []string
	}
	if err := json.Unmarshal([]byte(found), &violations); err != nil {
		t.Fatal(err)
	}
	for _, v := range violations {
		t.Errorf("%s: %s: %s: %q", name, v.Rule, v.Help, v.Nodes)
	}
}

// changing matches what differs from run to run.
var changing = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`value="[A-Z0-9]{26}"`), `value="…"`},
	{regexp.MustCompile(`form_id=[A-Z0-9]{26}`), `form_id=…`},
	{regexp.MustCompile(`<time [^>]*>[^<]*</time>`), `<time>…</time>`},
	{regexp.MustCompile(`\?v=[0-9a-f]+`), `?v=…`},
	{regexp.MustCompile(`20\d\d-\d\d-\d\d`), "DATE"},
	{regexp.MustCompile(`T\d\d:\d\d:\d\d\.\d+Z`), "TIME"},
	{regexp.MustCompile(`/tmp/[^ <"]+`), "FILE"},
	{regexp.MustCompile(`(?s)<p id="live-status".*?</p>`), `<p id="live-status"></p>`},
}

// golden compares the content of a page, one element a line, with a file.
func golden(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	got := value(t, ctx, chromedp.OuterHTML(chromedp.CSS("main")))
	for _, c := range changing {
		got = c.pattern.ReplaceAllString(got, c.by)
	}
	got = strings.ReplaceAll(got, "><", ">\n<") + "\n"
	path := filepath.Join("testdata", name+".html")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs from %s (go test -update writes it):\n%s", name, path, got)
	}
}

// outside is the folder of screenshots that are not in the repository.
var outside = filepath.Join(".ci", "out", "console")

// inReadme are the pages that the README shows.
var inReadme = []string{"conversation", "waiting"}

// picture stores a screenshot in a folder of the repository.
func picture(t *testing.T, ctx context.Context, folder, name string) {
	t.Helper()
	folder = filepath.Join("..", "..", "..", "..", folder)
	shot := value(t, ctx, chromedp.CaptureScreenshot())
	err := os.MkdirAll(folder, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".png"), shot, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Whatever users, models and tools write, no script of it runs, no dialog opens, no request leaves,
// and no page gets wider than a phone.
func TestHostileTexts(t *testing.T) {
	s, ctx := consolestage.Start(t, consolestage.Options{Library: hostileLibrary()}), open(t)
	requests, dialogs := listen(t, ctx)
	entered(t, ctx, s)
	run(t, ctx, chromedp.EmulateViewport(widths[0], 900))
	narrow := func(what string) {
		if !value(t, ctx, chromedp.Evaluate[bool](`document.documentElement.scrollWidth <= innerWidth`)) {
			t.Errorf("%s is wider than the screen", what)
		}
	}
	for i, said := range hostile.Texts {
		said = strings.ReplaceAll(strings.ToValidUTF8(said, "?"), "\x00", "")
		id, head := fmt.Sprintf("h%d", i), canister.Head{Time: at}
		user, assistant, call, result := head, head, head, head
		user.ID, assistant.ID, call.ID, result.ID = "u", "a", "i", "r"
		put(t, s.Store, id, said, canister.User{Head: user, Content: canister.Texts(said)}, canister.Assistant{Head: assistant, Model: said,
			Content: canister.Texts(said), Usage: &canister.Usage{Input: 1}},
			canister.Invocation{Head: call, Message: "a", CallID: "i", Name: said, Arguments: said}, canister.Result{Head: result, Invocation: "i",
				Content: canister.Texts(said), Code: said})
		visit(t, ctx, s.URL+"/conversations/"+id)
		narrow(fmt.Sprintf("a conversation with %.40q", said))
	}
	for _, path := range []string{"/conversations", "/", "/waiting", "/spend?from=2026-02-20&to=2026-03-05", "/tools", "/library",
		"/library/resource?uri=odd%3A%2F%2F0",
		"/library/resource?uri=odd%3A%2F%2F100", "/library/prompts/local__odd0", "/library/prompts/local__odd100", "/audit"} {
		visit(t, ctx, s.URL+path)
		if strings.HasPrefix(path, "/library/") {
			run(t, ctx, chromedp.Submit(chromedp.CSS("main form input:not([type=hidden])")), chromedp.WaitVisible(chromedp.CSS(".outcome")))
		}
		narrow(path)
	}
	for _, address := range requests() {
		if !strings.HasPrefix(address, s.URL) && !strings.HasPrefix(address, dateIcon) {
			t.Errorf("a request to %s", address)
		}
	}
	if said := dialogs(); len(said) > 0 {
		t.Errorf("dialogs open: %q", said)
	}
}

// dateIcon begins the address of the icon that the browser puts into a field for a day. No text of
// the corpus begins so.
const dateIcon = "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmci"

// hostileLibrary has all texts in resources and prompts: as names, as parts and as messages.
func hostileLibrary() *local.Library {
	all := &local.Library{}
	for first := 0; first < len(hostile.Texts); first += 100 {
		texts := hostile.Texts[first:min(first+100, len(hostile.Texts))]
		all.Resources = append(all.Resources, local.Resource{Resource: ensemble.Resource{URI: fmt.Sprintf("odd://%d", first),
			Name: texts[0], Description: texts[1]},
			Read: func(context.Context) (parts []canister.ResourceContent, err error) {
				for _, said := range texts {
					parts = append(parts, canister.ResourceContent{URI: said, MIME: said, Text: said})
				}
				return parts, nil
			}})
		all.Prompts = append(all.Prompts, local.Prompt{Prompt: ensemble.Prompt{Name: fmt.Sprintf("odd%d", first), Title: texts[0],
			Description: texts[1],
			Arguments:   []ensemble.PromptArgument{{Name: "x", Title: texts[2], Description: texts[3]}}},
			Get: func(context.Context, map[string]string) (*ensemble.Messages, error) {
				messages := &ensemble.Messages{Description: texts[0]}
				for _, said := range texts {
					messages.Messages = append(messages.Messages, ensemble.PromptMessage{Role: said, Content: canister.Texts(said)})
				}
				return messages, nil
			}})
	}
	return all
}

// listen collects the addresses of all requests from now on, and the texts of dialogs.
func listen(t *testing.T, ctx context.Context) (requests, dialogs func() []string) {
	t.Helper()
	var mu sync.Mutex
	var addresses, texts []string
	run(t, ctx, func(_ context.Context, target *chromedp.Target) (done chromedp.Void, err error) {
		sent, opened := cdp.Events(ctx, target, network.RequestWillBeSent), cdp.Events(ctx, target, page.JavascriptDialogOpening)
		go func() {
			for e, err := range sent {
				if err != nil {
					return
				}
				mu.Lock()
				addresses = append(addresses, e.Request.URL)
				mu.Unlock()
			}
		}()
		go func() {
			for e, err := range opened {
				if err != nil {
					return
				}
				mu.Lock()
				texts = append(texts, e.Message)
				mu.Unlock()
			}
		}()
		_, err = cdp.Call(ctx, target, network.Enable, network.EnableParams{})
		return done, err
	})
	return func() []string { mu.Lock(); defer mu.Unlock(); return addresses }, func() []string { mu.Lock(); defer mu.Unlock(); return texts }
}

// A message that is sent in the browser is answered on the open page, from the first delta to
// the last entry, without another load.
func TestLiveConversation(t *testing.T) {
	begin, wait := make(chan struct{}), make(chan struct{})
	s := consolestage.Start(t, consolestage.Options{Lines: []conversetest.Line{{
		Expect: func(*converse.Request) error { <-begin; return nil }, Text: "Take a warm coat.", Wait: wait,
	}}})
	ctx := open(t)
	entered(t, ctx, s)
	visit(t, ctx, s.URL+"/conversations")
	run(t, ctx, chromedp.SendKeys(chromedp.CSS("textarea[name=message]"), "What should I wear?"),
		chromedp.Submit(chromedp.CSS("textarea[name=message]")),
		chromedp.WaitVisible(chromedp.CSS("#timeline .entry.user")), chromedp.Evaluate[chromedp.Void]("window.same = 1"))
	current := `document.getElementById("live-status").textContent !== ""`
	run(t, ctx, func(ctx context.Context, target *chromedp.Target) (done chromedp.Void, err error) {
		_, err = chromedp.Poll[bool](current)(ctx, target)
		return done, err
	})
	close(begin)
	run(t, ctx, chromedp.WaitVisible(chromedp.CSS(".entry.streaming")))
	close(wait)
	run(t, ctx, chromedp.WaitVisible(chromedp.CSS(".entry.assistant")), chromedp.WaitNotPresent(chromedp.CSS(".entry.streaming")))
	text, same := value(t, ctx, chromedp.Evaluate[string](`document.querySelector(".entry.assistant .text").textContent`)), value(t, ctx,
		chromedp.Evaluate[int]("window.same"))
	if strings.TrimSpace(text) != "Take a warm coat." || same != 1 {
		t.Errorf("the page has %q; it is the same: %d", text, same)
	}
}
