// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net"
	"net/http"

	"github.com/consort-go/consort/config/serve"
	"github.com/consort-go/consort/internal/loginpages"
	mcpserver "github.com/consort-go/consort/mcpadapter/server"
)

// web has the routes next to MCP at the address of serve.http. The response for any other path
// lists the routes.
type web struct {
	mux    *http.ServeMux
	served string
}

func newWeb() *web {
	w := &web{http.NewServeMux(), "not found; MCP is served at /mcp"}
	w.mux.HandleFunc("/", func(response http.ResponseWriter, r *http.Request) {
		http.Error(response, w.served, http.StatusNotFound)
	})
	return w
}

// offers adds a route to that list. It must be called before the server starts.
func (w *web) offers(what string) { w.served += ", " + what }

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
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsLoopback() { // the public name of other addresses is not known here
		address = s.originOf(at)
	}
	pages := s.Assembly.LoginPages(address, srv.Identify)
	s.logins, _ = pages.(*loginpages.Pages)
	s.web.mux.Handle(loginpages.Path, pages)
}
