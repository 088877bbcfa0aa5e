// SPDX-License-Identifier: Apache-2.0

package readable_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/readable"
	"github.com/consort-go/consort/internal/testing/hostile"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	"golang.org/x/net/html"
)

// everywhere puts a text into each part of a conversation.
func everywhere(said string) []canister.Canister {
	quoted, _ := json.Marshal(said)
	resource := canister.ResourceContent{URI: said, MIME: said, Text: said}
	contents := []canister.Content{
		canister.Text(said), canister.ImageContent{MIME: said, Data: []byte(said)}, canister.ImageContent{URL: said},
		canister.ImageContent{MIME: "image/png", Data: append(slices.Clone(pixel), said...)},
		canister.AudioContent{MIME: said, Data: []byte(said)}, resource, canister.ResourceContent{URI: said, MIME: said, Blob: []byte(said)},
		canister.LinkContent{URI: said, Name: said, Title: said, Description: said},
	}
	structured := []canister.Content{canister.StructuredContent{JSON: json.RawMessage(`{"x":` + string(quoted) + `}`)}}
	return clocked(
		canister.Supervisor{Head: id("s"), Content: contents},
		canister.User{Head: id("u"), Content: contents},
		canister.Document{Head: id("d"), Title: said, URI: said, Content: contents},
		canister.Assistant{Head: id("a"), Content: contents, Model: said, Finish: canister.Finish(said)},
		canister.Invocation{Head: id("i"), Message: "a", CallID: said, Name: said, Arguments: said},
		canister.Invocation{Head: id("j"), Message: "a", CallID: "j", Name: "x", Arguments: `{"x":` + string(quoted) + `}`},
		canister.Wait{
			Head: id("w"), For: canister.WaitApproval, Invocation: "i", Deadline: began.Add(time.Hour), Who: said,
			Arguments: said, Question: json.RawMessage(quoted),
		},
		canister.Answer{
			Head: id("y"), Wait: "w", Verdict: canister.VerdictChange, By: said, Reason: said,
			Arguments: json.RawMessage(quoted), Content: contents,
		},
		canister.Intent{Head: id("n"), Invocation: "i", Attempt: 1, Key: said, Arguments: said, Wait: "w"},
		canister.Result{Head: id("r"), Invocation: "i", Code: said, Content: contents},
		canister.Result{Head: id("q"), Invocation: "j", Content: structured},
		canister.Wait{Head: id("v"), For: canister.WaitFor(said), Deadline: began.Add(time.Hour)},
		canister.Assistant{Head: id("b"), Content: canister.Texts("The last words.")},
	)
}

// attributes are those that a page may have, by element.
var attributes = map[string][]string{
	"html": {"lang"}, "meta": {"charset", "http-equiv", "content", "name"}, "section": {"class"}, "h2": nil, "span": {"class"}, "time": {"datetime"},
	"p": {"class"}, "div": {"class"}, "details": {"open"}, "code": {"class"}, "a": {"href", "title", "rel"}, "img": {"alt", "src"},
	"ol": {"start"}, "th": {"align"}, "td": {"align"}, "input": {"checked", "disabled", "type"},
}

var elements = strings.Fields("html head body title style meta section h1 h2 h3 h4 h5 h6 p div span time code pre details summary a img strong em del " +
	"blockquote ul ol li table thead tbody tr th td input br hr")

var address = regexp.MustCompile(`^(?:https?:|mailto:)`)

// checkPage reports what a page has that could run, load or hide something.
func checkPage(page string, sections int) error {
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return err
	}
	styles, found := 0, 0
	for node := range root.Descendants() {
		switch {
		case node.Type == html.CommentNode:
			return fmt.Errorf("a comment: %q", node.Data)
		case node.Type == html.TextNode && strings.ContainsFunc(node.Data, display.IsInvisible) && display.Text(node.Data) != node.Data:
			return fmt.Errorf("invisible characters in %q", node.Data)
		case node.Type != html.ElementNode:
			continue
		case !slices.Contains(elements, node.Data):
			return fmt.Errorf("an element %s", node.Data)
		case node.Data == "style":
			styles++
		case node.Data == "section":
			if found++; node.Parent.Data != "body" {
				return fmt.Errorf("a section in %s", node.Parent.Data)
			}
		}
		for _, a := range node.Attr {
			isBad := a.Key == "href" && !address.MatchString(a.Val) || a.Key == "src" && !strings.HasPrefix(a.Val, "data:image/png;base64,")
			if isBad || !slices.Contains(attributes[node.Data], a.Key) || display.Text(a.Val) != a.Val {
				return fmt.Errorf("%s has %s=%q", node.Data, a.Key, a.Val)
			}
		}
	}
	if styles != 1 || found != sections {
		return fmt.Errorf("%d styles and %d sections, want %d", styles, found, sections)
	}
	return nil
}

var gfm = goldmark.New(goldmark.WithExtensions(extension.GFM))

// checkDocument reports whether a Markdown document has other parts than those that are its own.
func checkDocument(document string, headings int) error {
	source := []byte(document)
	found, last := 0, ""
	err := ast.Walk(gfm.Parser().Parse(text.NewReader(source)), func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := node.(type) {
		case *ast.Heading:
			if n.Level <= 2 {
				found++
			}
		case *ast.HTMLBlock, *ast.RawHTML, *ast.Image, *ast.LinkReferenceDefinition:
			return ast.WalkStop, fmt.Errorf("a %s", n.Kind())
		case *ast.Link:
			if !address.MatchString(string(n.Destination)) {
				return ast.WalkStop, fmt.Errorf("a link to %q", n.Destination)
			}
		case *ast.Paragraph:
			last = string(n.Lines().Value(source))
		}
		return ast.WalkContinue, nil
	})
	switch {
	case err != nil:
		return err
	case strings.ContainsFunc(document, display.IsInvisible) && display.Text(document) != document:
		return fmt.Errorf("invisible characters")
	case found != headings:
		return fmt.Errorf("%d headings, want %d", found, headings)
	case strings.TrimSpace(last) != "The last words.":
		return fmt.Errorf("the last paragraph is %q", last)
	}
	return nil
}

// check checks the documents with a text in each place of a conversation.
func check(t *testing.T, said string) {
	t.Helper()
	store := stored(t, everywhere(said)...)
	title := strings.ReplaceAll(strings.ToValidUTF8(said, "?"), "\x00", "?")
	owner, tags := title[:0], []string{title}
	if len(title) <= history.MaxID {
		owner = title
	}
	if err := store.Describe(t.Context(), "talk", history.Change{Title: &title, Tags: &tags, Owner: &owner}); err != nil {
		t.Fatal(err)
	}
	export := func(format readable.Format, full bool) string {
		var b strings.Builder
		if err := readable.Export(t.Context(), &b, store, format, readable.Options{Full: full}, "talk"); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for _, full := range []bool{false, true} {
		parts := 7
		if full {
			parts++ // the wait of the conversation
		}
		if err := checkPage(export(readable.HTML, full), parts); err != nil {
			t.Errorf("the page with %.200q has %v", said, err)
		}
		if document := export(readable.Markdown, full); checkDocument(document, parts+1) != nil {
			t.Errorf("the document with %.200q has %v:\n%.3000s", said, checkDocument(document, parts+1), document)
		}
	}
}

// TestHostileTexts: whatever a conversation contains, its documents contain nothing that
// runs, loads or pretends.
func TestHostileTexts(t *testing.T) {
	for _, said := range hostile.Texts {
		check(t, said)
		check(t, "Well:\n\n"+said+"\n\nand "+said)
	}
	check(t, strings.Join(hostile.Texts, "\n\n"))
	check(t, strings.Join(hostile.Texts, "\n"))
}

// FuzzExport: no text that is in every place of a conversation runs or loads anything.
func FuzzExport(f *testing.F) {
	for _, said := range hostile.Texts {
		f.Add(said)
	}
	f.Fuzz(func(t *testing.T, said string) { check(t, said) })
}

// TestLongTexts: a text that would take long to parse is shown as it is.
func TestLongTexts(t *testing.T) {
	for _, said := range []string{strings.Repeat("x", 1<<20), strings.Repeat("> ", 1<<19), strings.Repeat("# *x* <b>\n", 1<<17)} {
		talk := clocked(canister.User{Head: id("u"), Content: canister.Texts(said)}, canister.Document{Head: id("d"), Content: canister.Texts(said)},
			canister.Assistant{Head: id("b"), Content: canister.Texts("The last words.")})
		page, document := exported(t, readable.HTML, false, talk...), exported(t, readable.Markdown, false, talk...)
		if err := errors.Join(checkPage(page, 3), checkDocument(document, 4)); err != nil {
			t.Errorf("%.20q: %v", said, err)
		}
		if strings.Contains(page, "<blockquote>") || strings.Contains(page, "<em>") || !strings.Contains(page, html.EscapeString(strings.TrimSpace(said))) {
			t.Errorf("%.20q is rendered, or is not there", said)
		}
	}
}

// TestImagesAreBounded: a page holds so many bytes of images, and only of known types.
func TestImagesAreBounded(t *testing.T) {
	image := func(data ...[]byte) (all []canister.Content) {
		for _, data := range data {
			all = append(all, canister.ImageContent{MIME: "image/png", Data: data})
		}
		return all
	}
	large := append(slices.Clone(pixel), make([]byte, 2<<20-len(pixel))...)
	for name, test := range map[string]struct {
		content []canister.Content
		want    int
	}{
		"large":      {image(large), 1},
		"too large":  {image(append(large, 0)), 0},
		"too many":   {image(large, large, large, large, large, large, large, large, large), 8},
		"not one":    {image([]byte("<svg xmlns='http://www.w3.org/2000/svg'/>"), []byte("GIF"), nil), 0},
		"a resource": {[]canister.Content{canister.ResourceContent{URI: "x", Blob: pixel}}, 1},
	} {
		page := exported(t, readable.HTML, false, canister.User{Head: id("u"), Content: test.content})
		if got := strings.Count(page, "<img "); got != test.want || strings.Count(page, "class=\"other\"") != len(test.content)-test.want {
			t.Errorf("%s: %d images, want %d", name, got, test.want)
		}
	}
}

// TestReadersSeeWhatWasMeant: how Markdown comes out.
func TestReadersSeeWhatWasMeant(t *testing.T) {
	for said, want := range map[string]struct{ page, document string }{
		"# One\n\n###### Six":                  {"<h3>One</h3>\n<h6>Six</h6>", "### One\n\n###### Six"},
		"One\n===\nTwo *lines*\nof it\n---\nx": {"<h3>One</h3>\n<h4>Two <em>lines</em><br>\nof it</h4>\n<p>x</p>", "### One\n#### Two *lines* of it\nx"},
		"> # Q\n\n- # L":                       {"<blockquote>\n<h3>Q</h3>", "> ### Q\n\n- ### L"},
		"```go\nx":                             {"<pre><code class=\"language-go\">x\n</code></pre>", "```go\nx\n```"},
		"[x](javascript:alert(1))":             {"<p>x (javascript:alert(1))</p>", `\[x](javascript:alert(1))`},
		"![a *b*](http://c.example/d)": {
			`<p><a href="http://c.example/d" rel="nofollow noreferrer">[image: a b]</a></p>`, `\![a *b*](http://c.example/d)`,
		},
		"![a](data:image/png;base64,AAAA)": {"<p>[image: a] (data:image/png;base64, 4 bytes)</p>", `\!\[a](data:image/png;base64,AAAA)`},
		"[a][1]\n\n[1]: http://b.example/": {`<p><a href="http://b.example/" rel="nofollow noreferrer">a</a></p>`, "[a][1]\n\n\\[1]: http://b.example/"},
		"a<br>b <i>c</i>":                  {"<p>a<br>b &lt;i&gt;c&lt;/i&gt;</p>", `a\<br>b \<i>c\</i>`},
		"<div>\n*x*\n</div>":               {"<pre>\n&lt;div&gt;\n*x*\n&lt;/div&gt;</pre>", "\\<div>\n*x*\n\\</div>"},
		"a &lt; b &amp; &#x202e;c \u202e":  {"<p>a &lt; b &amp; &lt;U+202E&gt;c &lt;U+202E&gt;</p>", `a &lt; b &amp; \&#x202e;c <U+202E>`},
		"~~a~~ www.b.example":              {`<del>a</del> <a href="http://www.b.example" rel="nofollow noreferrer">www.b.example</a>`, "~~a~~ www.b.example"},
	} {
		user := canister.User{Head: id("u"), Content: canister.Texts(said)}
		if page := exported(t, readable.HTML, false, user); !strings.Contains(page, want.page) {
			t.Errorf("%q is on the page\n%s", said, page[strings.Index(page, "<section"):])
		}
		if document := exported(t, readable.Markdown, false, user); !strings.HasSuffix(document, "\n\n"+want.document+"\n") {
			t.Errorf("%q is in the document\n%s", said, document)
		}
	}
}

// TestTitlesAreEscapedOnlyWhereNeeded: a title means what it says, and reads well.
func TestTitlesAreEscapedOnlyWhereNeeded(t *testing.T) {
	for title, want := range map[string]string{
		"Weather in Oslo, 2026-11-22 12:16 (CET)!": "", "atlas__weather and a_b": "", "C# & Go: 50% [draft]": "", "a < b > c, 1. and - x": "", "AT&T;": "",
		"*bold* `code` _em_ ~x~": "\\*bold\\* \\`code\\` \\_em\\_ \\~x\\~", "<b> &amp; [x](y)": `\<b> \&amp; [x\](y)`, "1. one": `1\. one`, "a #": `a \#`, `\*`: `\\\*`,
	} {
		store := stored(t, canister.User{Head: id("u"), Content: canister.Texts("x")})
		if err := store.Describe(t.Context(), "talk", history.Change{Title: &title}); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := readable.Export(t.Context(), &b, store, readable.Markdown, readable.Options{}, "talk"); err != nil {
			t.Fatal(err)
		}
		if first, _, _ := strings.Cut(b.String(), "\n"); first != "# "+cmp.Or(want, title) {
			t.Errorf("%q becomes %q", title, first)
		}
		var page strings.Builder
		if err := gfm.Convert([]byte(b.String()), &page); err != nil || !strings.Contains(page.String(), "<h1>"+gfmEscaped(title)+"</h1>") {
			t.Errorf("%q is read as %s", title, page.String())
		}
	}
}

func gfmEscaped(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
