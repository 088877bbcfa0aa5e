// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
)

// Credential returns the secrets in a key or in the value of a header such as
// Authorization, where a scheme may precede the token (RFC 9110, section 11.4).
func Credential(text string) []string {
	scheme, token, _ := strings.Cut(text, " ")
	found := []string{text, token}
	if strings.EqualFold(scheme, "Basic") { // RFC 7617, section 2
		pair, _ := base64.StdEncoding.DecodeString(token)
		_, password, _ := strings.Cut(string(pair), ":")
		found = append(found, password)
	}
	return found
}

// URL returns the credentials in a URL: its password, or its user if it has no password,
// and the values in its query whose names suggest a secret.
func URL(address string) []string {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	secret, hasPassword := u.User.Password()
	if !hasPassword {
		secret = u.User.Username() // without a password, the user is a token
	}
	found := []string{secret}
	for name, values := range u.Query() {
		if Names(name) {
			found = append(found, values...)
		}
	}
	return found
}

// DSN returns the address of a database and the passwords in it. It is a URL, or pairs as
// libpq accepts them, quoted or not.
func DSN(dsn string) []string {
	found := append([]string{dsn}, URL(dsn)...)
	for _, pair := range password.FindAllStringSubmatch(dsn, -1) {
		found = append(found, pair[1], unquote.Replace(pair[1]), pair[2])
	}
	return found
}

var (
	password = regexp.MustCompile(`(?i)password\s*=\s*(?:'((?:[^'\\]|\\.)*)'|([^\s'&]+))`)
	unquote  = strings.NewReplacer(`\\`, `\`, `\'`, `'`)
)

// Members returns the credentials in JSON values such as free-form parameters: each string
// below a member whose name suggests a secret. A value without a JSON form has none.
func Members(values ...any) []string {
	var found []string
	for _, value := range values {
		var decoded any
		if form, err := json.Marshal(value); err == nil && json.Unmarshal(form, &decoded) == nil {
			found = appendMembers(found, "", decoded)
		}
	}
	return found
}

func appendMembers(found []string, name string, value any) []string {
	switch value := value.(type) {
	case string:
		if Names(name) {
			found = append(found, Credential(value)...)
		}
	case []any:
		for _, element := range value {
			found = appendMembers(found, name, element)
		}
	case map[string]any:
		for name, inner := range value {
			found = appendMembers(found, name, inner)
		}
	}
	return found
}

// IsPublicVariable reports whether an environment variable is public: the servers that are
// started get these variables anyway.
func IsPublicVariable(name string) bool {
	switch name {
	case "HOME", "LOGNAME", "USER", "PATH", "PWD", "SHELL", "TERM", "TZ", "LANG", "LANGUAGE", "TMPDIR", "TEMP", "TMP",
		"USERNAME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMFILES", "PROGRAMDATA", "SYSTEMROOT":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}
