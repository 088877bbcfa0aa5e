// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
)

// foreignCode calls code of a source, or of the program. It turns a panic into an
// error, and logs it with its stack.
type foreignCode struct{ log *zap.Logger }

// call calls f; what names the code in the error.
func (c foreignCode) call(what string, f func()) error {
	err := contain.Call(what, f)
	if err != nil {
		c.logPanic(err)
	}
	return err
}

// do calls f, as guard does.
func (c foreignCode) do(f func() error) error {
	_, err := guard(c.log, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// logPanic logs the error of a call that panicked.
func (c foreignCode) logPanic(err error) {
	var panicked *contain.Panic
	if errors.As(err, &panicked) {
		c.log.Error("a function of a source or of the program panicked", logevent.SourcePanicked, zap.Error(err), zap.ByteString("stack", panicked.Stack))
	}
}

// signals are the channels of a connection. The connection is asked for them once; a
// panic of its methods later could not be reported.
type signals struct {
	lost    <-chan struct{}
	changed <-chan struct{}
}

func (c foreignCode) signalsOf(connection Connection) (s signals, err error) {
	err = c.call("the connection", func() { s = signals{lost: connection.Lost(), changed: connection.Changed()} })
	return s, err
}

// lossOf returns the connection's reason for its loss; nil if it gives none.
func (c foreignCode) lossOf(connection Connection) (cause error) {
	if err := c.call("the connection", func() { cause = contain.Error(connection.Err()) }); err != nil {
		return err
	}
	return cause
}

// peerOf returns the connection's peer.
func (c foreignCode) peerOf(connection Connection) (peer Peer) {
	_ = c.call("the connection", func() { peer = connection.Peer() }) // after a panic, the peer has no name
	return peer
}

// unread returns for how long the other end has read nothing; see [Unreader].
func (c foreignCode) unread(connection Connection) (unread time.Duration) {
	if able, ok := connection.(Unreader); ok {
		_ = c.do(func() error { unread = able.Unread(); return nil }) // after a panic, it is 0
	}
	return unread
}

// definitionOf returns the definition of an invoker; nil without an error if it has
// none.
func definitionOf(i invoker.Invoker) (definition *invoker.Definition, err error) {
	if i == nil {
		return nil, nil
	}
	if panicked := contain.Call("its method Definition", func() { definition = i.Definition() }); panicked != nil {
		if own, ok := i.(*localInvoker); ok {
			i = own.Invoker
		}
		if contain.IsNil(i) {
			return nil, fmt.Errorf("it is a nil %T", i)
		}
		return nil, fmt.Errorf("%w (it is a %T)", panicked, i)
	}
	return definition, nil
}

// callbacks returns a copy of a call whose callbacks, which belong to the caller, do
// not panic: they run on goroutines of the ensemble and its source.
func (c foreignCode) callbacks(asked *invoker.Call) invoker.Call {
	own := *asked
	own.Progress = containedFunc(c, "the function Progress of the call", asked.Progress)
	own.Log = containedFunc(c, "the function Log of the call", asked.Log)
	own.Person = containedQuestion(c, "the function Person of the call", asked.Person)
	own.Model = containedQuestion(c, "the function Model of the call", asked.Model)
	if asked.Pause != nil {
		own.Pause = func() func() { return c.pause(asked.Pause) }
	}
	return own
}

// containedFunc returns f without its panics; nil if f is nil.
func containedFunc[T any](c foreignCode, what string, f func(T)) func(T) {
	if f == nil {
		return nil
	}
	return func(value T) { _ = c.call(what, func() { f(value) }) }
}

// containedQuestion returns f with its panics as errors; nil if f is nil.
func containedQuestion[Q, A any](c foreignCode, what string, f func(context.Context, *Q) (*A, error)) func(context.Context, *Q) (*A, error) {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, question *Q) (answer *A, err error) {
		if panicked := c.call(what, func() { answer, err = f(ctx, question) }); panicked != nil {
			return nil, panicked
		}
		return answer, contain.Error(err)
	}
}

// pause calls the function Pause of a call.
func (c foreignCode) pause(pause func() (resume func())) func() {
	var resume func()
	_ = c.call("the function Pause of the call", func() { resume = pause() })
	if resume == nil {
		return func() {}
	}
	return func() { _ = c.call("the function that Pause returned", resume) }
}

// guard calls f and turns a panic into an error, and logs its stack. The methods of the
// returned error do not panic; see [contain.Error].
func guard[T any](log *zap.Logger, f func() (T, error)) (value T, err error) {
	panicked := contain.Call("a function of the source", func() { value, err = f() })
	if panicked == nil {
		return value, usable(err)
	}
	foreignCode{log}.logPanic(panicked)
	var none T
	return none, &panicError{panicked.(*contain.Panic).Value}
}

// usable returns err, or a replacement with its text if one of its methods panics.
func usable(err error) error {
	if contain.Usable(err) {
		return err
	}
	if _, ok := contain.As[*invoker.Failure](err); ok {
		return invoker.AsFailure(err)
	}
	return contain.Error(err)
}
