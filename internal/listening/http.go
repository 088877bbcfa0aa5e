// SPDX-License-Identifier: Apache-2.0

package listening

import (
	"cmp"
	"context"
	"log"
	"net"
	"net/http"
	"time"
)

// The times that a client of a [Server] has.
const (
	HeaderTimeout  = 10 * time.Second // to send the header of a request
	RequestTimeout = 30 * time.Second // to send a whole request
	idleTimeout    = 2 * time.Minute  // between two requests
	writeTimeout   = 30 * time.Second // to read an answer, unless the handler gives more
	leaveTimeout   = 2 * time.Second  // to read the last of its answers at the end
	refusalTimeout = 2 * time.Second  // to send the rest of a request that is refused
)

// Options are the choices of a [Server]. Zero values mean the defaults.
type Options struct {
	Limits
	HeaderBytes  int           // of a request; default 64 KiB
	WriteTimeout time.Duration // default 30 s; a handler may set another deadline
	ErrorLog     *log.Logger   // nil is that of package log
}

// Server serves HTTP/1.1 with bounds. Its handler gets requests whose bodies
// may never arrive: it must set deadlines of its own where it needs longer than
// RequestTimeout or WriteTimeout, by [http.ResponseController].
type Server struct {
	http    *http.Server
	clients *Listener
}

// NewServer returns a server for the clients of a listener.
func NewServer(listener net.Listener, handler http.Handler, o Options) *Server {
	return &Server{
		clients: Limit(listener, o.Limits),
		http: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: HeaderTimeout,
			ReadTimeout:       RequestTimeout,
			WriteTimeout:      cmp.Or(o.WriteTimeout, writeTimeout),
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    cmp.Or(o.HeaderBytes, 64<<10),
			ErrorLog:          o.ErrorLog,
			ConnContext: func(ctx context.Context, c net.Conn) context.Context {
				return context.WithValue(ctx, connectionKey{}, c)
			},
			ConnState: func(c net.Conn, state http.ConnState) {
				if c, ok := c.(*connection); ok && state == http.StateIdle {
					c.idle()
				}
			},
		},
	}
}

// Serve serves until Shutdown, when it returns [http.ErrServerClosed], or until
// the listener fails.
func (s *Server) Serve() error { return s.http.Serve(s.clients) }

// Shutdown ends the server. Clients whose requests are served get 2 s to read
// the end of their answers; the others are not waited for.
func (s *Server) Shutdown(ctx context.Context) {
	s.clients.CloseWaiting()
	bound, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	if s.http.Shutdown(bound) != nil {
		_ = s.http.Close()
	}
}

// Refuse answers a request that may not have arrived as a whole. It does not
// wait for the rest: the connection ends with the answer (RFC 9112, section 9.6).
// In HTTP/2 the stream ends alone.
func Refuse(w http.ResponseWriter, r *http.Request, status int, text string) {
	Abandon(w, r)
	http.Error(w, text, status)
}

// Abandon is Refuse for an answer that the caller writes afterwards.
func Abandon(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor < 2 {
		w.Header().Set("Connection", "close") // net/http reads no more before it answers
	}
	if r.ContentLength != 0 {
		// After the answer net/http still reads a part of what was not read.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(refusalTimeout))
	}
}

// WithoutBody refuses requests with a body (400), for a handler that reads none.
func WithoutBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			Refuse(w, r, http.StatusBadRequest, "a request has no body here")
			return
		}
		next.ServeHTTP(w, r)
	})
}
