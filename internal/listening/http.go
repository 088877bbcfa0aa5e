// SPDX-License-Identifier: Apache-2.0

package listening

import (
	"cmp"
	"context"
	"crypto/tls"
	"log"
	"net"
	"net/http"
	"time"
)

// Finished is a handler whose requests may do something that is lost if they are cut off: a server
// that is closed lets those finish that are not GET.
type Finished struct{ http.Handler }

// Time limits for the clients of a [Server].
const (
	HeaderTimeout  = 10 * time.Second // to send the header of a request
	RequestTimeout = 30 * time.Second // to send a whole request
	idleTimeout    = 2 * time.Minute  // between two requests
	writeTimeout   = 30 * time.Second // to read a response, unless the handler allows more
	leaveTimeout   = 2 * time.Second  // to read the last response during shutdown
	refusalTimeout = 2 * time.Second  // to send the rest of a refused request
)

// Options configure a [Server]. Zero values mean the defaults.
type Options struct {
	Limits
	TLS          *tls.Config   // of HTTP/1.1; nil disables TLS
	HeaderBytes  int           // of a request; default 64 KiB
	WriteTimeout time.Duration // default 30 s; a handler may set another deadline
	ErrorLog     *log.Logger   // nil uses the default logger of package log
}

// Server serves HTTP/1.1 with limits. Its handler may get requests whose bodies never
// arrive: if it needs longer than RequestTimeout or WriteTimeout, it must set its own
// deadlines with [http.ResponseController].
type Server struct {
	http     *http.Server
	clients  *Listener
	listener net.Listener // clients, or TLS over it
}

// NewServer returns a server that accepts the connections of listener.
func NewServer(listener net.Listener, handler http.Handler, o Options) *Server {
	clients := Limit(listener, o.Limits)
	return &Server{
		clients:  clients,
		listener: overTLS(clients, o.TLS),
		http: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: HeaderTimeout,
			ReadTimeout:       RequestTimeout,
			WriteTimeout:      cmp.Or(o.WriteTimeout, writeTimeout),
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    cmp.Or(o.HeaderBytes, 64<<10),
			ErrorLog:          o.ErrorLog,
			ConnContext: func(ctx context.Context, c net.Conn) context.Context {
				return context.WithValue(ctx, connectionKey{}, limited(c))
			},
			ConnState: func(c net.Conn, state http.ConnState) {
				if c := limited(c); c != nil && state == http.StateIdle {
					c.idle()
				}
			},
		},
	}
}

// Serve serves until Shutdown is called, and then returns [http.ErrServerClosed], or
// until the listener fails.
func (s *Server) Serve() error { return s.http.Serve(s.listener) }

// overTLS returns a listener for TLS, if there is a configuration. TLS is outermost, because
// net/http looks for connections of that type to learn of certificates.
func overTLS(inner net.Listener, config *tls.Config) net.Listener {
	if config == nil {
		return inner
	}
	config = config.Clone()
	config.NextProtos = []string{"http/1.1"}
	return tls.NewListener(inner, config)
}

// limited returns the connection of a [Listener] below c; nil if there is none.
func limited(c net.Conn) *connection {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	of, _ := c.(*connection)
	return of
}

// Shutdown ends the server. Clients with requests being served get 2 s to read the rest
// of their responses; Shutdown does not wait for the others.
func (s *Server) Shutdown(ctx context.Context) {
	s.clients.CloseWaiting()
	bound, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	if s.http.Shutdown(bound) != nil {
		_ = s.http.Close()
	}
}

// Refuse answers a request that may not have arrived completely. It does not wait for
// the rest: the connection closes after the response (RFC 9112, section 9.6). In HTTP/2
// only the stream ends.
func Refuse(w http.ResponseWriter, r *http.Request, status int, text string) {
	Abandon(w, r)
	http.Error(w, text, status)
}

// Abandon prepares a response as Refuse does, but leaves writing it to the caller.
func Abandon(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor < 2 {
		w.Header().Set("Connection", "close") // net/http then stops reading before it responds
	}
	if r.ContentLength != 0 {
		// After the response, net/http still reads part of the unread body.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(refusalTimeout))
	}
}

// WithoutBody refuses requests with a body (400), for a handler that does not read
// bodies.
func WithoutBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			Refuse(w, r, http.StatusBadRequest, "a request must not have a body here")
			return
		}
		next.ServeHTTP(w, r)
	})
}
