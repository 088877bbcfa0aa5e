// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"net/url"
	"slices"
	"strings"
)

// Names reports whether a value with this name is a secret in any context.
func Names(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"authorization", "token", "key", "secret", "password", "passwd", "credential", "cookie", "signature"},
		func(word string) bool { return strings.Contains(name, word) })
}

// URI replaces by [Mark] the user information of a URI (RFC 3986, section 3.2.1)
// and the values of query parameters whose names indicate a secret. The rest is
// unchanged, even if the text is not a URI.
func URI(uri string) string {
	head, query, hasQuery := strings.Cut(uri, "?")
	if scheme, rest, found := strings.Cut(head, "://"); found {
		authority, _, _ := strings.Cut(rest, "/")
		if user := strings.LastIndexByte(authority, '@'); user >= 0 {
			head = scheme + "://" + Mark + rest[user:]
		}
	}
	if !hasQuery {
		return head
	}
	query, fragment, hasFragment := strings.Cut(query, "#")
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		name, _, found := strings.Cut(pair, "=")
		plain, err := url.QueryUnescape(name)
		if found && (err != nil || Names(plain) || plain == "sig") {
			pairs[i] = name + "=" + Mark
		}
	}
	uri = head + "?" + strings.Join(pairs, "&")
	if hasFragment {
		uri += "#" + fragment
	}
	return uri
}
