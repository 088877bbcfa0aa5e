// SPDX-License-Identifier: Apache-2.0

package plaintext

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/consort-go/consort/internal/textcut"
)

// HeaderName returns the problem with the name of an HTTP header (RFC 9110, section 5.6.2), or
// returns "", as all these functions do.
func HeaderName(name string) string {
	switch {
	case name == "":
		return "expected the name of an HTTP header, not an empty one"
	case !IsToken(name):
		return "expected the name of an HTTP header"
	}
	return ""
}

// VariableName checks the name of an environment variable.
func VariableName(name string) string {
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return "expected the name of an environment variable"
	}
	return ""
}

// ServerName checks the name of a server.
func ServerName(name string) string {
	if strings.TrimSpace(name) == "" {
		return "expected a name for the server, not an empty one"
	}
	return ""
}

// TrustedName checks the name of a trusted value.
func TrustedName(name string) string {
	if name == "" {
		return "expected a name for the trusted value, not an empty one"
	}
	return ""
}

// ArgumentName checks the name of an argument of a tool.
func ArgumentName(name string) string {
	if name == "" {
		return "expected the name of an argument, not an empty one"
	}
	return ""
}

// ToolName checks the name of a tool.
func ToolName(name string) string {
	if name == "" {
		return "expected the server's own name of a tool, not an empty one"
	}
	return ""
}

// ModelName checks the name of a model.
func ModelName(name string) string {
	if name == "" {
		return "expected the name of a model, not an empty one"
	}
	return ""
}

var legalMetadata = regexp.MustCompile(`^[0-9a-z_.-]+$`)

// MetadataName checks a key of gRPC metadata.
func MetadataName(name string) string {
	if !legalMetadata.MatchString(name) || strings.HasPrefix(name, "grpc-") {
		return "expected the name of gRPC metadata: lower-case letters, digits, -, _ and ., and not grpc- at the beginning"
	}
	return ""
}

// OneOf formats names as alternatives: "a", "b" or "c".
func OneOf(names []string) string {
	var b strings.Builder
	for i, name := range names {
		switch {
		case i > 0 && i == len(names)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(name))
	}
	return b.String()
}

// WithoutCredentials replaces by hidden the parts of a URL that can contain credentials.
func WithoutCredentials(shown, hidden string) string {
	if i := strings.IndexAny(shown, "?#"); i >= 0 {
		shown = shown[:i+1] + hidden
	}
	scheme, rest, _ := strings.Cut(shown, "://")
	authority, path, hasPath := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		shown = scheme + "://" + hidden + authority[i:]
		if hasPath {
			shown += "/" + path
		}
	}
	return shown
}

const maxKeyShown = 80 // bytes of one key in a message

// ShowKey writes one key of a path, in quotes where TOML needs them.
func ShowKey(key string) string {
	key = textcut.Bytes(key, maxKeyShown)
	bare := key != "" && strings.IndexFunc(key, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	}) < 0
	if bare {
		return key
	}
	return strconv.Quote(key)
}

// CutOrigin splits a text FILE:LINE.
func CutOrigin(origin string) (file string, line int, ok bool) {
	i := strings.LastIndexByte(origin, ':')
	if i < 0 {
		return "", 0, false
	}
	line, err := strconv.Atoi(origin[i+1:])
	return origin[:i], line, err == nil
}
