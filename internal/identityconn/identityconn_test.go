// SPDX-License-Identifier: Apache-2.0

package identityconn_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/identityconn"
	"github.com/consort-go/consort/internal/testing/raced"
	"github.com/consort-go/consort/invoker"
)

// fake is a connection to a server that answers with the identity whose token it has.
type fake struct {
	ensemble.Library // not called
	token            string
	refused          *atomic.Bool // the token, so that calls need a login
	dies             *atomic.Bool // the connection, during a call, because the login has ended
	busy             *atomic.Bool // ends during a call, which it answers with UNAVAILABLE
	calls            *atomic.Int32
	more             *atomic.Bool  // it lists another tool instead
	broken           *atomic.Bool  // it lists nothing
	hold             chan struct{} // if not nil, calls wait for it
	changed          chan struct{}
	lost             chan struct{}
	end              func()
}

func newFake(token string, refused *atomic.Bool) *fake {
	f := &fake{token: token, refused: refused, dies: new(atomic.Bool), busy: new(atomic.Bool), calls: new(atomic.Int32),
		more: new(atomic.Bool), broken: new(atomic.Bool), changed: make(chan struct{}, 1), lost: make(chan struct{})}
	f.end = sync.OnceFunc(func() { close(f.lost) })
	return f
}

func (f *fake) List(context.Context) (ensemble.Listing, error) {
	if f.broken.Load() {
		return ensemble.Listing{}, errors.New("the list is broken")
	}
	name := "who"
	if f.more.Load() {
		name = "whose"
	}
	tool, err := invoker.Raw(invoker.Definition{Name: name, InputSchema: []byte(`{"type":"object"}`)}, func(context.Context,
		*invoker.Call) (invoker.Output, error) {
		select {
		case <-f.lost:
			return invoker.Output{}, invoker.Failf(invoker.Unavailable, "The connection has ended.")
		default:
		}
		if f.hold != nil {
			<-f.hold
		}
		f.calls.Add(1)
		if f.dies.Load() {
			f.end()
			return invoker.Output{}, &invoker.Failure{Code: invoker.OutcomeUnknown, Message: "It may have taken effect.", Cause: fmt.Errorf("lost: %w", ensemble.ErrNeedsLogin)}
		}
		if f.busy.Load() {
			f.end()
			return invoker.Output{}, &invoker.Failure{Code: invoker.Unavailable, Message: "busy", Content: canister.Texts("busy")}
		}
		if f.refused.Load() {
			return invoker.Output{}, &invoker.Failure{Code: invoker.Unauthorized, Message: "refused", Cause: ensemble.ErrNeedsLogin}
		}
		return invoker.Output{Content: canister.Texts(f.token)}, nil
	}, nil)
	return ensemble.Listing{Invokers: []invoker.Invoker{tool}}, err
}

func (f *fake) Read(context.Context, string) ([]canister.ResourceContent, error) {
	return []canister.ResourceContent{{Text: f.token}}, nil
}
func (f *fake) Listen(func(ensemble.News))  {}
func (f *fake) Changed() <-chan struct{}    { return f.changed }
func (f *fake) Lost() <-chan struct{}       { return f.lost }
func (f *fake) Err() error                  { return nil }
func (f *fake) Peer() ensemble.Peer         { return ensemble.Peer{} }
func (f *fake) Ping(context.Context) error  { return nil }
func (f *fake) Close(context.Context) error { f.end(); return nil }

// sourceFunc is a source.
type sourceFunc func(context.Context) (ensemble.Connection, error)

func (f sourceFunc) Open(ctx context.Context) (ensemble.Connection, error) { return f(ctx) }

// world has the logins of identities, and what became of their connections.
type world struct {
	mu      sync.Mutex
	logins  map[string]int
	open    []*fake
	refused map[string]*atomic.Bool // by token
	asked   int
	agrees  bool
}

func (w *world) source(options identityconn.Options) ensemble.Source {
	options.Server = "server"
	options.Identity = func(ctx context.Context) (string, bool) {
		identity := access.IdentityFrom(ctx)
		return identity, identity != "nobody"
	}
	options.Open = func(_ context.Context, identity string) (ensemble.Source, func(), error) {
		return sourceFunc(func(context.Context) (ensemble.Connection, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			token := fmt.Sprintf("%s %d", identity, w.logins[identity])
			if w.logins[identity] == 0 {
				return nil, ensemble.ErrNeedsLogin
			}
			if w.refused[token] == nil {
				w.refused[token] = new(atomic.Bool)
			}
			f := newFake(token, w.refused[token])
			w.open = append(w.open, f)
			return f, nil
		}), nil, nil
	}
	options.Login = func(_ context.Context, identity string, _ *invoker.Call, cause error) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.asked++; !w.agrees {
			return invoker.Failf(invoker.Unauthorized, "declined")
		}
		w.logins[identity]++
		return nil
	}
	return identityconn.Source(sourceFunc(func(context.Context) (ensemble.Connection, error) {
		return newFake("shared", new(atomic.Bool)), nil
	}), &options)
}

func newWorld() *world {
	return &world{logins: map[string]int{}, refused: map[string]*atomic.Bool{}, agrees: true}
}

func opened(t *testing.T, source ensemble.Source) (ensemble.Connection, invoker.Invoker) {
	t.Helper()
	c, err := source.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	listing, err := c.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c, listing.Invokers[0]
}

// call returns the identity whose token the server got.
func call(t *testing.T, tool invoker.Invoker, identity string) (string, error) {
	output, err := tool.Invoke(access.WithIdentity(t.Context(), identity), &invoker.Call{})
	if err != nil {
		return "", err
	}
	return output.Content[0].(canister.TextContent).Text, nil
}

func TestEachIdentityHasItsConnection(t *testing.T) {
	w := newWorld()
	c, tool := opened(t, w.source(identityconn.Options{}))
	for range 2 {
		for identity, want := range map[string]string{"": "shared", "ada": "ada 1", "bob": "bob 1"} {
			if got, err := call(t, tool, identity); got != want || err != nil {
				t.Errorf("%q: %q, %v", identity, got, err)
			}
			read, err := c.(ensemble.Library).Read(access.WithIdentity(t.Context(), identity), "x:y")
			if err != nil || read[0].Text != want {
				t.Errorf("%q reads: %v, %v", identity, read, err)
			}
		}
	}
	if w.asked != 2 || len(w.open) != 2 {
		t.Errorf("%d logins, %d connections", w.asked, len(w.open))
	}
	if _, err := call(t, tool, "nobody"); invoker.AsFailure(err).Code != invoker.Unauthorized {
		t.Errorf("nobody: %v", err)
	}
	w.refused["ada 1"].Store(true)
	if got, err := call(t, tool, "ada"); got != "ada 2" || err != nil {
		t.Errorf("after the end of the login: %q, %v", got, err)
	}
	w.agrees = false
	w.refused["ada 2"].Store(true)
	if _, err := call(t, tool, "ada"); err == nil || errors.Is(err, ensemble.ErrNeedsLogin) || invoker.AsFailure(err).Code != invoker.Unauthorized {
		t.Errorf("declined: %v", err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, f := range w.open {
		select {
		case <-f.lost:
		default:
			t.Errorf("the connection of %s is open", f.token)
		}
	}
	if _, err := call(t, tool, "bob"); err == nil {
		t.Error("a call after Close works")
	}
}

// TestOneLoginIsEnough: the call after a login opens a connection of its own, however soon
// after the one that failed it comes.
func TestOneLoginIsEnough(t *testing.T) {
	w := newWorld()
	c, tool := opened(t, w.source(identityconn.Options{}))
	defer c.Close(t.Context())
	for i := range 1000 {
		identity := fmt.Sprint("user", i)
		if got, err := call(t, tool, identity); got != identity+" 1" || err != nil {
			t.Fatalf("%s: %q, %v", identity, got, err)
		}
	}
}

// A call that may have taken effect is not made again after a login.
func TestUnknownOutcomeStays(t *testing.T) {
	w := newWorld()
	_, tool := opened(t, w.source(identityconn.Options{}))
	if _, err := call(t, tool, "ada"); err != nil {
		t.Fatal(err)
	}
	asked, server := w.asked, w.open[0]
	server.dies.Store(true)
	_, err := call(t, tool, "ada")
	if failure := invoker.AsFailure(err); failure.Code != invoker.OutcomeUnknown || errors.Is(err, ensemble.ErrNeedsLogin) {
		t.Errorf("the call ends with %v", err)
	}
	if server.calls.Load() != 2 || len(w.open) != 1 || w.asked != asked {
		t.Errorf("%d calls, %d connections, %d logins more", server.calls.Load(), len(w.open), w.asked-asked)
	}
	if token, err := call(t, tool, "ada"); err != nil || token != "ada 1" {
		t.Errorf("the next call: %q, %v", token, err)
	}
}

// A call that the tool itself has answered is not made again, whatever the code.
func TestAnsweredCallIsNotRepeated(t *testing.T) {
	w := newWorld()
	_, tool := opened(t, w.source(identityconn.Options{}))
	if _, err := call(t, tool, "ada"); err != nil {
		t.Fatal(err)
	}
	server := w.open[0]
	server.busy.Store(true)
	if _, err := call(t, tool, "ada"); err == nil || len(invoker.AsFailure(err).Content) == 0 {
		t.Errorf("the call ends with %v", err)
	}
	if server.calls.Load() != 2 || len(w.open) != 1 {
		t.Errorf("%d calls, %d connections", server.calls.Load(), len(w.open))
	}
}

// The connection of an identity follows the changes of its tools.
func TestChangedTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		c, tool := opened(t, w.source(identityconn.Options{}))
		defer c.Close(t.Context())
		if _, err := call(t, tool, "ada"); err != nil {
			t.Fatal(err)
		}
		for _, gone := range []bool{true, false} {
			w.open[0].more.Store(gone)
			w.open[0].changed <- struct{}{}
			synctest.Wait()
			if _, err := call(t, tool, "ada"); (err != nil) != gone || gone && invoker.AsFailure(err).Code != invoker.ToolNotFound {
				t.Errorf("gone is %t: %v", gone, err)
			}
		}
		if len(w.open) != 1 {
			t.Errorf("%d connections", len(w.open))
		}
	})
}

// A connection whose tools cannot be listed again ends after the calls that are under way.
func TestChangedToolsThatCannotBeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		c, tool := opened(t, w.source(identityconn.Options{}))
		defer c.Close(t.Context())
		if _, err := call(t, tool, "ada"); err != nil {
			t.Fatal(err)
		}
		first := w.open[0]
		first.hold = make(chan struct{})
		answered := make(chan error)
		go func() {
			_, err := call(t, tool, "ada")
			answered <- err
		}()
		synctest.Wait()
		first.broken.Store(true)
		first.changed <- struct{}{}
		synctest.Wait()
		select {
		case <-first.lost:
			t.Error("the connection ended during a call")
		default:
		}
		close(first.hold)
		if err := <-answered; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		select {
		case <-first.lost:
		default:
			t.Error("the connection stays open")
		}
		if _, err := call(t, tool, "ada"); err != nil || len(w.open) != 2 {
			t.Errorf("%v, %d connections", err, len(w.open))
		}
	})
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		c, tool := opened(t, w.source(identityconn.Options{Idle: time.Minute}))
		defer c.Close(t.Context())
		for range 3 {
			if _, err := call(t, tool, "ada"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Second)
		}
		time.Sleep(31 * time.Second)
		synctest.Wait()
		select {
		case <-w.open[0].lost:
		default:
			t.Error("it stays open")
		}
		if _, err := call(t, tool, "ada"); err != nil || len(w.open) != 2 {
			t.Errorf("%v, %d connections", err, len(w.open))
		}
	})
}

// TestTokensOfOthers: in random interleavings of calls, lost connections, ended logins, idle
// times and few places for connections, no call is made with the token of another identity.
// CONSORT_HISTORIES is how many interleavings, 2,000 if it is not set, and a quarter of them
// under the race detector.
func TestTokensOfOthers(t *testing.T) {
	const identities = 4
	interleavings, err := strconv.ParseUint(cmp.Or(os.Getenv("CONSORT_HISTORIES"), strconv.Itoa(raced.Fewer(1000))), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int64
	for seed := range interleavings {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 26))
			w := newWorld()
			c, tool := opened(t, w.source(identityconn.Options{Idle: 50 * time.Millisecond, Limit: 1 + random.IntN(identities)}))
			var group sync.WaitGroup
			for i := range 2 * identities {
				identity, seed := fmt.Sprint("user", i%identities), random.Uint64()
				group.Go(func() {
					random := rand.New(rand.NewPCG(seed, 1))
					for range 3 {
						time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond)
						got, err := call(t, tool, identity)
						if err == nil {
							calls.Add(1)
							var user string
							var login int
							if _, err := fmt.Sscanf(got, "%s %d", &user, &login); err != nil || user != identity {
								t.Errorf("seed %d: %s called with %q", seed, identity, got)
							}
						}
						w.disturb(random)
					}
				})
			}
			group.Wait()
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d calls", calls.Load())
}

// disturb loses a connection, ends a login, or does nothing.
func (w *world) disturb(random *rand.Rand) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.open
	if len(f) == 0 {
		return
	}
	switch one := f[random.IntN(len(f))]; random.IntN(4) {
	case 0:
		one.end()
	case 1:
		one.refused.Store(true)
	}
}
