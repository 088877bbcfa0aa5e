// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Older protocols are supported too, with features that the newest one deprecates.

package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/accesslog"
	"github.com/consort-go/consort/internal/bodymemory"
	"github.com/consort-go/consort/internal/openstreams"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/consort-go/consort/mcpadapter/server/internal/subscriptions"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Server offers the contents of a roster over MCP: to one client over a pair of streams
// ([Server.Serve]), to many over streamable HTTP ([Server.Handler]), or to both. All
// methods may be called concurrently.
type Server struct {
	options    Options
	log        *zap.Logger
	refusals   *zap.Logger     // log for events that hostile clients can repeat; sampled
	access     *accesslog.Logs // nil without an access log
	roster     *ensemble.Roster
	own        *ensemble.Ensemble // of options.Tools
	sdk        *mcp.Server
	unaware    *mcp.Server // knows no tools, see sdkFor
	offers     offers
	requests   sync.Map // HTTP requests under way: their key -> *caller
	serial     atomic.Uint64
	auth       atomic.Pointer[authentication]
	waiting    openstreams.Set
	clients    *access.Clients
	sessions   *sessions
	parked     *parked
	subscribed subscriptions.Set
	selects    selections
	listeners  listeners
	unwatch    context.CancelFunc
	watched    sync.WaitGroup // the goroutines that notify clients of changes

	life       context.Context // ends the calls
	end        context.CancelCauseFunc
	streaming  context.Context // ends the streams that wait for notifications
	endStreams context.CancelFunc
	running    gate            // requests being processed, and calls waiting between two rounds
	answering  gate            // requests whose responses have not been sent
	taking     context.Context // ends when Close is called
	stopTaking context.CancelFunc
	streams    streams
	stall      time.Duration     // how long the client of a stream may take to read what was sent
	bodies     *bodymemory.Limit // of requests under way
	asking     *bodymemory.Limit // of calls that may wait for their clients
}

var errServerClosed = errors.New("the server is closed")

// New returns a server for the contents of the roster. It does not serve until
// one of its methods is called. The caller must close the roster, after the server.
// With a nil roster the server offers only options.Tools.
func New(roster *ensemble.Roster, options *Options) *Server {
	s := &Server{options: options.withDefaults(), roster: roster, stall: wire.StallTimeout}
	if s.roster == nil {
		s.roster, _ = ensemble.NewRoster() // an empty roster: no error is possible
	}
	s.log = s.options.Logger
	s.refusals = s.log.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Second, 10, 1000)
	}))
	s.access = accesslog.New(s.options.AccessLog, s.log, s.refusals)
	s.life, s.end = context.WithCancelCause(context.Background())
	s.streaming, s.endStreams = context.WithCancel(context.Background())
	s.taking, s.stopTaking = context.WithCancel(context.Background())
	s.bodies, s.asking = bodymemory.New(s.options.MaxBodies, s.options.MaxBody), bodymemory.New(s.options.MaxBodies, s.options.MaxBody)
	s.own = ensemble.New(s.options.Name, ensemble.LocalSource(s.options.Tools...), &ensemble.Options{
		CallTimeout: ownTimeout, CallLimit: ownLimit, Logger: s.log,
	})
	s.selects = selections{
		auth: &s.auth, tools: &s.offers.tools, everything: s.roster.Select(nil), nothing: s.roster.Select(func(ensemble.Item) bool { return false }),
		finding: newFinding(&s.options), ownNames: s.options.OwnNames, log: s.refusals,
	}
	s.listeners.selects, s.listeners.notify, s.listeners.watched = &s.selects, s.notify, &s.watched
	s.listeners.of, s.listeners.compare = make(map[*mcp.ServerSession]*listener), make(chan struct{}, 1)
	s.auth.Store(newAuthentication(&s.options, s.refusals))
	s.clients = access.New(access.Limits{Rate: s.options.Rate, Burst: s.options.Burst, Parallel: s.options.Parallel})
	s.sessions = newSessions(&s.options)
	s.parked = newParked(s.options.AnswerTimeout, s.options.Parallel)
	s.sdk, s.unaware = s.newSDK(), s.newSDK()
	var watching context.Context
	watching, s.unwatch = context.WithCancel(context.Background())
	news := s.roster.Watch(watching)
	s.watched.Go(func() { s.notifyClients(watching, news) })
	s.watched.Go(func() { s.listeners.compareLists(watching) })
	return s
}

// Limits for calls of the options' tools, instead of the defaults of package ensemble.
const (
	ownTimeout = 10 * time.Minute
	ownLimit   = time.Hour
)

// newSDK returns the server of the SDK. It implements the protocol and passes each
// request to receive, which answers from the roster.
func (s *Server) newSDK() *mcp.Server {
	o := &s.options
	var handle mcp.MethodHandler // of the SDK
	server := mcp.NewServer(&mcp.Implementation{Name: o.Name, Title: o.Title, Version: o.Version}, &mcp.ServerOptions{
		Instructions: o.Instructions,
		PageSize:     o.PageSize,
		Capabilities: &mcp.ServerCapabilities{
			Logging:     &mcp.LoggingCapabilities{},
			Tools:       &mcp.ToolCapabilities{ListChanged: true},
			Resources:   &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
			Prompts:     &mcp.PromptCapabilities{ListChanged: true},
			Completions: &mcp.CompletionCapabilities{},
		},
		SubscribeHandler: func(ctx context.Context, req *mcp.SubscribeRequest) error {
			return s.subscribe(ctx, req, handle)
		},
		UnsubscribeHandler: s.unsubscribe,
	})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		handle = next
		return s.receive(next)
	})
	server.AddSendingMiddleware(s.listeners.filter, tryLog)
	return server
}

// Close refuses new requests, lets requests under way finish until ctx ends, and then
// cancels them. When it returns, all sessions and streams have ended. The error says
// what has not ended; calling Close again waits for the rest.
func (s *Server) Close(ctx context.Context) error {
	s.stopTaking()
	finished := s.running.wait(ctx)
	s.end(errServerClosed)
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), wire.EndTimeout)
	defer cancel()
	s.answering.wait(bound) // the SDK drops the responses of a closed session
	s.endStreams()
	s.unwatch()
	s.sessions.end()
	s.streams.end()
	s.subscribed.Wait()
	err := errors.Join(s.own.Close(ctx), s.selects.finding.close(ctx))
	s.watched.Wait()
	if !finished && !s.running.wait(bound) {
		err = errors.Join(err, fmt.Errorf("%d requests have not ended", s.running.count()))
	}
	return err
}
