// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"fmt"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/values"
)

// The value of a program that makes its configuration itself.
func Example() {
	server := &config.Server{
		Transport: config.HTTP,
		URL:       values.Plain("https://example.com/mcp"),
		Headers:   map[string]values.Value{"Authorization": values.Hidden("Bearer xyzzy")},
	}
	fmt.Println(server.URL, server.Headers["Authorization"])
	fmt.Println(server.Headers["Authorization"].Reveal())
	// Output:
	// https://example.com/mcp [hidden]
	// Bearer xyzzy
}

// A value is shown as it stands in the file.
func ExampleValue() {
	settings, err := config.Parse("consort.toml", []byte(`
[mcp.database]
url = "https://${REGION}.example.com/mcp"
headers = {Authorization = "Bearer ${TOKEN}"}
`), &config.Options{Lookup: func(name string) (string, bool) { return "xyzzy", true }})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := settings.MCP["database"]
	fmt.Println(server.URL, server.Headers)
	fmt.Println(server.URL.Reveal())
	// Output:
	// https://${REGION}.example.com/mcp map[Authorization:[hidden]]
	// https://xyzzy.example.com/mcp
}
