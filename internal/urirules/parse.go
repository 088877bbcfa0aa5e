// SPDX-License-Identifier: Apache-2.0

package urirules

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
)

// isNoted reports whether a character differs from its encoding (RFC 3986, § 6.2.2.2): all
// but the unreserved ones.
func isNoted(c byte) bool {
	isLetter := 'a' <= c|0x20 && c|0x20 <= 'z'
	return !isLetter && (c < '0' || c > '9') && !strings.ContainsRune("-._~", rune(c))
}

// isReserved reports whether a character means something else than its encoding in a URI (RFC
// 3986, § 2.2), or in one of the WHATWG.
func isReserved(c byte) bool { return strings.IndexByte(`:/?#[]@!$&'()*+,;=%\`, c) >= 0 }

// isWildcard reports whether a character means something else than its encoding in a glob.
func isWildcard(c byte) bool { return c == '*' || c == '?' }

// decode removes one percent-encoding from all characters but those to keep; nil keeps none.
// All else stays as it is.
func decode(s string, keep func(byte) bool) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		encoding := s[i:min(i+3, len(s))]
		code, err := strconv.ParseUint(encoding[1:], 16, 8)
		switch {
		case s[i] != '%' || len(encoding) < 3 || err != nil:
			b.WriteByte(s[i])
			continue
		case keep != nil && keep(byte(code)):
			b.WriteString(strings.ToUpper(encoding))
		default:
			b.WriteByte(byte(code))
		}
		i += 2
	}
	return b.String()
}

// split returns the parts of a URI, with the characters that begin them.
func split(uri string) (head, query, fragment string) {
	if i := strings.IndexByte(uri, '#'); i >= 0 {
		uri, fragment = uri[:i], uri[i:]
	}
	if i := strings.IndexByte(uri, '?'); i >= 0 {
		uri, query = uri[:i], uri[i:]
	}
	return uri, query, fragment
}

// parts are the parts of a URI in normal form.
type parts struct {
	scheme    string // with its colon; empty without one
	authority string // with the two slashes before it; empty without one
	path      string
}

// String returns the URI.
func (p parts) String() string { return p.scheme + p.authority + p.path }

// bare returns the URI with an empty authority, as a server has it that looks at the path alone.
func (p parts) bare() string { return p.scheme + "//" + clean("/"+p.path) }

// clean is path.Clean, but keeps an empty path, and a slash at the end.
func clean(given string) string {
	if given == "" {
		return ""
	}
	cleaned := path.Clean(given)
	if strings.HasSuffix(given, "/") && cleaned != "/" {
		cleaned += "/"
	}
	return cleaned
}

// parsed returns the normal forms of a URI: without dot segments and empty segments, and as
// [parse] returns it. There are several if it has a backslash, which not all servers take for a
// slash, or a dot segment that may remove an empty one.
func parsed(uri string) []parts {
	var all []parts
	uri = strings.NewReplacer("\t", "", "\r", "", "\n", "").Replace(uri) // they were encoded
	for _, form := range slices.Compact([]string{strings.ReplaceAll(uri, `\`, "/"), uri}) {
		p := parse(form)
		for _, path := range slices.Compact([]string{clean(p.path), clean(withoutDots(p.path))}) {
			all = append(all, parts{p.scheme, p.authority, path})
		}
	}
	return all
}

// ports are the default ports of the schemes that always have an authority (URL Standard of
// the WHATWG, § 4.2).
var ports = map[string]string{"http:": "80", "https:": "443", "ws:": "80", "wss:": "443", "ftp:": "21"}

// parse returns the parts of a URI: scheme and host in lower case, and without user and default
// port if the scheme has them. All URIs of files have an authority, which is empty for this host.
func parse(uri string) parts {
	var p parts
	p.path = uri
	if i := strings.IndexByte(uri, ':'); i >= 0 {
		p.scheme, p.path = strings.ToLower(uri[:i+1]), uri[i+1:]
	}
	port := ports[p.scheme]
	if port != "" {
		p.path = "//" + strings.TrimLeft(p.path, "/")
	}
	if after, ok := strings.CutPrefix(p.path, "//"); ok {
		host, _, _ := strings.Cut(after, "/")
		p.authority, p.path = "//"+strings.ToLower(host), after[len(host):]
	}
	switch {
	case port != "":
		p.path = cmp.Or(p.path, "/")
		host := p.authority[max(2, strings.LastIndexByte(p.authority, '@')+1):]
		if i := strings.LastIndexByte(host, ':'); i >= 0 && (host[i+1:] == "" || strings.TrimLeft(host[i+1:], "0") == port) {
			host = host[:i]
		}
		p.authority = "//" + strings.TrimSuffix(host, ".")
	case p.scheme == "file:" && (p.authority == "" || p.authority == "//localhost"):
		p.authority, p.path = "//", "/"+p.path
	case p.scheme == "ui:": // of package uiaddress: the server finds its own host first in the path
		host, folder, isFolder := strings.Cut(strings.TrimPrefix(p.path, "/"), "/")
		if p.path = "/" + strings.ToLower(host); isFolder {
			p.path += "/" + folder
		}
	}
	return p
}

// withoutDots removes the dot segments of a path, as RFC 3986, § 5.2.4, does it: a segment may be
// empty.
func withoutDots(given string) string {
	var kept []string
	segments := strings.Split(given, "/")
	for i, segment := range segments {
		isDots := segment == "." || segment == ".."
		if segment == ".." && len(kept) > 1 {
			kept = kept[:len(kept)-1]
		}
		if !isDots {
			kept = append(kept, segment)
		} else if i == len(segments)-1 {
			kept = append(kept, "")
		}
	}
	return strings.Join(kept, "/")
}
