// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The older protocols are spoken as well, with what the newest one deprecates.

package mcpadapter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/internal/decode"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
)

// connection is one connection to a server: a link, the interceptor over it and the SDK's
// session.
type connection struct {
	options     *ClientOptions
	log         *zap.Logger
	link        link
	interceptor *interceptor
	peer        ensemble.Peer
	version     atomic.Value // string: the negotiated protocol version
	modern      bool         // the version is 2026-07-28 or newer
	asking      *negotiation // of the protocol version; nil if only one was asked for
	serial      atomic.Int64

	library              // its requests and session are the connection's
	questions *questions // of the server
	life      *lifetime

	requestMeta   map[string]json.RawMessage // sent with each request, if modern
	callMeta      []byte                     // the part of it in each call; see callMetaOf
	serverInfo    json.RawMessage            // the server's description of itself
	capabilities  json.RawMessage            // of the server; the SDK does not keep all of them
	listeners     listeners
	notifications *notifications

	telemetry *telemetry.Telemetry // from the context of open; for requests that belong to no call
	ensemble  string               // name in telemetry
	lasting   *telemetry.Session

	closing  sync.Once
	done     chan struct{} // closed when Close has finished
	closeErr error         // set before done is closed
}

var _ ensemble.Connection = (*connection)(nil)

func newConnection(options *ClientOptions, l link) *connection {
	c := &connection{
		options:       options,
		log:           options.Logger,
		link:          l,
		notifications: newNotifications(),
		life:          newLifetime(),
		done:          make(chan struct{}),
	}
	c.interceptor = newInterceptor(l, c.notified)
	c.interceptor.unanswered.MaxBytes = 4 * options.MaxMessage
	c.requests = &requester{options: options, log: c.log, link: l, interceptor: c.interceptor, life: c.life}
	if trusting, ok := l.(interface{ needs() []string }); ok {
		c.requests.needs = trusting.needs()
	}
	c.questions = &questions{options: options, interceptor: c.interceptor, life: c.life, route: c.route}
	c.interceptor.peer, c.interceptor.failure = c.route, c.requests.failure
	return c
}

// open performs the handshake. The SDK may ignore ctx, so the link is killed when ctx
// ends. After an error, nothing is left open.
func (c *connection) open(ctx context.Context, p plan) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := newAnswerTimer(p, cancel)
	defer timer.Stop()
	if p.both {
		if err := c.negotiate(ctx, p.probe); err != nil {
			return c.abandon(ctx, nil, err)
		}
		defer c.asking.end()
	}
	type outcome struct {
		session *mcp.ClientSession
		err     error
	}
	c.telemetry, c.ensemble = telemetry.From(ctx), cmp.Or(telemetry.Ensemble(ctx), c.options.Server)
	c.questions.telemetry = c.telemetry
	x := &exchange{sending: c.asked}
	x.answered = func(method string, response *jsonrpc.Response) {
		timer.Stop()
		endHandshakeSpan(x.span.Swap(nil), c.handshakeAnswered(method, response), response.Error)
	}
	connected := make(chan outcome, 1)
	go func() {
		var got outcome
		got.err = contained(func() (err error) {
			got.session, err = c.questions.client().Connect(withExchange(ctx, x), c.interceptor, &mcp.ClientSessionOptions{ProtocolVersion: p.version})
			return err
		})
		connected <- got
	}()
	var got outcome
	select {
	case got = <-connected:
	case <-ctx.Done():
		c.link.kill()
		select {
		case got = <-connected:
		case <-time.After(wire.EndTimeout):
		}
	}
	c.interceptor.forget(x)
	if got.err == nil && ctx.Err() == nil {
		c.begin(ctx, got.session)
		return nil
	}
	err := c.abandon(ctx, got.session, got.err)
	x.failed(c.requests.failure(err, x, true))
	return err
}

// newAnswerTimer starts the timer that cancels an attempt if the server does not answer.
func newAnswerTimer(p plan, cancel context.CancelCauseFunc) *time.Timer {
	limit := p.probe
	if limit <= 0 || p.both {
		limit = time.Hour
	}
	return time.AfterFunc(limit, func() {
		cancel(fmt.Errorf("%w within %s when asked for protocol %s", errNoAnswer, limit.Round(time.Millisecond), p.version))
	})
}

// asked keeps the client's own _meta from the SDK's first request.
func (c *connection) asked(request *jsonrpc.Request) {
	if request.Method == "server/discover" {
		c.requestMeta = metaOf(request)
	}
}

// handshakeAnswered handles an answer of the handshake. It tells the link the negotiated
// version before the SDK goes on, because the next message carries it. It returns the
// protocol version of the answer, for telemetry.
func (c *connection) handshakeAnswered(method string, response *jsonrpc.Response) (version string) {
	if method == "server/discover" {
		_ = json.Unmarshal(c.requestMeta[mcp.MetaKeyProtocolVersion], &version)
	}
	var result struct {
		ProtocolVersion string                     `json:"protocolVersion"`
		ServerInfo      json.RawMessage            `json:"serverInfo"`
		Capabilities    json.RawMessage            `json:"capabilities"`
		Meta            map[string]json.RawMessage `json:"_meta"`
	}
	if response.Error != nil || json.Unmarshal(response.Result, &result) != nil {
		return version
	}
	c.capabilities = result.Capabilities
	if c.serverInfo = result.ServerInfo; method == "server/discover" {
		c.serverInfo = result.Meta[mcp.MetaKeyServerInfo]
	}
	if method != "initialize" {
		return version
	}
	if l, ok := c.link.(interface{ negotiated(version string) }); ok {
		l.negotiated(result.ProtocolVersion)
	}
	return wire.KnownVersion(result.ProtocolVersion)
}

// abandon cleans up after a failed attempt and returns the reason of the failure.
func (c *connection) abandon(ctx context.Context, session *mcp.ClientSession, err error) error {
	lost := c.link.err() // before kill, after which err returns nil
	c.link.kill()
	c.life.end()
	c.notifications.stop()
	if session != nil {
		_ = session.Close()
	}
	l, isProcess := c.link.(*stdioLink)
	switch cause := context.Cause(ctx); {
	case lost != nil:
		return lost
	case cause != nil && errors.Is(cause, context.DeadlineExceeded) && isProcess:
		return fmt.Errorf("connecting timed out: %w: %s", cause, l.process.Describe())
	case cause != nil && errors.Is(cause, ctx.Err()):
		err = fmt.Errorf("connecting timed out: %w", cause)
	case cause != nil:
		err = cause
	default:
		err = cleaned(err)
	}
	if isProcess && l.process.LastWords() != "" {
		err = fmt.Errorf("%w; stderr: %s", err, l.process.LastWords())
	}
	return err
}

// begin starts the background work of the connection. ctx bounds only the waiting.
func (c *connection) begin(ctx context.Context, session *mcp.ClientSession) {
	c.session = session
	info := session.InitializeResult()
	c.modern = info.ProtocolVersion >= wire.Modern
	c.interceptor.modern.Store(c.modern)
	c.version.Store(info.ProtocolVersion)
	c.lasting = c.telemetry.StartSession(c.route(), true)
	c.peer = describedPeer(c.serverInfo)
	c.peer.Protocol, c.peer.Instructions = "MCP "+info.ProtocolVersion, info.Instructions
	if l, ok := c.link.(interface{ negotiated(version string) }); ok {
		l.negotiated(info.ProtocolVersion)
	}
	c.speak(info.ProtocolVersion)
	if c.modern {
		c.callMeta = callMetaOf(c.requestMeta, c.options.SampleCalls)
	}
	c.life.work.Go(c.watch)
	if l, ok := c.link.(*httpLink); ok && !c.modern {
		l.listen(ctx, c.notifications.missed, c.interceptor.failIdle)
	}
	if c.modern {
		c.listenForLists(ctx)
	}
	if !c.modern && c.options.LogLevel != "" && info.Capabilities != nil && info.Capabilities.Logging != nil {
		c.life.work.Go(c.setLogLevel)
	}
}

// describedPeer decodes a server's description of itself (MCP 2025-11-25, schema §
// Implementation). Members of the wrong type are ignored.
func describedPeer(serverInfo json.RawMessage) (p ensemble.Peer) {
	m, _ := wire.Members(serverInfo)
	for name, text := range map[string]*string{
		"name": &p.Name, "title": &p.Title, "version": &p.Version, "description": &p.Description, "websiteUrl": &p.Website,
	} {
		_ = json.Unmarshal(m[name], text)
	}
	p.Metadata = decode.Metadata(m, "name", "title", "version", "description", "websiteUrl")
	return p
}

// setLogLevel sends one request; if the server refuses, it keeps its own level.
func (c *connection) setLogLevel() {
	ctx, cancel := context.WithTimeout(c.life.ctx, defaultProbe)
	defer cancel()
	if err := c.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(c.options.LogLevel)}); err != nil && ctx.Err() == nil {
		c.log.Warn("the server keeps its own log level", logevent.LevelRefused, zap.Error(cleaned(err)))
	}
}

// watch waits for the end of the connection, from either side.
func (c *connection) watch() {
	select {
	case <-c.life.ctx.Done():
	case <-c.link.lost():
		c.life.lostErr = c.link.err()
	case <-c.interceptor.broken:
		c.life.lostErr = cmp.Or(c.link.err(), cleaned(c.interceptor.cause))
	}
	if c.life.isClosed() {
		c.life.lostErr = nil // later errors are a consequence of Close
	}
	c.lasting.End(c.requests.lossOf(c.life.lostErr))
	close(c.life.lost)
	c.life.end()
	c.notifications.stop()
}

// Changed implements [ensemble.Connection].
func (c *connection) Changed() <-chan struct{} { return c.notifications.changed }

// Lost implements [ensemble.Connection].
func (c *connection) Lost() <-chan struct{} { return c.life.lost }

// Err implements [ensemble.Connection].
func (c *connection) Err() error {
	select {
	case <-c.life.lost:
		return c.life.lostErr
	default:
		return nil
	}
}

// Peer implements [ensemble.Connection].
func (c *connection) Peer() ensemble.Peer { return c.peer }

// Close implements [ensemble.Connection].
func (c *connection) Close(ctx context.Context) error {
	c.closing.Do(func() {
		c.life.close()
		defer close(c.done)
		c.closeErr = c.shutDown(ctx)
	})
	<-c.done
	return c.closeErr
}

// shutDown cancels the calls in flight, ends the session within endTimeout and closes
// the link. The SDK's own Close waits for calls, possibly forever, without cancelling
// them.
func (c *connection) shutDown(ctx context.Context) error {
	calls := c.interceptor.inFlight()
	c.life.end()
	polite, cancel := context.WithTimeout(ctx, wire.EndTimeout)
	defer cancel()
	said := make(chan struct{})
	go func() {
		defer close(said)
		var cancelling sync.WaitGroup
		for id := range calls {
			cancelling.Go(func() { c.interceptor.cancel(polite, id, "the client closes the connection") })
		}
		cancelling.Wait()
		_ = c.session.Close()
	}()
	select {
	case <-said:
	case <-time.After(wire.EndTimeout):
	case <-ctx.Done():
	}
	err := c.link.close(ctx)
	if !c.settled(said) {
		return errors.Join(err, fmt.Errorf("server %q: a function of this program that was called for the server is still running after its context ended", c.options.Server))
	}
	return err
}

// settled reports whether everything that the connection started has ended.
func (c *connection) settled(said <-chan struct{}) bool {
	return returnsSoon(func() {
		<-said
		c.life.work.Wait()
	})
}

// returnsSoon reports whether wait returns within wire.EndTimeout.
func returnsSoon(wait func()) bool {
	returned := make(chan struct{})
	go func() {
		wait()
		close(returned)
	}()
	select {
	case <-returned:
		return true
	case <-time.After(wire.EndTimeout):
		return false
	}
}
