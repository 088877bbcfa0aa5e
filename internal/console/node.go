// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/url"
	"slices"
	"strings"

	"github.com/consort-go/consort/internal/display"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// part adds something to an element: an attribute, a text, or other elements.
type part func(parent *html.Node)

// el returns an element with its parts. The tag must be written in the code.
func el(tag string, parts ...part) part {
	return func(parent *html.Node) {
		node := &html.Node{Type: html.ElementNode, Data: tag, DataAtom: atom.Lookup([]byte(tag))}
		for _, p := range parts {
			if p != nil {
				p(node)
			}
		}
		parent.AppendChild(node)
	}
}

// text returns a text. Invisible characters are replaced by codes.
func text(s string) part {
	return func(parent *html.Node) {
		parent.AppendChild(&html.Node{Type: html.TextNode, Data: display.Text(s)})
	}
}

// attr returns an attribute, which must not be one that holds an address, a style or a
// script: see [href] and [action].
func attr(name, value string) part {
	return func(parent *html.Node) {
		parent.Attr = append(parent.Attr, html.Attribute{Key: name, Val: value})
	}
}

func class(names string) part { return attr("class", names) }

// id returns the attribute id. It is written in the code, or made of numbers.
func id(name string) part { return attr("id", name) }

// group returns parts as one.
func group(parts ...part) part {
	return func(parent *html.Node) {
		for _, p := range parts {
			if p != nil {
				p(parent)
			}
		}
	}
}

// when returns the parts if a condition holds.
func when(holds bool, parts ...part) part {
	if !holds {
		return nil
	}
	return group(parts...)
}

// href returns the address of a link: a path of the console, or a page of the web. Other
// addresses, such as those with the scheme javascript, lead nowhere.
func href(address string) part { return attr("href", safeAddress(address)) }

// linked returns a name as a link to an address that contains it, or as a text if it has a secret.
func (c *Console) linked(address, name string) part {
	if clean := c.Redact(name); clean != name {
		return text(clean)
	}
	return el("a", href(address), text(name))
}

// action returns the address of a form, a path of the console.
func action(path string) part { return attr("action", safeAddress(path)) }

func safeAddress(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil, strings.ContainsFunc(address, display.IsInvisible):
	case u.Scheme == "" && u.Host == "" && u.Opaque == "" && !strings.HasPrefix(address, "//"):
		return u.String()
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
		return u.String()
	}
	return "#"
}

// markdown returns sanitized HTML, as readable.Fragment renders it, as nodes.
func markdown(sanitized string) part {
	return func(parent *html.Node) {
		within := &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div}
		nodes, err := html.ParseFragment(strings.NewReader(sanitized), within)
		if err != nil {
			text(sanitized)(parent)
			return
		}
		for _, node := range nodes {
			openElsewhere(node)
			parent.AppendChild(node)
		}
	}
}

// openElsewhere opens the links of a node in a tab of their own: the page can have a text that is not sent yet.
func openElsewhere(within *html.Node) {
	for node := range within.Descendants() {
		if node.DataAtom == atom.A {
			node.Attr = slices.DeleteFunc(node.Attr, func(a html.Attribute) bool { return a.Key == "rel" })
			node.Attr = append(node.Attr, html.Attribute{Key: "rel", Val: "nofollow noreferrer noopener"}, html.Attribute{Key: "target", Val: "_blank"})
		}
	}
}

// fragment returns parts as HTML, without secrets in their texts.
func fragment(clean cleaner, parts ...part) string {
	root := &html.Node{Type: html.DocumentNode}
	group(parts...)(root)
	clean.redactTexts(root)
	var b strings.Builder
	if err := html.Render(&b, root); err != nil { // a strings.Builder does not fail
		return ""
	}
	return b.String()
}
