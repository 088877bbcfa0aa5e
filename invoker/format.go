// SPDX-License-Identifier: Apache-2.0

package invoker

// formats are the formats that schemas of Go types assert, each with an example
// for violations.
var formats = map[string]string{
	"date":          "2026-01-31",
	"date-time":     "2026-01-31T15:04:05Z",
	"time":          "15:04:05Z",
	"duration":      "PT1H30M",
	"email":         "ada@example.org",
	"hostname":      "example.org",
	"ipv4":          "192.0.2.1",
	"ipv6":          "2001:db8::1",
	"uri":           "https://example.org/path",
	"uri-reference": "/path",
	"uri-template":  "https://example.org/{id}",
	"uuid":          "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
	"json-pointer":  "/a/0",
	"semver":        "1.2.3",
}

// formatFault describes a value that is not in a format.
func formatFault(it, format string) string {
	text := it + " is not in the format " + format
	if example := formats[format]; example != "" {
		text += ", which looks like " + example
	}
	return text
}
