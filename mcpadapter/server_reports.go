// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The older protocols are spoken as well, with what the newest one deprecates.

package mcpadapter

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

// How much of what a tool reports goes out: the first reports at once, and then
// so many a second. Reports of progress in between become one; a line of the
// log too many is dropped.
const (
	reportBurst   = 100
	reportRate    = 20 // a second
	maxReports    = 256
	maxMessage    = 4 << 10 // bytes of the message of one report
	reportPatient = 2 * time.Second
)

// reports takes what a tool reports while it runs to its client, in order, and
// nothing after the result. The tool does not wait for the client.
type reports struct {
	token any // the client's, for progress; nil if it does not want any

	mu      sync.Mutex
	ctx     context.Context // of the request that is being answered
	session *mcp.ServerSession
	queue   []report
	pumping bool
	ended   chan struct{} // closed by end
	done    chan struct{} // closed when the queue is empty after that
	last    float64       // progress that went out
	begun   bool
}

// report is a report of progress, or a line of the log.
type report struct {
	progress *invoker.Progress
	entry    invoker.LogEntry
}

func newReports(ctx context.Context, req *mcp.CallToolRequest) *reports {
	return &reports{
		token: req.Params.GetProgressToken(), ctx: ctx, session: req.Session,
		ended: make(chan struct{}), done: make(chan struct{}),
	}
}

// progress is the listener of the call; nil if the client did not ask for one.
func (r *reports) progress() func(invoker.Progress) {
	if r.token == nil {
		return nil
	}
	return func(p invoker.Progress) {
		p.Message = messageOf(p)
		p.Partial = nil
		r.add(report{progress: &p})
	}
}

// messageOf is what a report says; a piece of the result has no other place
// (MCP 2025-11-25, basic/utilities/progress).
func messageOf(p invoker.Progress) string {
	parts := []string{p.Message}
	if text := canister.TextOf(p.Partial); text != "" {
		parts = append(parts, text)
	}
	return textcut.Bytes(strings.TrimPrefix(strings.Join(parts, "\n"), "\n"), maxMessage)
}

func (r *reports) log(entry invoker.LogEntry) { r.add(report{entry: entry}) }

func (r *reports) add(next report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.ended:
		return
	default:
	}
	if n := len(r.queue); next.progress != nil && n >= reportBurst && r.queue[n-1].progress != nil {
		r.queue[n-1].progress = joinedProgress(r.queue[n-1].progress, next.progress)
		return
	} else if n >= maxReports {
		return
	}
	r.queue = append(r.queue, next)
	if !r.pumping {
		r.pumping = true
		go r.pump()
	}
}

// joinedProgress is one report in place of two; pieces of the result stay.
func joinedProgress(before, after *invoker.Progress) *invoker.Progress {
	both := *after
	if before.Message != "" && before.Message != after.Message {
		both.Message = textcut.Bytes(before.Message+"\n"+after.Message, maxMessage)
	}
	return &both
}

// pump sends what is in the queue.
func (r *reports) pump() {
	limit := rate.NewLimiter(reportRate, reportBurst)
	for {
		r.mu.Lock()
		if len(r.queue) == 0 {
			select {
			case <-r.ended:
				close(r.done)
				r.mu.Unlock()
				return
			default:
			}
			r.pumping = false
			r.mu.Unlock()
			return
		}
		next := r.queue[0]
		r.queue = r.queue[1:]
		ctx, session := r.ctx, r.session
		r.mu.Unlock()
		if wait := limit.Reserve().Delay(); wait > 0 {
			select {
			case <-time.After(wait):
			case <-r.ended:
			}
		}
		r.send(ctx, session, next)
	}
}

func (r *reports) send(ctx context.Context, session *mcp.ServerSession, next report) {
	if next.progress == nil {
		data := next.entry.Data
		if !json.Valid(data) {
			data = json.RawMessage("null")
		}
		_ = session.Log(ctx, &mcp.LoggingMessageParams{Level: mcp.LoggingLevel(next.entry.Level), Logger: next.entry.Logger, Data: data})
		return
	}
	p := next.progress
	done := p.Done
	if r.begun && done <= r.last { // it must grow, also where the tool only talks
		done = r.last + 0.001
	}
	r.begun, r.last = true, done
	_ = session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: r.token, Progress: done, Total: p.Total, Message: p.Message,
	})
}

// end sends what is left, and waits until it is sent; not for ever, if the
// client does not read.
func (r *reports) end() {
	r.mu.Lock()
	close(r.ended)
	pumping, ctx := r.pumping, r.ctx
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

// goOn sends what follows as part of the answer to another request.
func (r *reports) goOn(ctx context.Context, session *mcp.ServerSession) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx, r.session = ctx, session
}
