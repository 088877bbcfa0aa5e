// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net"
	"net/http"

	"github.com/consort-go/consort/config/serve"
	"github.com/consort-go/consort/internal/loginpages"
	mcpserver "github.com/consort-go/consort/mcpadapter/server"
)

// newWeb returns the routes next to MCP at the address of serve.http. Paths without a route
// are not found.
func newWeb() *http.ServeMux {
	web := http.NewServeMux()
	web.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "not found; MCP is served at /mcp", http.StatusNotFound)
	})
	return web
}

// originOf returns the origin of the pages at the address of serve.http.
func (s *server) originOf(at net.Addr) string {
	if s.settings.HTTPTLS != (serve.TLS{}) {
		return "https://" + at.String()
	}
	return "http://" + at.String()
}

// offerLogins serves the pages at which clients log in at servers for themselves.
func (s *server) offerLogins(at net.Addr, srv *mcpserver.Server) {
	address := ""
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsLoopback() { // others cannot be named from here
		address = s.originOf(at)
	}
	pages := s.Assembly.LoginPages(address, srv.Identify)
	s.logins, _ = pages.(*loginpages.Pages)
	s.web.Handle(loginpages.Path, pages)
}
