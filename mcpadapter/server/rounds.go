// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/consort-go/consort/mcpadapter/server/internal/jsonobject"

	"github.com/consort-go/consort/internal/bodymemory"
	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// rounds is a request that may ask its client something under 2026-07-28, where a
// server sends no requests (SEP-2322): the response to the request is then a list of
// questions, and the client repeats the request with its answers. Meanwhile the tool
// keeps running and waits.
type rounds struct {
	server *Server
	what   string // identifies the request, so that another one cannot take over its state
	memory *bodymemory.Memory
	owner  string // the identity of the client
	client string
	limit  int                                                                      // parked.perClient when the call began, which a lower one does not replace
	pause  func()                                                                   // called before the response of a round that is not the last; may be nil
	goOn   func(ctx context.Context, session *mcp.ServerSession, progressToken any) // called at each further round; nil if pause is
	cancel context.CancelCauseFunc
	wake   chan struct{} // signals a new question; buffers one
	ended  chan struct{} // closed when result and err are set
	result mcp.Result
	err    error

	mu        sync.Mutex
	questions map[string]*question // unanswered
	given     mcp.InputResponseMap // answers that came with the first round
	serial    int
}

type question struct {
	request mcp.InputRequest
	answer  chan mcp.InputResponse // buffers one
}

// roundSettle is how long a round waits for further questions after the first, so that
// questions that a tool asks concurrently are sent together.
const roundSettle = 10 * time.Millisecond

// newRounds returns the rounds of a request whose arguments have size bytes. given holds
// answers that the client sent in advance. The error says that the client keeps too much
// memory; requests under way, which may bring the answers, have another limit.
func newRounds(s *Server, what string, size int, from *caller, given mcp.InputResponseMap) (*rounds, error) {
	memory := s.asking.For(from.client)
	if err := memory.Take(max(int64(size), from.size)); err != nil {
		return nil, err
	}
	s.parked.mu.Lock()
	limit := s.parked.perClient
	s.parked.mu.Unlock()
	return &rounds{
		server: s, what: what, memory: memory, owner: from.identity, client: from.client, limit: limit, given: given,
		wake: make(chan struct{}, 1), ended: make(chan struct{}), questions: make(map[string]*question),
	}, nil
}

// which returns a text that identifies a request of a client.
func which(method, name string, arguments []byte) string {
	hash := sha256.New()
	_, _ = io.WriteString(hash, name+" ")
	_, _ = hash.Write(arguments)
	return method + " " + hex.EncodeToString(hash.Sum(nil))
}

// begin runs f and returns the response of the first round. The context of f outlives
// the request; it is cancelled if the request of a round is cancelled.
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
		defer r.memory.Release()
		defer r.server.recoverPanic(life, r.what, &r.result, &r.err)
		r.result, r.err = f(life)
	}()
	return r.round(ctx)
}

// ask implements asker.
func (r *rounds) ask(ctx context.Context, key string, request mcp.InputRequest) (mcp.InputResponse, error) {
	if r.server.taking.Err() != nil {
		return nil, invoker.Failf(invoker.Unavailable, "The client cannot be asked: the server is shutting down.")
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
		return nil, invoker.Failf(invoker.Unavailable, "The client cannot be asked: the server is shutting down.")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// put adds a question to the next round, under its key or a number. If its answer is
// already known, put returns it instead.
func (r *rounds) put(key string, q *question) (id string, answer mcp.InputResponse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serial++
	id = key
	if _, taken := r.questions[key]; taken || key == "" {
		id = key + "question-" + strconv.Itoa(r.serial)
	}
	if answer := r.given[id]; answer != nil {
		delete(r.given, id) // an answer is used only once
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

// open returns the unanswered questions.
func (r *rounds) open() mcp.InputRequestMap {
	r.mu.Lock()
	defer r.mu.Unlock()
	open := make(mcp.InputRequestMap, len(r.questions))
	for id, q := range r.questions {
		open[id] = q.request
	}
	return open
}

// round waits until the call has ended or has a question.
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
				continue // the question was withdrawn
			}
			if !stop() {
				<-r.ended
				return r.result, r.err
			}
			return r.server.parked.park(r, open)
		}
	}
}

// settled waits for further questions. It reports whether the request ended meanwhile.
func (r *rounds) settled() bool {
	more := time.NewTimer(roundSettle)
	defer more.Stop()
	select {
	case <-r.ended:
		return true
	case <-more.C:
	}
	select {
	case <-r.wake: // for a question that is sent in this round
	default:
	}
	return false
}

// parked holds the calls that wait for answers of their clients.
type parked struct {
	timeout time.Duration

	mu        sync.Mutex
	perClient int                    // for calls that begin; see rounds.limit
	calls     map[string]*parkedCall // by the state that the client returns
	count     map[string]int         // by client
}

type parkedCall struct {
	rounds *rounds
	expire *time.Timer
}

func newParked(timeout time.Duration, perClient int) *parked {
	return &parked{timeout: timeout, perClient: perClient, calls: make(map[string]*parkedCall), count: make(map[string]int)}
}

var errTooManyWait = errors.New("too many calls of the client wait for its answers")

// park returns the response of a round with questions. The state is unguessable and
// valid for one round.
func (p *parked) park(r *rounds, open mcp.InputRequestMap) (mcp.Result, error) {
	text, err := json.Marshal(open)
	if err != nil {
		r.cancel(err)
		<-r.ended
		return r.result, r.err
	}
	state := rand.Text()
	p.mu.Lock()
	if p.count[r.client] >= max(p.perClient, r.limit) {
		p.mu.Unlock()
		r.cancel(errTooManyWait)
		<-r.ended
		return r.result, r.err
	}
	p.count[r.client]++
	p.calls[state] = &parkedCall{r, time.AfterFunc(p.timeout, func() { p.expired(state) })}
	p.mu.Unlock()
	if r.pause != nil {
		r.pause()
	}
	w := jsonobject.New()
	w.Text("resultType", "input_required")
	w.Raw("inputRequests", text)
	w.Text("requestState", state)
	return &rawResult{text: w.Open()}, nil
}

// expired ends a call that was not answered in time.
func (p *parked) expired(state string) {
	p.mu.Lock()
	call, ok := p.calls[state]
	p.remove(state)
	p.mu.Unlock()
	if ok {
		call.rounds.cancel(errNoAnswer)
	}
}

// remove removes a call. The caller must hold p.mu.
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

// resumed removes and returns the call that waits for a repeated request. It returns
// nil if the request has no state and so begins a new call.
func (p *parked) resumed(state, what string, from *caller) (*rounds, error) {
	if state == "" {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	call, ok := p.calls[state]
	if !ok || call.rounds.owner != from.identity || call.rounds.what != what {
		return nil, refusal(jsonrpc.CodeInvalidParams, "no call with this ID waits for an answer")
	}
	p.remove(state)
	return call.rounds, nil
}

// resume passes the answers of a request to its questions, and returns the response of
// the next round. progressToken belongs to the request; may be nil.
func (r *rounds) resume(ctx context.Context, session *mcp.ServerSession, progressToken any, answers mcp.InputResponseMap) (mcp.Result, error) {
	if r.goOn != nil {
		r.goOn(ctx, session, progressToken)
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
