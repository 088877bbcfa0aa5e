// SPDX-License-Identifier: Apache-2.0

// Package accesslog writes one log line for each request of a server's clients. A line has
// neither credentials nor arguments.
package accesslog

import (
	"context"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/logevent"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Line is what the log says about one request. The nil Line belongs to a server without an
// access log; its methods do nothing. All methods may be called concurrently.
type Line struct {
	began time.Time

	mu                         sync.Mutex
	ctx                        context.Context // with the span
	client, method, tool, code string
	isIdentified               bool
}

// Begin returns the line of a request that has just arrived.
func Begin(method string) *Line {
	return &Line{began: time.Now(), method: method, ctx: context.Background()}
}

type lineKey struct{}

// With returns a context that carries the line of its request.
func With(ctx context.Context, l *Line) context.Context { return context.WithValue(ctx, lineKey{}, l) }

// From returns the line of the request that ctx belongs to; nil if it has none.
func From(ctx context.Context) *Line {
	l, _ := ctx.Value(lineKey{}).(*Line)
	return l
}

// Identified records that the client may send requests, and its name, which may be empty.
func (l *Line) Identified(name string) {
	l.update(func() { l.isIdentified, l.client = true, name })
}

// Method records the method of the request, if it becomes known only after the request
// arrived.
func (l *Line) Method(name string) { l.update(func() { l.method = name }) }

// Tool records the name of the called tool, as the client wrote it.
func (l *Line) Tool(name string) { l.update(func() { l.tool = name }) }

// Failed records the code with which the request failed; empty if it succeeded.
func (l *Line) Failed(code string) { l.update(func() { l.code = code }) }

// Traced records the span of the request.
func (l *Line) Traced(ctx context.Context) { l.update(func() { l.ctx = ctx }) }

func (l *Line) update(set func()) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	set()
}

// Logs receive the lines of a server.
type Logs struct{ requests, refusals *zap.Logger }

// New returns the logs of a server, or nil if it has no access log. The lines of clients that are not identified go to refusals, which should be
// sampled: they can cause any number of lines.
func New(on bool, requests, refusals *zap.Logger) *Logs {
	if !on {
		return nil
	}
	return &Logs{requests: requests, refusals: refusals}
}

// End writes the line. transport is "http", "grpc" or "stdio"; from is the client's address
// without its port, and may be empty; bytes is the size of the response.
func (l *Line) End(logs *Logs, transport, from string, bytes int64, status ...zap.Field) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	log := logs.refusals
	if l.isIdentified {
		log = logs.requests
	}
	if !log.Core().Enabled(zapcore.InfoLevel) { // a reload may change it
		return
	}
	fields := status
	for _, f := range []struct{ key, value string }{{"tool", l.tool}, {"client_name", l.client}, {"from", from}, {"code", l.code}} {
		if f.value != "" {
			fields = append(fields, zap.String(f.key, f.value))
		}
	}
	logevent.Log(l.ctx, log, zapcore.InfoLevel, logevent.RequestEndedMessage, logevent.ServeRequestEnded, append(fields,
		zap.String("transport", transport), zap.String("method", l.method), zap.Duration("took", time.Since(l.began)), zap.Int64("bytes", bytes))...)
}
