// SPDX-License-Identifier: Apache-2.0

// Package urirules compares URIs that a client sends with the globs of allow and deny lists.
//
// Servers take different spellings for the same resource, and not all servers the same ones:
// most follow RFC 3986, those in JavaScript and many in Python the URL Standard of the WHATWG,
// and some look at the path alone. So a rule is compared with each URI that a server may read.
package urirules

import (
	"cmp"
	"slices"
	"strings"

	"github.com/consort-go/consort/internal/glob"
)

// The largest URI that is compared, in bytes, and how often it may be encoded. The work grows
// with both.
const maxURI, maxLevels = 8 << 10, 8

// Reading is a URI that a server may read instead of another one.
type Reading struct {
	URI string
	// Variant says that the reading leaves out parts that most servers look at: the query, the
	// fragment, the host, or a slash at the end. It is excluded by a deny list, and an allow
	// list need not have it.
	Variant bool
}

// Readings returns the URIs that servers may read instead of a URI; the URI itself is the first.
// None may be read if the URI has control characters, or begins or ends with spaces, since
// parsers leave them out, or if it is too large or encoded too often.
func Readings(uri string) (all []Reading, ok bool) {
	if len(uri) > maxURI || strings.ContainsFunc(uri, isControl) || strings.Trim(uri, " ") != uri {
		return nil, false
	}
	all = []Reading{{URI: uri}}
	uri = strings.ReplaceAll(uri, " ", "%20") // as parsers read it
	add := func(uri string, variant bool) {
		if !slices.ContainsFunc(all, func(r Reading) bool { return r.URI == uri && (variant || !r.Variant) }) {
			all = append(all, Reading{uri, variant})
		}
	}
	decoded, whole := uri, decode(uri, isNoted)
	head, query, fragment := split(uri)
	head = decode(head, isNoted)
	for range maxLevels {
		for _, p := range parsed(whole) {
			add(p.String(), false)
		}
		for _, p := range parsed(head) {
			add(p.String()+query+fragment, false)
			add(p.scheme+p.authority+cmp.Or(p.path, "/"), true)
			for _, p.path = range []string{p.path, strings.TrimSuffix(p.path, "/")} {
				add(p.String()+query+fragment, true)
				add(p.String()+query, true)
				add(p.String(), true)
				add(p.bare()+query, true)
				add(p.bare(), true)
			}
		}
		whole = decode(decoded, nil)
		if whole == decoded {
			return all, true
		}
		decoded = whole
		head, query, fragment = decode(head, nil), decode(query, nil), decode(fragment, nil)
	}
	return nil, false
}

// isControl reports whether a character is a control character.
func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// HasScheme reports whether a server may find a scheme, in lower case, in a URI.
func HasScheme(uri, scheme string) bool {
	for range maxLevels {
		uri = strings.Map(func(r rune) rune {
			if r == ' ' || isControl(r) {
				return -1
			}
			return r
		}, uri)
		if found, _, ok := strings.Cut(uri, ":"); ok && strings.ToLower(found) == scheme {
			return true
		}
		uri = decode(uri, nil)
	}
	return false
}

// Excluded reports whether an allow list, unless it is empty, or a deny list excludes a URI
// that was sent.
func Excluded(uri string, allow, deny []string) bool {
	readings, ok := Readings(uri)
	allow, deny = Globs(allow, false), Globs(deny, true)
	return !ok || slices.ContainsFunc(readings, func(r Reading) bool {
		return Match(deny, r.URI, true) || len(allow) > 0 && !r.Variant && !Match(allow, r.URI, false)
	})
}

// Match reports whether one of the globs of a deny list, or of an allow list, matches. In an allow
// list, what matches the path may not be found in a query or a fragment, which a server may leave
// out: the part before them has to match, too.
func Match(globs []string, uri string, deny bool) bool {
	head := beginning(uri)
	return slices.ContainsFunc(globs, func(pattern string) bool {
		return glob.Match(pattern, uri) && (deny || glob.Match(pattern, head) || glob.Match(withoutQuery(pattern), head))
	})
}

// withoutQuery returns a glob without its query and its fragment. A question mark stands for any
// character if only others of its kind follow, or a slash, but a query such as ?path=/a has one
// too.
func withoutQuery(pattern string) string {
	for i := range len(pattern) {
		first, _, slash := strings.Cut(pattern[i+1:], "/")
		name, _, named := strings.Cut(first, "=")
		query := named && !strings.ContainsAny(name, "-?*") || !slash && strings.Trim(first, "?") != ""
		if pattern[i] == '#' || pattern[i] == '?' && query {
			return pattern[:i]
		}
	}
	return pattern
}

// beginning returns a URI without its query and its fragment.
func beginning(uri string) string {
	if i := strings.IndexAny(uri, "?#"); i >= 0 {
		return uri[:i]
	}
	return uri
}

// Globs returns globs, and others that match the readings of the same URIs. With deny they also
// match where a server takes an encoded delimiter for a plain one.
func Globs(patterns []string, deny bool) []string {
	var all []string
	for _, pattern := range patterns {
		all = append(all, pattern)
		if !strings.Contains(pattern, ":") {
			continue // for names, or for any scheme
		}
		for _, spelled := range []string{pattern, strings.ReplaceAll(pattern, " ", "%20")} {
			for _, keep := range []func(byte) bool{isNoted, isReserved} {
				for _, p := range parsed(decode(spelled, keep)) {
					all = append(all, p.String())
				}
			}
		}
		if deny {
			all = append(all, denied(pattern)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// denied returns the globs that only a deny list has.
func denied(pattern string) (all []string) {
	for range maxLevels {
		for _, p := range parsed(decode(pattern, isNoted)) {
			all = append(all, p.String())
			if p.authority == "" || p.authority == "//" {
				all = append(all, p.bare())
			}
		}
		before := pattern
		if pattern = decode(pattern, isWildcard); pattern == before {
			break
		}
	}
	return all
}
