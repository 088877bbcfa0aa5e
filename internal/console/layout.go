// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/openstreams"
	"golang.org/x/net/html"
)

//go:embed assets
var files embed.FS

// asset is a file that pages refer to.
type asset struct {
	text    []byte
	kind    string
	address string // with a part that changes with the text
}

func assets() map[string]asset {
	kinds := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	found := map[string]asset{}
	names, _ := fs.Glob(files, "assets/*") // the pattern is valid
	for _, name := range names {
		content, _ := files.ReadFile(name) // it is embedded
		sum := sha256.Sum256(content)
		base := path.Base(name)
		found[base] = asset{content, kinds[path.Ext(name)], Prefix + "/static/" + base + "?v=" + hex.EncodeToString(sum[:6])}
	}
	return found
}

func (c *Console) serveAsset(w http.ResponseWriter, r *http.Request) {
	found, ok := c.asset[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", found.kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(found.text)
}

// page is a page of the console.
type page struct {
	title   string
	person  *person // nil before the login
	content part
	refresh bool   // the script keeps the content current
	forward string // a path of the console where the browser goes at once
}

// sections are the entries of the menu.
var sections = []struct {
	title, path string
	least       Role
}{
	{"Now", "/", Read},
	{"Waiting", "/waiting", Read},
	{"Conversations", "/conversations", Read},
	{"Tools", "/tools", Read},
	{"Spend", "/spend", Read},
	{"Pins", "/pins", Audit},
	{"Audit", "/audit", Audit},
}

// show writes a page for a person.
func (c *Console) show(w http.ResponseWriter, r *http.Request, p *person, title string, content ...part) {
	c.write(w, r, http.StatusOK, &page{title: title, person: p, content: group(content...)})
}

// showCurrent writes a page whose content the script keeps current.
func (c *Console) showCurrent(w http.ResponseWriter, r *http.Request, p *person, title string, content ...part) {
	c.write(w, r, http.StatusOK, &page{title: title, person: p, content: group(content...), refresh: true})
}

// refuse writes a page that says why a request is refused.
func (c *Console) refuse(w http.ResponseWriter, r *http.Request, status int, why string) {
	c.write(w, r, status, refusal(status, why))
}

func refusal(status int, why string) *page {
	return &page{title: http.StatusText(status), content: group(
		el("h1", text(http.StatusText(status))), el("p", text(why)),
		el("p", el("a", href(Prefix+"/"), text("Go to the console"))))}
}

// fail writes a page about an error of the program, without its secrets. It writes nothing if the person
// has left.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, err error) {
	if _, isEnded := openstreams.Reason(r.Context()); isEnded || r.Context().Err() == nil {
		c.refuse(w, r, http.StatusInternalServerError, c.Redact(err.Error()))
	}
}

// write writes a page. If the request has ended with its token, what was read for the page may not be complete: it
// is refused, unless it has the outcome of an action.
func (c *Console) write(w http.ResponseWriter, r *http.Request, status int, pg *page) {
	isRead := status == http.StatusOK && r.Method != http.MethodPost || status == http.StatusNotFound || status == http.StatusInternalServerError
	if why, isEnded := openstreams.Reason(r.Context()); isEnded && isRead {
		status = http.StatusServiceUnavailable
		pg = refusal(status, "The request ended before its answer was ready: "+c.Redact(why)+".")
	}
	root := &html.Node{Type: html.DocumentNode}
	root.AppendChild(&html.Node{Type: html.DoctypeNode, Data: "html"})
	el("html", attr("lang", "en"),
		el("head",
			el("meta", attr("charset", "utf-8")),
			el("meta", attr("name", "viewport"), attr("content", "width=device-width, initial-scale=1")),
			el("meta", attr("name", "color-scheme"), attr("content", "light dark")),
			when(pg.forward != "", el("meta", attr("http-equiv", "refresh"), attr("content", "0;url="+pg.forward))),
			el("title", text(pg.title+" · Consort")),
			el("link", attr("rel", "stylesheet"), href(c.asset["console.css"].address)),
			el("link", attr("rel", "icon"), href(c.asset["icon.svg"].address)),
			el("script", attr("src", c.asset["console.js"].address), attr("defer", ""))),
		el("body",
			el("a", class("skip"), attr("href", "#main"), text("Skip to the content")),
			c.header(pg),
			el("main", id("main"), attr("tabindex", "-1"), when(pg.refresh, attr("data-refresh", "")), c.flash(pg.person), pg.content)))(root)
	c.clean.redactTexts(root)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = html.Render(w, root) // the reader may have left
}

func (c *Console) header(pg *page) part {
	if pg.person == nil {
		return nil
	}
	var links []part
	for _, s := range sections {
		if pg.person.Role.May(s.least) {
			current := s.title == pg.title
			links = append(links, el("li", el("a", href(Prefix+s.path), when(current, attr("aria-current", "page")), text(s.title))))
		}
	}
	return el("header",
		el("p", class("brand"), text("Consort")),
		el("nav", attr("aria-label", "Pages"), el("ul", links...)),
		el("div", class("who"), el("span", text(cmp.Or(pg.person.Name, "unnamed")+" · "+roleName(pg.person.Role))),
			c.form(pg.person, "/logout", el("button", class("plain"), text("Log out")))))
}

func roleName(role Role) string {
	for name, known := range Roles {
		if known == role {
			return name
		}
	}
	return ""
}

// flash returns the text that an action left for the next page. A page that the script fetches does not get it.
func (c *Console) flash(p *person) part {
	if p == nil || p.isScript {
		return nil
	}
	said, failed := c.sessions.takeFlash(p.session)
	if said == "" {
		return nil
	}
	if failed {
		return el("p", id("flash"), class("notice failed"), attr("role", "alert"), text(said))
	}
	return el("p", id("flash"), class("notice"), attr("role", "status"), text(said))
}

// form returns a form that posts to a path below [Prefix].
func (c *Console) form(p *person, to string, parts ...part) part {
	return el("form", attr("method", "post"), action(Prefix+to), hidden(formField, p.session.form), group(parts...))
}

// back ends an action: it stores what happened for the next page, and goes there.
func (c *Console) back(w http.ResponseWriter, r *http.Request, p *person, to, done string, err error) {
	leave(c, r, p, done, err)
	http.Redirect(w, r, Prefix+to, http.StatusSeeOther)
}

// leave stores what happened for the next page, and reports whether the action has failed.
func leave(c *Console, r *http.Request, p *person, done string, err error) (failed bool) {
	if _, damaged := errors.AsType[*history.CorruptError](err); damaged {
		err = c.unread.hide(r.Context(), p, err)
	}
	switch {
	case errors.Is(err, engine.ErrKept):
		c.sessions.setFlash(p.session, "This is stored, and takes effect later: it need not be sent again.", false)
		return false
	case err != nil:
		c.sessions.setFlash(p.session, c.Redact(err.Error()), true)
	case done != "":
		c.sessions.setFlash(p.session, done, false)
	}
	return err != nil
}

// moment returns a time for people and for machines. The script shows it in the reader's zone.
func moment(at time.Time) part {
	if at.IsZero() {
		return text("never")
	}
	at = at.UTC()
	return el("time", attr("datetime", at.Format(time.RFC3339)), text(at.Format("2006-01-02 15:04:05 MST")))
}

// table returns a table with headings. Its rows are made with [row].
func table(caption string, heads []string, rows ...part) part {
	var cells []part
	for _, head := range heads {
		cells = append(cells, el("th", attr("scope", "col"), text(head)))
	}
	return el("div", class("scroll"), attr("tabindex", "0"), attr("role", "region"), attr("aria-label", caption),
		el("table", el("caption", text(caption)), el("thead", el("tr", cells...)), named(heads, el("tbody", rows...))))
}

// named adds the heads to the cells of a body, for narrow screens, where each cell is a line.
func named(heads []string, body part) part {
	return func(parent *html.Node) {
		body(parent)
		for tr := range parent.LastChild.ChildNodes() {
			i := 0
			for td := range tr.ChildNodes() {
				if i < len(heads) {
					attr("data-head", heads[i])(td)
				}
				i++
			}
		}
	}
}

func row(cells ...part) part {
	var all []part
	for _, cell := range cells {
		all = append(all, el("td", cell))
	}
	return el("tr", all...)
}

// pre returns a text as it is, cut at a length.
func pre(s string) part {
	const most = 256 << 10
	if len(s) > most {
		cut := strings.ToValidUTF8(s[:most], "")
		return group(el("pre", attr("tabindex", "0"), text(cut)), el("p", class("faint"), text("The rest is left out here; the raw JSON or the download has all of it.")))
	}
	return el("pre", attr("tabindex", "0"), text(strings.ToValidUTF8(s, "\uFFFD")))
}

// details returns content that folds.
func details(open bool, summary part, content ...part) part {
	return el("details", when(open, attr("open", "")), el("summary", summary), group(content...))
}

// option returns a value of a select.
func option(value, title, chosen string) part {
	return el("option", attr("value", value), when(value == chosen, attr("selected", "")), text(title))
}

// field returns a labelled input of a form, whose value comes from the address of the page.
func (c *Console) field(name, label, value string, parts ...part) part {
	return el("p", class("field"), el("label", attr("for", "f-"+name), text(label)),
		el("input", id("f-"+name), attr("name", name), attr("value", c.Redact(value)), group(parts...)))
}

// area returns a labelled text of several lines.
func area(name, label, value string, parts ...part) part {
	return el("p", class("field"), el("label", attr("for", "f-"+name), text(label)),
		el("textarea", id("f-"+name), attr("name", name), attr("rows", "4"), group(parts...), raw(value)))
}
