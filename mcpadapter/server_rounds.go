// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// rounds is a call that may ask its client something under 2026-07-28, where a
// server sends no requests (SEP-2322): the answer to the call is then a list of
// questions, and the client repeats the call with its answers. Meanwhile the
// tool goes on running here, and waits.
type rounds struct {
	c      *served
	owner  string // the identity of the client
	client string
	cancel context.CancelCauseFunc
	wake   chan struct{} // a question is new; holds one
	ended  chan struct{} // result and err are there
	result mcp.Result
	err    error

	mu        sync.Mutex
	questions map[string]*question // without an answer
	serial    int
}

type question struct {
	request mcp.InputRequest
	answer  chan mcp.InputResponse // holds one
}

// inRounds runs the call and answers its first round. The call has a life of
// its own, which ends with that of a round that is broken off.
func (c *served) inRounds(req *mcp.CallToolRequest, from *caller, caps *mcp.ClientCapabilities) (mcp.Result, error) {
	life, cancel := context.WithCancelCause(context.WithoutCancel(c.ctx))
	stop := context.AfterFunc(c.server.life, func() { cancel(errServerClosed) })
	r := &rounds{
		c: c, owner: from.identity, client: from.client, cancel: cancel, wake: make(chan struct{}, 1), ended: make(chan struct{}),
		questions: make(map[string]*question),
	}
	c.offer(r.ask, caps)
	go func() {
		defer c.server.running.leave()
		defer cancel(nil)
		defer stop()
		defer close(r.ended)
		output, failure := c.invoke(life)
		c.reports.end()
		r.result, r.err = c.result(output, failure)
	}()
	return r.round(c.ctx)
}

// ask is the asker of such a call.
func (r *rounds) ask(ctx context.Context, request mcp.InputRequest) (mcp.InputResponse, error) {
	if r.c.server.closing.Load() {
		return nil, invoker.Failf(invoker.Unavailable, "The client cannot be asked: the server is about to end.")
	}
	q := &question{request, make(chan mcp.InputResponse, 1)}
	r.mu.Lock()
	r.serial++
	id := "question-" + strconv.Itoa(r.serial)
	r.questions[id] = q
	r.mu.Unlock()
	defer r.forget(id)
	select {
	case r.wake <- struct{}{}:
	default:
	}
	limit := time.NewTimer(r.c.server.options.AnswerTimeout)
	defer limit.Stop()
	select {
	case answer := <-q.answer:
		return answer, nil
	case <-limit.C:
		return nil, invoker.Failf(invoker.Unavailable, "The client could not be asked: %w", errNoAnswer)
	case <-r.c.server.closed:
		return nil, invoker.Failf(invoker.Unavailable, "The client cannot be asked: the server is about to end.")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *rounds) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.questions, id)
}

// open lists the questions that wait.
func (r *rounds) open() mcp.InputRequestMap {
	r.mu.Lock()
	defer r.mu.Unlock()
	open := make(mcp.InputRequestMap, len(r.questions))
	for id, q := range r.questions {
		open[id] = q.request
	}
	return open
}

// round waits until the call has ended, or has something to ask.
func (r *rounds) round(ctx context.Context) (mcp.Result, error) {
	stop := context.AfterFunc(ctx, func() { r.cancel(context.Cause(ctx)) })
	defer stop()
	for {
		select {
		case <-r.ended:
			return r.result, r.err
		case <-r.wake:
			open := r.open()
			if len(open) == 0 {
				continue // it was taken back
			}
			if !stop() {
				<-r.ended
				return r.result, r.err
			}
			return r.c.server.parked.park(r, open)
		}
	}
}

// parked is the calls that wait for answers of their clients.
type parked struct {
	timeout   time.Duration
	perClient int

	mu    sync.Mutex
	calls map[string]*parkedCall // by the state that the client gives back
	count map[string]int         // by client
}

type parkedCall struct {
	rounds *rounds
	expire *time.Timer
}

func newParked(timeout time.Duration, perClient int) *parked {
	return &parked{timeout: timeout, perClient: perClient, calls: make(map[string]*parkedCall), count: make(map[string]int)}
}

var errTooManyWait = errors.New("too many calls of the client wait for its answers")

// park answers a round with questions. The state is a name that nobody can
// guess, and good for one round.
func (p *parked) park(r *rounds, open mcp.InputRequestMap) (mcp.Result, error) {
	text, err := json.Marshal(open)
	if err != nil {
		r.cancel(err)
		<-r.ended
		return r.result, r.err
	}
	state := rand.Text()
	p.mu.Lock()
	if p.count[r.client] >= p.perClient {
		p.mu.Unlock()
		r.cancel(errTooManyWait)
		<-r.ended
		return r.result, r.err
	}
	p.count[r.client]++
	p.calls[state] = &parkedCall{r, time.AfterFunc(p.timeout, func() {
		if r := p.take(state); r != nil {
			r.cancel(errNoAnswer)
		}
	})}
	p.mu.Unlock()
	w := newObject()
	w.text("resultType", "input_required")
	w.raw("inputRequests", text)
	w.text("requestState", state)
	return &rawResult{text: w.open()}, nil
}

// take removes a call; nil if it is not there.
func (p *parked) take(state string) *rounds {
	p.mu.Lock()
	defer p.mu.Unlock()
	call, ok := p.calls[state]
	if !ok {
		return nil
	}
	delete(p.calls, state)
	call.expire.Stop()
	if p.count[call.rounds.client]--; p.count[call.rounds.client] == 0 {
		delete(p.count, call.rounds.owner)
	}
	return call.rounds
}

// belongs reports whether a repeated call is the one that waits.
func (p *parked) belongs(req *mcp.CallToolRequest, from *caller) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	call, ok := p.calls[req.Params.RequestState]
	return ok && call.rounds.owner == from.identity && call.rounds.c.tool.name == req.Params.Name &&
		bytes.Equal(call.rounds.c.call.Arguments, req.Params.Arguments)
}

// resume gives a call the answers for which it waits, and answers its next round.
func (p *parked) resume(ctx context.Context, req *mcp.CallToolRequest, from *caller) (mcp.Result, error) {
	var r *rounds
	if p.belongs(req, from) {
		r = p.take(req.Params.RequestState)
	}
	if r == nil {
		return nil, refusal(jsonrpc.CodeInvalidParams, "there is no such call that waits for an answer")
	}
	r.c.reports.goOn(ctx, req.Session)
	r.mu.Lock()
	for id, answer := range req.Params.InputResponses {
		if q, ok := r.questions[id]; ok {
			q.answer <- answer
			delete(r.questions, id)
		}
	}
	left := len(r.questions)
	r.mu.Unlock()
	if left > 0 {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
	return r.round(ctx)
}
