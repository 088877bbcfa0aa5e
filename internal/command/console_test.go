// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/tomltext"
)

// TestConsole: the command opens the browser with a link of this machine that works once, and
// ends after a signal.
func TestConsole(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	opened := filepath.Join(folder, "opened")
	writeAt(t, "#!/bin/sh\necho \"$1\" > "+opened+".new && mv "+opened+".new "+opened+"\n", folder, "xdg-open")
	if err := os.Chmod(filepath.Join(folder, "xdg-open"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := file(t, model(t, says("Hello from the model.")))
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := run{env: []string{"PATH=" + folder + ":" + os.Getenv("PATH"), "DISPLAY=:0"}}.command(ctx, t, "console", "--config", path)
	stderr := temporary(t)
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the browser", func() bool { _, err := os.Stat(opened); return err == nil })
	text, err := os.ReadFile(opened)
	if err != nil {
		t.Fatal(err)
	}
	link := strings.TrimSpace(string(text))
	if u, err := url.Parse(link); err != nil || u.Hostname() != "127.0.0.1" || !strings.HasPrefix(u.Path, "/console/link") {
		t.Fatalf("the browser got %q, %v", link, err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	get := func(client *http.Client, address string) (int, string) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	person, stranger := &http.Client{Jar: jar}, &http.Client{}
	if status, page := get(person, link); status != http.StatusOK || len(jar.Cookies(mustParse(t, link))) != 1 {
		t.Errorf("the link: %d %s", status, page)
	}
	now := strings.SplitN(link, "/console/", 2)[0] + "/console/"
	if status, page := get(person, now); status != http.StatusOK || !strings.Contains(page, "· operate") {
		t.Errorf("the console: %d %s", status, page)
	}
	for _, address := range []string{link, now} {
		if _, page := get(stranger, address); strings.Contains(page, "· operate") {
			t.Errorf("%s opens the console for a stranger:\n%s", address, page)
		}
	}
	if status, _ := get(stranger, link); status == http.StatusOK {
		t.Error("the link works twice")
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil { // as when its terminal is closed
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, written(t, stderr))
	}
	contains(t, "standard error", written(t, stderr), "The console opens in your browser", link)
}

func mustParse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/console/"
	return u
}

// TestConsoleAsks: in a conversation of the console a call that may change something waits for
// the person's approval; a read does not, and neither does what a default allows.
func TestConsoleAsks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		tables string
		waits  bool
	}{"no default": {"", true}, "default allow": {"[approval]\ndefault = \"allow\"\n", false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ada, page := newVisitor(t), ""
			form, console := openConsole(t, ada, file(t, model(t, says("", calls("atlas__weather", `{"city":"Oslo"}`)),
				says("", calls("satchel__pack", `{"items":["hat"]}`)), says("Packed.")), atlas(0), satchel(0), test.tables))
			response, err := ada.browser.PostForm(console+"/conversations", url.Values{"form_token": {form}, "message": {"Pack a hat."}})
			if status, text := ada.read(response, err); status != http.StatusOK {
				t.Fatalf("the message: %d %s", status, text)
			}
			at := response.Request.URL.String()
			see := func(words string) {
				t.Helper()
				waitFor(t, words, func() bool { _, page = ada.read(ada.browser.Get(at)); return strings.Contains(page, words) })
			}
			if !test.waits {
				see("Packed.")
				return
			}
			see("May this call be made?")
			if strings.Contains(page, "Packed.") || strings.Count(page, "Allow this call") != 1 {
				t.Errorf("not just the call of satchel__pack waits:\n%s", page)
			}
			answer := regexp.MustCompile(`action="/console(/waiting/[^"]+)"`).FindStringSubmatch(page)
			ada.read(ada.browser.PostForm(console+answer[1], url.Values{"form_token": {form}, "verdict": {"allow"}}))
			see("Packed.")
		})
	}
}

// openConsole starts consort console with a configuration, logs a visitor in, and returns the
// token of its forms and the address of the console.
func openConsole(t *testing.T, p *visitor, path string) (form, console string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit) // it is ended by a signal, after the test
	cmd := run{}.command(ctx, t, "console", "--no-browser", "--config", path)
	stderr := temporary(t)
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer cancel()
		if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
			t.Errorf("%v\n%s", err, written(t, stderr))
		}
	})
	link := regexp.MustCompile(`http://\S+/console/link\S+`)
	waitFor(t, "the link", func() bool { return link.MatchString(written(t, stderr)) })
	address := link.FindString(written(t, stderr))
	p.read(p.browser.Get(address))
	console, _, _ = strings.Cut(address, "/link?")
	_, text := p.read(p.browser.Get(console + "/"))
	found := formFields.FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("the console: %s", text)
	}
	return found[1], console
}

// TestCallFromTheConsole: the audit trail has the call of a tool with its ID and its outcome.
func TestCallFromTheConsole(t *testing.T) {
	t.Parallel()
	trail := filepath.Join(t.TempDir(), "audit.jsonl")
	ada := newVisitor(t)
	form, console := openConsole(t, ada, file(t, atlas(0), "[audit]\nfile = "+tomltext.Quote(trail)+"\n"))
	_, page := ada.read(ada.browser.PostForm(console+"/tools/atlas__weather",
		url.Values{"form_token": {form}, "form_id": {"one"}, "arguments": {`{"city":"Oslo"}`}}))
	contains(t, "the page", page, "Oslo", "It took ")
	records, err := os.ReadFile(trail)
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile(`"asker":"console".*"invocation":"console-[A-Z2-7]+".*"ensemble":"atlas","tool":"weather","arguments":{"city":"Oslo"}.*"code":"OK"`)
	if !call.Match(records) {
		t.Errorf("the trail lacks the call: %s", records)
	}
}

// TestReloadFromTheConsole: after a reload the console says which servers cannot be connected, and has the pins of
// the new configuration.
func TestReloadFromTheConsole(t *testing.T) {
	t.Parallel()
	table := "[serve]\nhttp = \"127.0.0.1:0\"\nwatch = false\n[[serve.clients]]\nname = \"ada\"\ntoken = \"" + adasToken +
		"\"\nconsole = \"operate\"\n"
	path := file(t, table, atlas(0))
	g, ada := serve(t, true, "--config", path), newVisitor(t)
	console, form := ada.intoConsole(g, adasToken)
	pinned := atlas(0) + "pin = " + tomltext.Quote(filepath.Join(t.TempDir(), "tools.pins.json")) + "\n"
	writeAt(t, strings.Join([]string{table, pinned, broken}, "\n"), path)
	status, page := ada.read(ada.browser.PostForm(console+"/reload", url.Values{"form_token": {form}}))
	if status != http.StatusOK || !strings.Contains(page, "broken cannot be connected: ") {
		t.Errorf("after the reload: %d %s", status, page)
	}
	if _, page := ada.read(ada.browser.Get(console + "/pins")); !strings.Contains(page, "Each pinned tool is as it was accepted.") {
		t.Errorf("the page of the pins: %s", page)
	}
	g.signal(os.Interrupt)
	g.ends(exit.Done)
}
