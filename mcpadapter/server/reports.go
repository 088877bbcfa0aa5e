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
// at a limited rate. Progress reports that exceed the rate are merged into one; log
// lines that exceed it are dropped.
const (
	reportBurst   = 100
	reportRate    = 20 // per second
	maxReports    = 256
	maxMessage    = 4 << 10 // bytes of the message of one report
	reportPatient = 2 * time.Second
)

// reports forwards a running tool's reports to its client, in order, and never after
// the result. The tool does not wait for the client.
type reports struct {
	token any // the client's progress token; nil if it wants no progress

	mu      sync.Mutex
	ctx     context.Context // of the request that is being answered
	session *mcp.ServerSession
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
		token: req.Params.GetProgressToken(), ctx: ctx, session: req.Session,
		ended: make(chan struct{}), done: make(chan struct{}),
	}
}

// progress returns the listener of the call; nil if the client did not ask for
// progress.
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

// messageOf returns the message of a report, including partial results, because the
// protocol has no other field for them (MCP 2025-11-25, basic/utilities/progress).
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

// joinedProgress merges two reports into one and keeps the partial results of both.
func joinedProgress(before, after *invoker.Progress) *invoker.Progress {
	both := *after
	if before.Message != "" && before.Message != after.Message {
		both.Message = textcut.Bytes(before.Message+"\n"+after.Message, maxMessage)
	}
	return &both
}

// pump sends the queue.
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
	if r.begun && done <= r.last { // it must grow, even if the tool only sends messages
		done = r.last + 0.001
	}
	r.begun, r.last = true, done
	_ = session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: r.token, Progress: done, Total: p.Total, Message: p.Message,
	})
}

// end sends the remaining reports and waits until they are sent. The wait is bounded,
// in case the client does not read.
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

// goOn sends further reports as part of the response to another request.
func (r *reports) goOn(ctx context.Context, session *mcp.ServerSession) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx, r.session = ctx, session
}
