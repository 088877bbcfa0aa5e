// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/internal/testing/consolestage"
	"github.com/consort-go/consort/internal/testing/hostile"
	"github.com/consort-go/consort/invoker"
)

// A person who may call tools reads resources: texts are shown, bytes are a file to download. The
// audit has who read what.
func TestReadResource(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	ada, ben := s.Login(t, consolestage.Ada), s.Login(t, consolestage.Ben)
	list := ben.Get("/library").Text
	for _, want := range []string{`href="/console/library/resource?uri=note%3A%2F%2Fpacking"`, "Packing list", "forecast://{city}",
		`href="/console/library/prompts/local__greet"`} {
		if !strings.Contains(list, want) {
			t.Errorf("the list lacks %q:\n%s", want, list)
		}
	}
	for uri, want := range map[string]string{"note://packing": "# Packing\n\n- a warm coat", "forecast://Oslo": "Snow in Oslo.",
		"note://map.svg": "image/svg+xml, 59 bytes",
		"note://none":    "NOT_FOUND", "": "NOT_FOUND"} {
		if page := ada.Get("/library/resource?" + url.Values{"uri": {uri}}.Encode()).Text; strings.Contains(page, want) {
			t.Errorf("%s is read before it is asked for", uri)
		}
		if reply := ada.Post("/library/resource", "uri", uri); reply.StatusCode != http.StatusOK || !strings.Contains(reply.Text, want) ||
			strings.Contains(reply.Text, "onload") {
			t.Errorf("%s: %s, without %q:\n%s", uri, reply.Status, want, reply.Text)
		}
		if reply := ben.Post("/library/resource", "uri", uri); reply.StatusCode != http.StatusForbidden {
			t.Errorf("%s by a person who only reads: %s", uri, reply.Status)
		}
	}
	file := ada.Post("/library/resource", "uri", "note://map.svg", "part", "0")
	header := file.Header
	if !strings.HasPrefix(file.Text, "<svg") || header.Get("Content-Type") != "application/octet-stream" ||
		header.Get("X-Content-Type-Options") != "nosniff" ||
		header.Get("Content-Disposition") != "attachment; filename=map.svg" || !strings.Contains(header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("the download has %v\n%s", header, file.Text)
	}
	trail, err := os.ReadFile(s.Audit)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"tool":"read_resource","arguments":{"uri":"note://packing"},"by":"ada","code":"OK"`,
		`"tool":"read_resource","arguments":{"uri":"note://none"},"by":"ada","code":"NOT_FOUND"`,
		`"tool":"download_resource","arguments":{"uri":"note://map.svg"}`} {
		if !strings.Contains(string(trail), want) {
			t.Errorf("the audit lacks %s:\n%s", want, trail)
		}
	}
}

// A prompt has a form for its arguments, and its messages are shown.
func TestGetPrompt(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{})
	ada := s.Login(t, consolestage.Ada)
	page := ada.Get("/library/prompts/local__greet").Text
	for _, want := range []string{"Guest (required)", "Name of the guest.", `name="v-tone"`, "Greeting"} {
		if !strings.Contains(page, want) {
			t.Errorf("the form lacks %q:\n%s", want, page)
		}
	}
	for fields, want := range map[string]string{"guest=Eve": "Greet Eve in a warm tone.",
		"guest=Eve&tone=cool": "Greet Eve in a cool tone.", "tone=cool": "INVALID_ARGUMENTS"} {
		v, _ := url.ParseQuery(fields)
		send := []string{"v-tone", v.Get("tone")}
		if v.Has("guest") {
			send = append(send, "v-guest", v.Get("guest"))
		}
		if page := ada.Post("/library/prompts/local__greet", send...).Text; !strings.Contains(page, want) {
			t.Errorf("%s: the page lacks %q:\n%s", fields, want, page)
		}
	}
	if reply := s.Login(t, consolestage.Ben).Post("/library/prompts/local__greet", "v-guest", "x"); reply.StatusCode != http.StatusForbidden {
		t.Errorf("a person who only reads: %s", reply.Status)
	}
	if reply := ada.Get("/library/prompts/nothing"); reply.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown prompt: %s", reply.Status)
	}
	if trail, err := os.ReadFile(s.Audit); err != nil || !strings.Contains(string(trail),
		`"tool":"get_prompt","arguments":{"arguments":{"guest":"Eve","tone":"cool"},"prompt":"local__greet"},"by":"ada","code":"OK"`) {
		t.Errorf("%v; the audit has:\n%s", err, trail)
	}
}

// What a server writes about its resources and prompts, and in them, is text on the pages.
func TestHostileLibrary(t *testing.T) {
	for i, said := range hostile.Texts {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			said = strings.ToValidUTF8(said, "?")
			read := func(context.Context) ([]canister.ResourceContent, error) {
				return []canister.ResourceContent{{URI: said, MIME: said, Text: said}, {URI: said, MIME: said, Blob: []byte(said)}}, nil
			}
			odd := ensemble.Resource{URI: "odd://x/" + url.PathEscape(said), Name: said, Title: said, Description: said, MIME: said}
			s := consolestage.Start(t, consolestage.Options{Library: &local.Library{
				Resources: []local.Resource{{Resource: odd, Read: read}},
				Prompts: []local.Prompt{{Prompt: ensemble.Prompt{Name: "odd", Title: said, Description: said,
					Arguments: []ensemble.PromptArgument{{Name: "x", Title: said, Description: said}}},
					Get: func(context.Context, map[string]string) (*ensemble.Messages, error) {
						return &ensemble.Messages{Description: said, Messages: []ensemble.PromptMessage{{Role: said, Content: canister.Texts(said)},
							{Role: "user", Content: []canister.Content{canister.LinkContent{URI: said, Name: said},
								canister.ResourceContent{URI: said, MIME: said, Text: said}}}}}, nil
					}}},
			}})
			ada := s.Login(t, consolestage.Ada)
			for _, page := range []consolestage.Reply{ada.Get("/library"), ada.Get("/library/resource?" + url.Values{"uri": {said}}.Encode()),
				ada.Post("/library/resource", "uri", said), ada.Post("/library/resource", "uri", odd.URI),
				ada.Get("/library/prompts/local__odd"), ada.Post("/library/prompts/local__odd", "v-x", said)} {
				checkPage(t, page.Request.URL.Path, page.Text)
			}
			file := ada.Post("/library/resource", "uri", odd.URI, "part", "1")
			if kind := file.Header.Get("Content-Type"); kind != "application/octet-stream" ||
				!strings.HasPrefix(file.Header.Get("Content-Disposition"), "attachment; filename=") {
				t.Errorf("a download has %v", file.Header)
			}
		})
	}
}

// Secrets are hidden in resources and prompts, and in messages about failures.
func TestSecretsInTheLibrary(t *testing.T) {
	const said = "the password is " + consolestage.Secret + "."
	s := consolestage.Start(t, consolestage.Options{Library: &local.Library{
		Resources: []local.Resource{{Resource: ensemble.Resource{URI: "a://b", Name: said, Description: said},
			Read: func(context.Context) ([]canister.ResourceContent, error) {
				return []canister.ResourceContent{{Text: said}}, nil
			}}},
		Prompts: []local.Prompt{{Prompt: ensemble.Prompt{Name: "odd", Description: said}, Get: func(context.Context,
			map[string]string) (*ensemble.Messages, error) {
			return nil, invoker.Failf(invoker.NotFound, said)
		}}},
	}})
	ada := s.Login(t, consolestage.Ada)
	for _, page := range []consolestage.Reply{ada.Get("/library"), ada.Post("/library/resource", "uri", "a://b"),
		ada.Post("/library/resource", "uri", "a://b", "part", "0"),
		ada.Get("/library/prompts/local__odd"), ada.Post("/library/prompts/local__odd")} {
		if strings.Contains(page.Text, consolestage.Secret) || !strings.Contains(page.Text, "[secret]") {
			t.Errorf("%s shows\n%s", page.Request.URL, page.Text)
		}
	}
}
