// SPDX-License-Identifier: Apache-2.0

package loginpages

import (
	"cmp"
	"html"
	"io"
	"net/http"
	"strings"
)

// content is the content of a page. Its methods escape all texts: html/template would make
// the linker keep ten megabytes of methods.
type content interface {
	title() string
	body() string
}

const style = `body{font:1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:3rem auto;padding:0 1rem}` +
	`input{width:100%;font:inherit;padding:.4rem;box-sizing:border-box}button{font:inherit;padding:.4rem 1rem;margin-top:1rem}.problem{color:#a00}`

// show writes a page.
func (p *Pages) show(w http.ResponseWriter, status int, c content) {
	w.WriteHeader(status)
	title := html.EscapeString(c.title())
	_, _ = io.WriteString(w, `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>`+ // the browser may have gone
		title+`</title><style>`+style+`</style></head><body><h1>`+title+`</h1>`+c.body()+"</body></html>\n")
}

// filled replaces the verbs %s of a page by escaped texts.
func filled(page string, texts ...string) string {
	for _, text := range texts {
		page = strings.Replace(page, "%s", strings.ReplaceAll(html.EscapeString(text), "%", "&#37;"), 1)
	}
	return page
}

// notice is a page with a text, and a link if Back is a path.
type notice struct{ Title, Text, Back string }

func (n notice) title() string { return n.Title }
func (n notice) body() string {
	body := filled("<p>%s</p>", n.Text)
	if n.Back != "" {
		body += filled(`<p><a href="%s">Go back</a></p>`, n.Back)
	}
	return body
}

// question is the page of a link.
type question struct {
	Server, Client string
	Known          bool   // the browser belongs to the client
	Asked          bool   // a call needs the login; otherwise the person began it
	Shared         bool   // the gateway is logged in, for all clients
	SignsIn        bool   // the person can log in at the issuer of the client's token
	Problem        string // with the last answer
}

func (q question) title() string { return "Log in at " + q.Server }

func (q question) body() string {
	var b strings.Builder
	switch {
	case q.Shared:
		b.WriteString(filled(`<p>If you go on, you log in at the server <strong>%s</strong>, and this gateway calls that server with your rights, for all of its clients.</p>`, q.Server))
	case !q.Asked:
		b.WriteString(filled(`<p>If you go on, you log in at the server <strong>%s</strong>, and this gateway calls that server with your rights whenever your client <strong>%s</strong> asks it to. Nobody else gets your login.</p>`, q.Server, cmp.Or(q.Client, "without a name")))
	default:
		b.WriteString(filled(`<p>A call of the client <strong>%s</strong> of this gateway needs a login at the server <strong>%s</strong>. If you go on, you log in there, and this gateway calls that server with your rights whenever that client asks it to. Nobody else gets your login.</p><p>If you did not make that call, close this page.</p>`,
			cmp.Or(q.Client, "without a name"), q.Server))
	}
	if q.Problem != "" {
		b.WriteString(filled(`<p class="problem" role="alert">It was refused: %s.</p>`, q.Problem))
	}
	if !q.Known && q.SignsIn {
		b.WriteString(`<form method="post"><p>First show that it is yours, with the account with which your client is logged in at this gateway:</p><button type="submit" name="issuer" value="yes" autofocus>Log in at the gateway</button></form><p>If your client has a token of its own instead:</p>`)
	}
	b.WriteString(`<form method="post">`)
	if !q.Known {
		b.WriteString(`<p><label>The token with which your client logs in at this gateway, to show that it is yours:<input type="password" name="token" autocomplete="off" required></label></p>`)
	}
	b.WriteString(filled(`<button type="submit">Log in at %s</button></form>`, q.Server))
	return b.String()
}
