// SPDX-License-Identifier: Apache-2.0

package demoserver

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ServeStdio serves over in and out until in or ctx ends. It closes both.
func ServeStdio(ctx context.Context, server *mcp.Server, in io.ReadCloser, out io.WriteCloser) error {
	err := server.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}

// ServeHTTP serves streamable HTTP on a free port of the loopback interface,
// to clients that bring the bearer token, until in or ctx ends. It writes the
// URL to out, as one line.
func ServeHTTP(ctx context.Context, server *mcp.Server, token string, in io.Reader, out io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("demoserver: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", onlyWith(token, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)))
	service := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with in, or with the process
		io.Copy(io.Discard, in)
		cancel()
	}()
	stopped := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(stopped)
		service.Close()
	})
	if _, err := fmt.Fprintf(out, "http://%s/mcp\n", listener.Addr()); err != nil {
		cancel()
	}
	err = service.Serve(listener)
	cancel()
	<-stopped
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("demoserver: %w", err)
}

// onlyWith turns away requests without the token: other programs on this
// machine can reach the port too.
func onlyWith(token string, next http.Handler) http.Handler {
	want := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			http.Error(w, "the bearer token is missing or wrong", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
