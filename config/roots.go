// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/consort-go/consort/mcpadapter"
)

// Root is a place that a server may work in, as it is told (MCP 2025-11-25,
// client/roots). It bounds nothing by itself.
type Root struct {
	Path Value  // of a folder or file, absolute
	Name string // for people; may be empty
}

// root is one table of roots.
func root(to *Root) value {
	return tableOf([]field{
		{"path", directory(&to.Path)},
		{"name", text(&to.Name)},
	}, func(r *reader, n *node) {
		if n.member("path") == nil {
			r.missing(n, "path", `missing: expected a folder, such as path = "."`)
		}
	})
}

// rootsOf returns the roots as the protocol has them, behind those that a program
// has set for all servers; nil for none.
func rootsOf(roots []Root, all []mcpadapter.Root) []mcpadapter.Root {
	told := append([]mcpadapter.Root(nil), all...)
	for _, root := range roots {
		path := filepath.ToSlash(root.Path.Reveal())
		if !strings.HasPrefix(path, "/") { // C:/work
			path = "/" + path
		}
		told = append(told, mcpadapter.Root{URI: (&url.URL{Scheme: "file", Path: path}).String(), Name: root.Name})
	}
	return told
}
