// SPDX-License-Identifier: Apache-2.0

package config

import (
	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/values"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/internal/fileurl"
	"github.com/consort-go/consort/mcpadapter"
)

// Root is a place that a server is told it may work in (MCP 2025-11-25, client/roots). It
// does not restrict the server.
type Root struct {
	Path values.Value // absolute path of a folder or file
	Name string       // for display; may be empty
}

// root is one table of the list roots.
func root(to *Root) grammar.Kind {
	return grammar.Table([]grammar.Field{
		grammar.Key("path", grammar.Path(&to.Path)),
		grammar.Key("name", grammar.Text(&to.Name)),
	}, func(r *grammar.Reader, n *document.Node) {
		if n.Member("path") == nil {
			r.Missing(n, "path", `missing: expected a folder, such as path = "."`)
		}
	})
}

// rootsOf converts roots to the form of the protocol and appends them to the roots that
// the program has set for all servers. It returns nil for no roots at all.
func rootsOf(roots []Root, all []mcpadapter.Root) []mcpadapter.Root {
	told := append([]mcpadapter.Root(nil), all...)
	for _, root := range roots {
		told = append(told, mcpadapter.Root{URI: fileurl.Of(root.Path.Reveal()), Name: root.Name})
	}
	return told
}
