// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"errors"
	"fmt"

	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
)

// contained calls code of a source, or of the program. It turns a panic into an error,
// and logs it with its stack.
func (e *Ensemble) contained(what string, f func()) error {
	err := contain.Call(what, f)
	if err != nil {
		e.logPanic(err)
	}
	return err
}

// logPanic logs the error of a contained call.
func (e *Ensemble) logPanic(err error) {
	logPanic(e.log, err)
}

func logPanic(log *zap.Logger, err error) {
	var panicked *contain.Panic
	if errors.As(err, &panicked) {
		log.Error("code of a source or of the program panicked", event.SourcePanicked, zap.Error(err), zap.ByteString("stack", panicked.Stack))
	}
}

// signals are the channels of a connection. The connection is asked for them once; a
// panic of its methods later could not be reported.
type signals struct {
	lost    <-chan struct{}
	changed <-chan struct{}
}

func (e *Ensemble) signalsOf(connection Connection) (s signals, err error) {
	err = e.contained("the connection", func() { s = signals{lost: connection.Lost(), changed: connection.Changed()} })
	return s, err
}

// causeOfLoss returns the connection's reason for its loss; nil if it gives none.
func (e *Ensemble) causeOfLoss(connection Connection) (cause error) {
	if err := e.contained("the connection", func() { cause = contain.Error(connection.Err()) }); err != nil {
		return err
	}
	return cause
}

// peerOf returns the connection's peer.
func (e *Ensemble) peerOf(connection Connection) (peer Peer) {
	_ = e.contained("the connection", func() { peer = connection.Peer() }) // after a panic, the peer has no name
	return peer
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
func (e *Ensemble) callbacks(asked *invoker.Call) invoker.Call {
	own := *asked
	if asked.Progress != nil {
		own.Progress = func(p invoker.Progress) {
			_ = e.contained("the function Progress of the call", func() { asked.Progress(p) })
		}
	}
	if asked.Log != nil {
		own.Log = func(entry invoker.LogEntry) {
			_ = e.contained("the function Log of the call", func() { asked.Log(entry) })
		}
	}
	if asked.Pause != nil {
		own.Pause = func() func() { return e.pause(asked.Pause) }
	}
	if asked.Person != nil {
		own.Person = func(ctx context.Context, question *invoker.ElicitRequest) (result *invoker.ElicitResult, err error) {
			if panicked := e.contained("the function Person of the call", func() { result, err = asked.Person(ctx, question) }); panicked != nil {
				return nil, panicked
			}
			return result, contain.Error(err)
		}
	}
	if asked.Model != nil {
		own.Model = func(ctx context.Context, request *invoker.SampleRequest) (result *invoker.SampleResult, err error) {
			if panicked := e.contained("the function Model of the call", func() { result, err = asked.Model(ctx, request) }); panicked != nil {
				return nil, panicked
			}
			return result, contain.Error(err)
		}
	}
	return own
}

// pause calls the function Pause of a call.
func (e *Ensemble) pause(pause func() (resume func())) func() {
	var resume func()
	_ = e.contained("the function Pause of the call", func() { resume = pause() })
	if resume == nil {
		return func() {}
	}
	return func() { _ = e.contained("the function that Pause returned", resume) }
}
