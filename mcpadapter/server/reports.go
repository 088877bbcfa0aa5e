// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Older protocols are supported too, with features that the newest one deprecates.

package server

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"
)

// Limits on forwarding a tool's reports: the first reports go out immediately, the rest
// at a limited rate. Progress reports that exceed the rate are merged. Log lines are dropped
// while reportBurst reports wait.
const (
	reportBurst   = 100
	reportRate    = 20      // per second
	maxMessage    = 4 << 10 // bytes of the message of one report
	reportPatient = 2 * time.Second
)

// reports forwards a running tool's reports to its client, in order, and never after
// the result. The tool does not wait for the client.
type reports struct {
	limit   *rate.Limiter // of the notifications that are sent
	sending sync.Mutex    // held while a notification is sent; taken before mu

	mu      sync.Mutex
	paused  bool            // no request is being answered
	ctx     context.Context // of the request that is being answered, or of the last one
	session *mcp.ServerSession
	token   any // the progress token of that request; nil if it wants no progress
	queue   []report
	pumping bool
	ended   chan struct{} // closed by end
	done    chan struct{} // closed when the queue is empty after that
	last    float64       // progress value last sent
	begun   bool
}

// report is a progress report or a log line.
type report struct {
	progress *invoker.Progress
	entry    invoker.LogEntry
}

func newReports(ctx context.Context, req *mcp.CallToolRequest) *reports {
	return &reports{
		limit: rate.NewLimiter(reportRate, reportBurst), ctx: ctx, session: req.Session, token: req.Params.GetProgressToken(),
		ended: make(chan struct{}), done: make(chan struct{}),
	}
}

// listener returns the listener of the call; nil if its request has no progress token.
func (r *reports) listener() func(invoker.Progress) {
	if r.token == nil {
		return nil
	}
	return r.progress
}

// progress forwards a progress report if the request that is being answered has a token.
func (r *reports) progress(p invoker.Progress) {
	p.Message = messageOf(p)
	p.Partial = nil
	r.add(report{progress: &p})
}

// messageOf returns the message of a report, including partial results, because the
// protocol has no other field for them (MCP 2025-11-25, basic/utilities/progress).
func messageOf(p invoker.Progress) string {
	parts := []string{p.Message}
	if text := canister.TextOf(p.Partial); text != "" {
		parts = append(parts, text)
	}
	return textcut.Bytes(strings.TrimPrefix(strings.Join(parts, "\n"), "\n"), maxMessage)
}

// log forwards a log line if the client asked for its level.
func (r *reports) log(entry invoker.LogEntry) {
	r.mu.Lock()
	ctx, session := r.ctx, r.session
	r.mu.Unlock()
	isWanted := false
	_ = session.Log(context.WithValue(ctx, trialKey{}, &isWanted), &mcp.LoggingMessageParams{Level: mcp.LoggingLevel(entry.Level)})
	if isWanted {
		r.add(report{entry: entry})
	}
}

type trialKey struct{}

// tryLog stops a notification that is sent to find out whether the client asked for it. The SDK,
// which knows the level of the session, passes it on only if the client did.
func tryLog(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if isWanted, ok := ctx.Value(trialKey{}).(*bool); ok {
			*isWanted = true
			return nil, nil
		}
		return next(ctx, method, req)
	}
}

func (r *reports) add(next report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.ended:
		return
	default:
	}
	if next.progress != nil && r.token == nil && !r.paused {
		return
	}
	if next.progress == nil && r.paused && len(next.entry.Data) > maxMessage { // it may wait for long
		return
	}
	if n := len(r.queue); n >= reportBurst {
		if next.progress == nil {
			return
		}
		if last := &r.queue[n-1]; last.progress != nil {
			last.progress = joinedProgress(last.progress, next.progress)
			return
		}
	}
	r.queue = append(r.queue, next)
	r.start()
}

// start starts the pump if it has work. The caller must hold r.mu, and r.ended must be open.
func (r *reports) start() {
	if !r.pumping && !r.paused && len(r.queue) > 0 {
		r.pumping = true
		go r.pump()
	}
}

// joinedProgress merges two reports into one and keeps the partial results of both.
func joinedProgress(before, after *invoker.Progress) *invoker.Progress {
	both := *after
	if before.Message != "" && before.Message != after.Message {
		both.Message = textcut.Bytes(before.Message+"\n"+after.Message, maxMessage)
	}
	return &both
}

// pump sends the queue, until it is empty or no request is being answered.
func (r *reports) pump() {
	for r.goesOn() {
		wait := r.limit.Reserve().Delay()
		if wait > 0 {
			select {
			case <-time.After(wait):
			case <-r.ended:
			}
		}
		r.send(wait > 0)
	}
}

// goesOn reports whether the pump has work. If not, the pump has ended.
func (r *reports) goesOn() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pumping = len(r.queue) > 0 && !r.paused; r.pumping {
		return true
	}
	select {
	case <-r.ended:
		close(r.done)
	default:
	}
	return false
}

// next removes a report from the queue. If it had to wait, next also removes the following
// progress reports and merges them. The caller must hold r.mu.
func (r *reports) next(isLate bool) report {
	next := r.queue[0]
	r.queue = r.queue[1:]
	for isLate && next.progress != nil && len(r.queue) > 0 {
		after := r.queue[0].progress
		if after == nil || len(next.progress.Message)+len(after.Message) >= maxMessage {
			break
		}
		next.progress = joinedProgress(next.progress, after)
		r.queue = r.queue[1:]
	}
	return next
}

// send sends the next report as part of the response to the request that is being answered.
func (r *reports) send(isLate bool) {
	r.sending.Lock()
	defer r.sending.Unlock()
	r.mu.Lock()
	if r.paused || len(r.queue) == 0 {
		r.mu.Unlock()
		return
	}
	next, ctx, session, token := r.next(isLate), r.ctx, r.session, r.token
	r.mu.Unlock()
	if next.progress == nil {
		data := next.entry.Data
		if !json.Valid(data) {
			data = json.RawMessage("null")
		}
		_ = session.Log(ctx, &mcp.LoggingMessageParams{Level: mcp.LoggingLevel(next.entry.Level), Logger: next.entry.Logger, Data: data})
		return
	}
	if token == nil {
		return
	}
	p := next.progress
	done := p.Done
	if r.begun && done <= r.last { // it must grow, even if the tool only sends messages
		done = r.last + 0.001
	}
	r.begun, r.last = true, done
	_ = session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: token, Progress: done, Total: p.Total, Message: p.Message,
	})
}

// end sends the remaining reports and waits until they are sent. The wait is bounded,
// in case the client does not read.
func (r *reports) end() {
	r.mu.Lock()
	close(r.ended)
	pumping, ctx := r.pumping, r.ctx
	if r.paused {
		r.queue = nil // no request can have them before the result
	}
	r.mu.Unlock()
	if !pumping {
		return
	}
	patience := time.NewTimer(reportPatient)
	defer patience.Stop()
	select {
	case <-r.done:
	case <-ctx.Done():
	case <-patience.C:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = nil // nothing follows the result
}

// pause keeps further reports until goOn: the request that is being answered ends before the call.
func (r *reports) pause() {
	r.sending.Lock() // nothing follows the response
	defer r.sending.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paused = true
}

// goOn sends further reports as part of the response to another request, which has a progress
// token of its own.
func (r *reports) goOn(ctx context.Context, session *mcp.ServerSession, token any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paused, r.ctx, r.session, r.token = false, ctx, session, token
	select {
	case <-r.ended:
	default:
		r.start()
	}
}
