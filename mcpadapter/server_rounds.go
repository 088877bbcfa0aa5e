// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
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

// rounds is a request that may ask its client something under 2026-07-28, where
// a server sends no requests (SEP-2322): the answer to the request is then a list
// of questions, and the client repeats it with its answers. Meanwhile the tool
// goes on running here, and waits.
type rounds struct {
	server *Server
	what   string // of the request, which another one must not take over
	owner  string // the identity of the client
	client string
	goOn   func(context.Context, *mcp.ServerSession) // at each further round; may be nil
	cancel context.CancelCauseFunc
	wake   chan struct{} // a question is new; holds one
	ended  chan struct{} // result and err are there
	result mcp.Result
	err    error

	mu        sync.Mutex
	questions map[string]*question // without an answer
	given     mcp.InputResponseMap // answers that came with the first round
	serial    int
}

type question struct {
	request mcp.InputRequest
	answer  chan mcp.InputResponse // holds one
}

// roundSettle is how long a round waits for further questions after the first, since
// those that a tool asks side by side go out together.
const roundSettle = 10 * time.Millisecond

// newRounds returns the rounds of a request; given are the answers of a client
// that knows beforehand what it will be asked.
func (s *Server) newRounds(what string, from *caller, given mcp.InputResponseMap) *rounds {
	return &rounds{
		server: s, what: what, owner: from.identity, client: from.client, given: given,
		wake: make(chan struct{}, 1), ended: make(chan struct{}), questions: make(map[string]*question),
	}
}

// begin runs f, and answers the first round. The context of f has a life of its
// own, which ends with that of a round that is broken off.
func (r *rounds) begin(ctx context.Context, f func(ctx context.Context) (mcp.Result, error)) (mcp.Result, error) {
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	r.cancel = cancel
	stop := context.AfterFunc(r.server.life, func() { cancel(errServerClosed) })
	r.server.running.enter()
	go func() {
		defer r.server.running.leave()
		defer cancel(nil)
		defer stop()
		defer close(r.ended)
		defer r.server.caught(life, r.what, &r.result, &r.err)
		r.result, r.err = f(life)
	}()
	return r.round(ctx)
}

// ask is the asker of such a request.
func (r *rounds) ask(ctx context.Context, key string, request mcp.InputRequest) (mcp.InputResponse, error) {
	if r.server.closing.Load() {
		return nil, invoker.Failf(invoker.Unavailable, "The client cannot be asked: the server is about to end.")
	}
	q := &question{request, make(chan mcp.InputResponse, 1)}
	id, answer := r.put(key, q)
	if answer != nil {
		return answer, nil
	}
	defer r.forget(id)
	limit := time.NewTimer(r.server.options.AnswerTimeout)
	defer limit.Stop()
	select {
	case answer := <-q.answer:
		return answer, nil
	case <-limit.C:
		return nil, invoker.Failf(invoker.Unavailable, "The client could not be asked: %w", errNoAnswer)
	case <-r.server.taking.Done():
		return nil, invoker.Failf(invoker.Unavailable, "The client cannot be asked: the server is about to end.")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// put makes a question one of the next round, under the key or a number; or
// returns its answer, if that is there already.
func (r *rounds) put(key string, q *question) (id string, answer mcp.InputResponse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serial++
	id = key
	if _, taken := r.questions[key]; taken || key == "" {
		id = key + "question-" + strconv.Itoa(r.serial)
	}
	if answer := r.given[id]; answer != nil {
		delete(r.given, id) // it is for one question
		return id, answer
	}
	r.questions[id] = q
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return id, nil
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
			if r.settled() {
				continue
			}
			open := r.open()
			if len(open) == 0 {
				continue // it was taken back
			}
			if !stop() {
				<-r.ended
				return r.result, r.err
			}
			return r.server.parked.park(r, open)
		}
	}
}

// settled waits for further questions; it reports whether the request ended
// meanwhile.
func (r *rounds) settled() bool {
	more := time.NewTimer(roundSettle)
	defer more.Stop()
	select {
	case <-r.ended:
		return true
	case <-more.C:
	}
	select {
	case <-r.wake: // for a question that goes out now
	default:
	}
	return false
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
	p.calls[state] = &parkedCall{r, time.AfterFunc(p.timeout, func() { p.expired(state) })}
	p.mu.Unlock()
	w := newObject()
	w.text("resultType", "input_required")
	w.raw("inputRequests", text)
	w.text("requestState", state)
	return &rawResult{text: w.open()}, nil
}

// expired ends a call whose answers have not come.
func (p *parked) expired(state string) {
	p.mu.Lock()
	call, ok := p.calls[state]
	p.remove(state)
	p.mu.Unlock()
	if ok {
		call.rounds.cancel(errNoAnswer)
	}
}

// remove forgets a call. p.mu is held.
func (p *parked) remove(state string) {
	call, ok := p.calls[state]
	if !ok {
		return
	}
	delete(p.calls, state)
	call.expire.Stop()
	if p.count[call.rounds.client]--; p.count[call.rounds.client] == 0 {
		delete(p.count, call.rounds.client)
	}
}

// resumed returns the call that waits for a repeated request, once; nil for a
// request without a state, which begins one.
func (p *parked) resumed(state, what string, from *caller) (*rounds, error) {
	if state == "" {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	call, ok := p.calls[state]
	if !ok || call.rounds.owner != from.identity || call.rounds.what != what {
		return nil, refusal(jsonrpc.CodeInvalidParams, "there is no such call that waits for an answer")
	}
	p.remove(state)
	return call.rounds, nil
}

// resume gives a request the answers for which it waits, and answers its next
// round.
func (r *rounds) resume(ctx context.Context, session *mcp.ServerSession, answers mcp.InputResponseMap) (mcp.Result, error) {
	if r.goOn != nil {
		r.goOn(ctx, session)
	}
	r.mu.Lock()
	for id, answer := range answers {
		if q, ok := r.questions[id]; ok && answer != nil {
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
