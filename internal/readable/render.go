// SPDX-License-Identifier: Apache-2.0

package readable

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/consort-go/consort/internal/display"
	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	rendererhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// maxRendered is the length of the longest text that is rendered as Markdown, in bytes.
// Longer texts are shown as they are: the time to parse some of them grows with the square
// of their length.
const maxRendered = 64 << 10

// headingOffset is added to the levels of headings within messages: the headings of the
// document have the levels before.
const headingOffset = 2

// Fragment returns a text of Markdown as HTML that runs no script, loads nothing and has no
// attributes for style. Raw HTML is shown as text. Each line break counts if hardWraps is set.
func Fragment(text string, hardWraps bool) string {
	if len(text) > maxRendered {
		return preformatted(text)
	}
	var b strings.Builder
	engine := soft
	if hardWraps {
		engine = hard
	}
	if err := engine().Convert([]byte(text), &b); err != nil {
		return preformatted(text)
	}
	// References such as &#x202e; have become characters.
	return display.HTML(sanitizer().Sanitize(b.String()))
}

var (
	soft = sync.OnceValue(func() goldmark.Markdown { return goldmark.New(dialect(), ownRenderer) })
	hard = sync.OnceValue(func() goldmark.Markdown {
		return goldmark.New(dialect(), ownRenderer, goldmark.WithRendererOptions(rendererhtml.WithHardWraps()))
	})
	ownRenderer = goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(nodes{}, 100)))
)

// dialect is the Markdown of GitHub without its footnotes.
func dialect() goldmark.Option {
	return goldmark.WithExtensions(extension.Linkify, extension.Strikethrough, extension.TaskList,
		extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)))
}

// sanitizer returns the policy for rendered Markdown. It is the second line of defence:
// nodes writes nothing that the policy removes.
var sanitizer = sync.OnceValue(func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "h3", "h4", "h5", "h6", "strong", "em", "del", "code", "pre", "blockquote",
		"ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^language-[\w+#.-]+$`)).OnElements("code")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|center|right)$`)).OnElements("th", "td")
	p.AllowAttrs("type").Matching(regexp.MustCompile(`^checkbox$`)).OnElements("input")
	p.AllowAttrs("checked", "disabled").Matching(regexp.MustCompile(`^$`)).OnElements("input")
	p.AllowAttrs("href", "title").OnElements("a")
	p.AllowURLSchemes(schemes...)
	p.RequireParseableURLs(true)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	return p
})

// schemes are the schemes of addresses that become links.
var schemes = []string{"http", "https", "mailto"}

// linkable reports whether an address becomes a link: it has one of the schemes.
func linkable(address string) bool {
	u, err := url.Parse(address)
	return err == nil && slices.Contains(schemes, u.Scheme)
}

// nodes renders what goldmark itself would drop, or would load from elsewhere.
type nodes struct{}

// RegisterFuncs implements [renderer.NodeRenderer].
func (n nodes) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, n.heading)
	r.Register(ast.KindHTMLBlock, n.htmlBlock)
	r.Register(ast.KindRawHTML, n.rawHTML)
	r.Register(ast.KindLink, n.link)
	r.Register(ast.KindImage, n.image)
	r.Register(ast.KindAutoLink, n.autoLink)
}

func (nodes) heading(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	slash, end := "", ""
	if !entering {
		slash, end = "/", "\n"
	}
	_, err := fmt.Fprintf(w, "<%sh%d>%s", slash, demoted(node.(*ast.Heading).Level), end)
	return ast.WalkContinue, err
}

// demoted returns the level in the document of a heading in a message.
func demoted(level int) int { return min(level+headingOffset, 6) }

func (nodes) htmlBlock(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	var err error
	if entering {
		_, err = w.WriteString(preformatted(htmlOf(node.(*ast.HTMLBlock), source)))
	}
	return ast.WalkSkipChildren, err
}

// htmlOf returns the source of a block of HTML.
func htmlOf(block *ast.HTMLBlock, source []byte) string {
	text := string(block.Lines().Value(source))
	if block.HasClosure() {
		text += string(block.ClosureLine.Value(source))
	}
	return text
}

var lineBreak = regexp.MustCompile(`(?i)^<br */?>$`)

func (nodes) rawHTML(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkSkipChildren, nil
	}
	text := string(node.(*ast.RawHTML).Segments.Value(source))
	if !lineBreak.MatchString(text) { // models write it into the cells of tables
		text = html.EscapeString(text)
	}
	_, err := w.WriteString(text)
	return ast.WalkSkipChildren, err
}

func (nodes) link(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	link := node.(*ast.Link)
	address := string(util.URLEscape(link.Destination, true))
	var text string
	switch canLink := linkable(address); {
	case canLink && entering:
		text = anchor(address, string(link.Title))
	case canLink:
		text = "</a>" + destination(plain(link, source), address)
	case !entering:
		text = " (" + html.EscapeString(shortAddress(address)) + ")"
	}
	_, err := w.WriteString(text)
	return ast.WalkContinue, err
}

func anchor(address, title string) string {
	if title != "" {
		title = fmt.Sprintf(" title=\"%s\"", html.EscapeString(title))
	}
	return fmt.Sprintf("<a href=\"%s\"%s>", html.EscapeString(address), title)
}

// addressLike matches a word that a reader can take for an address, and its host or its mailbox.
var addressLike = regexp.MustCompile(`^(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://)?([^/?#:\s]+\.[^/?#:\s]+)`)

// destination returns where a link leads, to be written after it, if its text has an address of another host: its host,
// or its mailbox. It is empty otherwise.
func destination(text, address string) string {
	u, err := url.Parse(address)
	for word := range strings.FieldsSeq(text) {
		named := addressLike.FindStringSubmatch(strings.Trim(word, `()[]<>{}"'.,;!?`))
		if err == nil && named != nil && !strings.EqualFold(named[1], u.Hostname()+u.Opaque) {
			return " (" + html.EscapeString(u.Hostname()+u.Opaque) + ")" // a mailbox is opaque
		}
	}
	return ""
}

// shortAddress returns an address without the data that it may contain.
func shortAddress(address string) string {
	if head, data, isData := strings.Cut(address, ","); isData && strings.HasPrefix(strings.ToLower(head), "data:") {
		return fmt.Sprintf("%s, %d bytes", head, len(data))
	}
	return address
}

// image renders a link to an image: the page loads nothing.
func (nodes) image(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	image := node.(*ast.Image)
	address := string(util.URLEscape(image.Destination, true))
	text := html.EscapeString("[" + strings.TrimSpace("image: "+plain(image, source)) + "]")
	switch {
	case !linkable(address):
		text += " (" + html.EscapeString(shortAddress(address)) + ")"
	case !isWithinLink(image):
		text = anchor(address, string(image.Title)) + text + "</a>" + destination(plain(image, source), address)
	}
	_, err := w.WriteString(text)
	return ast.WalkSkipChildren, err
}

func isWithinLink(node ast.Node) bool {
	for up := node.Parent(); up != nil; up = up.Parent() {
		if up.Kind() == ast.KindLink {
			return true
		}
	}
	return false
}

// plain returns the text below a node.
func plain(node ast.Node, source []byte) string {
	var b strings.Builder
	for c := node.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			b.Write(c.Value(source))
			if c.SoftLineBreak() || c.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(c.Value)
		case *ast.AutoLink:
			b.Write(c.Label(source))
		default:
			b.WriteString(plain(c, source))
		}
	}
	return b.String()
}

func (nodes) autoLink(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	auto := node.(*ast.AutoLink)
	address, label := string(util.URLEscape(auto.URL(source), false)), html.EscapeString(string(auto.Label(source)))
	if auto.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(address), "mailto:") {
		address = "mailto:" + address
	}
	if linkable(address) && !isWithinLink(auto) {
		label = anchor(address, "") + label + "</a>"
	}
	_, err := w.WriteString(label)
	return ast.WalkContinue, err
}
