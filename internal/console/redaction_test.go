// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/internal/testing/consolestage"
	"github.com/consort-go/consort/invoker"
)

// Secrets of the configuration are on no page, however they are cut, wrapped or escaped.
func TestSecretsStayOut(t *testing.T) {
	const said = "the password is " + consolestage.Secret + "."
	s := consolestage.Start(t, consolestage.Options{Tools: []invoker.Invoker{hostileTool(t, said)}})
	stored(t, s.Store, "plan", "owner-ada", everywhere(said)...)
	stored(t, s.Store, "wrapped", "owner "+consolestage.Secret, wrapped()...)
	pinned(t, s, said)
	ops := s.Login(t, consolestage.Ops)
	for _, path := range append(slices.Clone(pages), "/conversations/plan/raw", "/conversations?q=password", "/tools/local__odd",
		"/conversations/wrapped", "/conversations?q="+consolestage.Secret, "/tools?q="+consolestage.Secret,
		"/spend?model="+consolestage.Secret, "/audit?who="+consolestage.Secret, "/library/prompts/local__greet") {
		if page := ops.Get(path).Text; hasSecret(page) {
			t.Errorf("%s shows it:\n%.3000s", path, page)
		}
	}
	response := ops.Open(http.MethodGet, "/conversations/wrapped/live?after=1", nil)
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20) // a call is one line
	for lines.Scan() {
		if hasSecret(lines.Text()) {
			t.Errorf("the stream shows it: %.3000s", lines.Text())
		}
		if strings.HasPrefix(lines.Text(), "data: ") && strings.Contains(lines.Text(), "Call of last") {
			return
		}
	}
	t.Error("the stream ended")
}

// Names that are secrets are neither on pages nor in their addresses.
func TestSecretsInNames(t *testing.T) {
	const secret = consolestage.Secret
	tool, err := invoker.New(secret, "x", func(context.Context, struct{}) (string, error) { return "done", nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := consolestage.Start(t, consolestage.Options{Tools: []invoker.Invoker{tool}, Library: &local.Library{Prompts: []local.Prompt{{
		Prompt: ensemble.Prompt{Name: secret, Arguments: []ensemble.PromptArgument{{Name: "x"}}},
		Get:    func(context.Context, map[string]string) (*ensemble.Messages, error) { return &ensemble.Messages{}, nil }}}}})
	stored(t, s.Store, secret, "owner-ada", append(asking(secret, "", "1", `{}`), canister.Invocation{Head: canister.Head{ID: "i2"}, Message: "a1",
		CallID: "2", Name: "local__" + secret, Arguments: "{}"})...)
	ops := s.Login(t, consolestage.Ops)
	ops.Post("/conversations/"+secret+"/fork", "at", "1")
	for _, path := range []string{"/", "/waiting", "/conversations", "/conversations?q=Do", "/conversations/" + secret, "/tools",
		"/tools/local__" + secret, "/library", "/library/prompts/local__" + secret, "/audit", "/pins", "/spend"} {
		if page := ops.Get(path).Text; hasSecret(page) {
			t.Errorf("%s shows it:\n%.5000s", path, page)
		}
	}
}

// A person cannot find out a secret piece by piece: a text with the beginning of one before an ellipsis is like
// any other text. A title is cut without a piece of a secret.
func TestGuessesOfSecrets(t *testing.T) {
	guess := consolestage.Secret[:9] + "…"
	s := consolestage.Start(t, consolestage.Options{Lines: []conversetest.Line{{Text: "Is it " + guess + " or " + guess + "?"}}})
	ben := s.Login(t, consolestage.Ben)
	stored(t, s.Store, "plan", "owner-ben", canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Is it " + guess + "?")})
	for _, path := range []string{"/conversations?q=" + url.QueryEscape(guess), "/tools?q=" + url.QueryEscape(guess), "/conversations/plan",
		"/conversations/plan/raw", "/conversations"} {
		if page := ben.Get(path).Text; strings.Contains(page, "[secret]") || !strings.Contains(page, guess) {
			t.Errorf("%s tells that a secret begins so:\n%.3000s", path, page)
		}
	}
	ada := s.Login(t, consolestage.Ada)
	until(t, s, ada, begun(t, s, ada, guess+" or"), guess+"?")
	long := strings.Repeat("x", 48) + consolestage.Secret
	stored(t, s.Store, "long", "owner-ada", canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts(long)})
	ada.Post("/conversations", "message", long)
	if page := ada.Get("/conversations").Text; strings.Contains(page, consolestage.Secret[:4]) {
		t.Errorf("a title has a piece:\n%s", page)
	}
}

// hasSecret reports whether a page has the secret, also with something in between.
func hasSecret(page string) bool {
	bare := regexp.MustCompile(`<[^>]*>|[\s│|]|\\\\n`).ReplaceAllString(html.UnescapeString(page), "")
	rest := consolestage.Secret[1:] // its first letter can be an escape
	return strings.Contains(page, rest) || strings.Contains(bare, rest)
}

// wrapped is a conversation that waits, with the secret at many places of a line, and with escapes.
func wrapped() []canister.Canister {
	now, arguments := time.Now(), map[string]string{}
	for n := range 60 {
		line := strings.Repeat("x", 40+n) + " " + consolestage.Secret
		arguments[fmt.Sprintf("a%02d", n)] = line
		arguments["old_text"], arguments["new_text"] = arguments["old_text"]+line+"\n", arguments["new_text"]+"y"+line+"\n"
	}
	form, _ := json.Marshal(arguments) // strings have a JSON form
	escaped := strings.Replace(string(form), consolestage.Secret, `\u0073`+consolestage.Secret[1:], 1)
	head := func(id string) canister.Head { return canister.Head{ID: id, Time: now} }
	return []canister.Canister{canister.User{Head: head("u"), Content: canister.Texts("x")},
		canister.Assistant{Head: head("a"), Finish: canister.FinishInvocations},
		canister.Invocation{Head: head("i"), Message: "a", CallID: "i", Name: "one", Arguments: escaped},
		canister.Wait{Head: head("w"), For: canister.WaitApproval, Invocation: "i", Deadline: now.Add(time.Hour), Conversation: "wrapped", Arguments: escaped},
		canister.Invocation{Head: head("j"), Message: "a", CallID: "j", Name: "last", Arguments: `{}`}}
}

// pieces is a model that writes the pieces that it is given.
type pieces chan string

func (p pieces) Exchange(_ context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		var all strings.Builder
		for text := range p {
			all.WriteString(text)
			if !yield(converse.Delta{Text: text}, nil) {
				return
			}
		}
		yield(converse.Reply{Message: canister.Assistant{Head: canister.Head{ID: request.NewID()}, Content: canister.Texts(all.String()), Finish: canister.FinishStop}}, nil)
	}
}

// A secret that a model writes in pieces is not on the page, also not for a page that connects in the
// middle of it, and characters that hide something are shown as codes.
func TestStreamedSecret(t *testing.T) {
	model := make(pieces)
	s := consolestage.Start(t, consolestage.Options{Model: model})
	ada := s.Login(t, consolestage.Ada)
	reply := ada.Post("/conversations", "message", "What is it?")
	path := strings.TrimPrefix(reply.Header.Get("Location"), "/console")
	read := func(until string) (text string) {
		response := ada.Open(http.MethodGet, path+"/live?after=1", nil)
		defer response.Body.Close()
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), `data: {"text"`); ok {
				var delta struct{ Text string }
				if err := json.Unmarshal([]byte(`{"text"`+data), &delta); err != nil {
					t.Fatal(err)
				}
				if text += delta.Text; strings.HasSuffix(text, until) {
					return text
				}
			}
		}
		return text
	}
	half := len(consolestage.Secret) / 2
	model <- "\u202eIt is "
	model <- consolestage.Secret[:half]
	if text := read("It is "); text != "<U+202E>It is " {
		t.Errorf("before the secret: %q", text)
	}
	model <- consolestage.Secret[half:]
	model <- "."
	if text := read("."); text != "<U+202E>It is [secret]." {
		t.Errorf("after the secret: %q", text)
	}
	close(model)
	until(t, s, ada, path, "It is [secret].")
}

// The arguments of a call that waits are shown without secrets. The call keeps its own arguments if the
// person sends the text as it was, and a text with the mask is refused.
func TestMaskedArguments(t *testing.T) {
	secret := `{"path":"` + consolestage.Secret + `","new_text":"two"}`
	for _, test := range []struct{ own, edit, want string }{
		{secret, "", secret},
		{secret, "two/three", "refused"},
		{secret, "[secret]/other.txt", `{"path":"other.txt","new_text":"two"}`},
		{`{"path":"[secret]","new_text":"two"}`, "two/three", `{"path":"[secret]","new_text":"three"}`}, // as the model wrote it
		{`{"path":"a.txt","new_text":"two"}`, "two/[secret]", "refused"},
	} {
		own, edit, want := test.own, test.edit, test.want
		s := consolestage.Start(t, consolestage.Options{Lines: []conversetest.Line{
			{Calls: []conversetest.Call{{Name: "local__edit_file", Arguments: own}}}, {Text: "It is done."}}})
		ada := s.Login(t, consolestage.Ada)
		path := begun(t, s, ada, "May this call be made?")
		page := ada.Get(path).Text
		to := regexp.MustCompile(`action="/console(/waiting/[^"]+)"`).FindStringSubmatch(page)[1]
		shown := html.UnescapeString(regexp.MustCompile(`(?s)name="arguments"[^>]*>(.*?)</textarea>`).FindStringSubmatch(page)[1])
		before, after, _ := strings.Cut(edit, "/")
		text := strings.ReplaceAll(strings.Replace(shown, before, after, 1), "\n", "\r\n") // as browsers send it
		if hasSecret(page) || shown == "" {
			t.Errorf("the page shows\n%s", page)
		}
		page = ada.Post(to, "verdict", "change", "arguments", text).Text
		if want == "refused" {
			if !strings.Contains(page, "Write the whole value in its place") || !strings.Contains(page, "May this call be made?") {
				t.Errorf("%q is not refused:\n%s", text, page)
			}
			continue
		}
		until(t, s, ada, path, "It is done.")
		if got := calledWith(t, s, path); !sameJSON(t, got, want) {
			t.Errorf("%q makes the call with %s, want %s", text, got, want)
		}
	}
}

// calledWith returns the arguments of the only call of a conversation, as it was made.
func calledWith(t *testing.T, s *consolestage.Stage, path string) (arguments string) {
	t.Helper()
	for one, err := range s.Store.Read(t.Context(), strings.TrimPrefix(path, "/conversations/"), 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := one.(type) {
		case canister.Invocation:
			arguments = e.Arguments
		case canister.Intent:
			if e.Arguments != "" {
				arguments = e.Arguments
			}
		}
	}
	return arguments
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var one, other any
	if json.Unmarshal([]byte(a), &one) != nil || json.Unmarshal([]byte(b), &other) != nil {
		t.Fatalf("%s or %s is not JSON", a, b)
	}
	return fmt.Sprint(one) == fmt.Sprint(other)
}

// A form for a schema shows no secret of it, and sends the values that the schema has.
func TestSecretsInForms(t *testing.T) {
	const secret = consolestage.Secret
	called := make(chan string, 1)
	tool, err := invoker.Raw(invoker.Definition{Name: "odd", Description: "x", InputSchema: []byte(`{"type":"object","properties":{
		"plain":{"type":"string","default":"` + secret + `"}, "` + secret + `":{"type":"string"},
		"one":{"type":"string","enum":["` + secret + `","other"],"default":"` + secret + `"}, "yes":{"type":"boolean","default":true}}}`)},
		func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
			called <- string(call.Arguments)
			return invoker.Output{}, nil
		}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := consolestage.Start(t, consolestage.Options{Tools: []invoker.Invoker{tool}})
	ada := s.Login(t, consolestage.Ada)
	page := ada.Get("/tools/local__odd").Text
	for _, want := range []string{`name="n-1"`, `<option value="choice 1" selected="">[secret]</option>`, `<option value="true" selected="">yes</option>`,
		"The default is [secret]"} {
		if !strings.Contains(page, want) {
			t.Errorf("the form lacks %s", want)
		}
	}
	if hasSecret(page) {
		t.Errorf("the page shows\n%s", page)
	}
	ada.Post("/tools/local__odd", "form", "fields", "v-plain", "", "n-1", "here", "v-one", "choice 1", "v-yes", "true")
	select {
	case got := <-called:
		if want := `{"plain":"` + secret + `","` + secret + `":"here","one":"` + secret + `","yes":true}`; !sameJSON(t, got, want) {
			t.Errorf("the form makes the call with %s, want %s", got, want)
		}
	default:
		t.Errorf("the form makes no call:\n%s", ada.Get("/tools/local__odd").Text)
	}
}

// The bytes of a resource have no secret in a download, nor in the canisters as JSON.
func TestSecretsInBytes(t *testing.T) {
	blob := []byte("the password is " + consolestage.Secret + ".")
	s := consolestage.Start(t, consolestage.Options{Library: &local.Library{
		Resources: []local.Resource{{Resource: ensemble.Resource{URI: "a://b", Name: "b"},
			Read: func(context.Context) ([]canister.ResourceContent, error) {
				return []canister.ResourceContent{{Blob: blob}}, nil
			}}, {Resource: ensemble.Resource{URI: "a://" + consolestage.Secret, Name: "c"},
			Read: func(context.Context) ([]canister.ResourceContent, error) {
				return []canister.ResourceContent{{Text: "found"}}, nil
			}}}}})
	ada := s.Login(t, consolestage.Ada)
	if file := ada.Post("/library/resource", "uri", "a://b", "part", "0"); file.Text != "the password is [secret]." {
		t.Errorf("the download is %q", file.Text)
	}
	stored(t, s.Store, "plan", "owner-ada", canister.User{Head: canister.Head{ID: "u"}, Content: []canister.Content{canister.ResourceContent{URI: "a://b", Blob: blob}}})
	line := ada.Get("/conversations/plan/raw").Text
	one, err := canister.Unmarshal([]byte(strings.TrimSpace(line)))
	if err != nil {
		t.Fatal(err)
	}
	if got := canister.ContentOf(one)[0].(canister.ResourceContent).Blob; string(got) != "the password is [secret]." {
		t.Errorf("the canister has %q", got)
	}
	if page := ada.Post("/library/resource", "uri", "a://"+consolestage.Secret).Text; hasSecret(page) || !strings.Contains(page, "found") {
		t.Errorf("the page shows\n%s", page)
	}
}
