// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"sync"

	"github.com/consort-go/consort/internal/accesslog"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/consort-go/consort/mcpadapter/server/internal/envelope"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
)

// methodOf returns the method of a request over HTTP for the access log. Without a message
// it is the method of HTTP.
func methodOf(r *http.Request, e envelope.Envelope) string {
	switch {
	case r.Method != http.MethodPost:
		return r.Method
	case e.Batch:
		return "batch"
	}
	return cmp.Or(textcut.Bytes(e.Method, wire.MaxQuoted), "response")
}

// codeOf returns the code of a request's failure, of the tool or of JSON-RPC; empty if it
// succeeded.
func codeOf(result mcp.Result, err error) string {
	if r, ok := result.(*rawResult); ok && r != nil && r.failure != nil {
		return string(r.failure.Code)
	}
	var refused *jsonrpc.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &refused):
		return strconv.FormatInt(refused.Code, 10)
	}
	return string(invoker.AsFailure(err).Code)
}

// countedResponse counts the bytes of a response.
type countedResponse struct {
	http.ResponseWriter
	status int // 0 until the header is written
	bytes  int64
}

// WriteHeader implements [http.ResponseWriter].
func (c *countedResponse) WriteHeader(status int) {
	if c.status == 0 && status >= http.StatusOK {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *countedResponse) Write(p []byte) (int, error) {
	c.status = cmp.Or(c.status, http.StatusOK)
	n, err := c.ResponseWriter.Write(p)
	c.bytes += int64(n)
	return n, err
}

// Unwrap gives http.ResponseController access to the methods that this writer lacks.
func (c *countedResponse) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// statusOf returns the field with the status of the response, or an empty field if the
// client left before the response began.
func (c *countedResponse) statusOf(r *http.Request) zap.Field {
	if c.status == 0 && r.Context().Err() != nil {
		return zap.Skip()
	}
	return zap.Int("status", cmp.Or(c.status, http.StatusOK))
}

// lines are the access log's lines of the requests of a stream, by their IDs. A nil *lines
// logs nothing.
type lines struct {
	logs *accesslog.Logs
	peer telemetry.Peer

	mu   sync.Mutex
	open map[string]*accesslog.Line
}

// begin begins the line of a request.
func (l *lines) begin(request *jsonrpc.Request) {
	if l == nil {
		return
	}
	line := accesslog.Begin(textcut.Bytes(request.Method, wire.MaxQuoted))
	line.Identified(l.peer.Client)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = make(map[string]*accesslog.Line)
	}
	l.open[wire.IDText(request.ID)] = line
}

// lineOf returns the access log's line of a request, with the name of the tool that it
// calls; nil if it has none.
func (c *caller) lineOf(req mcp.Request) *accesslog.Line {
	line := accesslog.From(c.ctx)
	if c.gone != nil { // the line in ctx belongs to the whole stream
		line = c.lines.of(req)
	}
	if call, ok := req.(*mcp.CallToolRequest); ok {
		line.Tool(textcut.Bytes(call.Params.Name, wire.MaxQuoted))
	}
	return line
}

// of returns the line of a request; nil if it has none.
func (l *lines) of(req mcp.Request) *accesslog.Line {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[numberOf(&caller{}, req.GetExtra())]
}

// end writes the line of a request whose response has size bytes.
func (l *lines) end(id jsonrpc.ID, size int) {
	if l == nil {
		return
	}
	l.mu.Lock()
	line := l.open[wire.IDText(id)]
	delete(l.open, wire.IDText(id))
	l.mu.Unlock()
	l.write(line, int64(size))
}

// abandon writes the lines of the requests that get no response.
func (l *lines) abandon() {
	l.mu.Lock()
	left := l.open
	l.open = nil
	l.mu.Unlock()
	for _, line := range left {
		line.Failed(string(invoker.Canceled))
		l.write(line, 0)
	}
}

func (l *lines) write(line *accesslog.Line, size int64) {
	transport := "stdio"
	if l.peer.Network != "" {
		transport = l.peer.Network
	}
	line.End(l.logs, transport, l.peer.Address, size)
}
