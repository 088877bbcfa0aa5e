// SPDX-License-Identifier: Apache-2.0

package gateway

import "net/http"

// newWeb returns the routes next to MCP at the address of serve.http. Paths without a route
// are not found.
func newWeb() *http.ServeMux {
	web := http.NewServeMux()
	web.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "not found; MCP is served at /mcp", http.StatusNotFound)
	})
	return web
}
