// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/consort-go/consort/converse/internal/outage"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
)

// ModelChain is a [Model] that asks several models, one after another; see [Chain].
type ModelChain struct {
	links []*link
	err   error // why it cannot be used
}

var (
	_ Binder    = (*ModelChain)(nil)
	_ Screener  = (*ModelChain)(nil)
	_ Limiter   = (*ModelChain)(nil)
	_ Describer = (*ModelChain)(nil)
	_ io.Closer = (*ModelChain)(nil)
)

// link is one model of a chain.
type link struct {
	model    Model
	info     telemetry.ModelInfo
	position int            // 0 for the first model
	name     string         // for people; differs from the names of the other links
	outage   *outage.Outage // shared with the bound forms of the chain
}

// Chain returns a model that asks the first of the models, and the next one whenever a
// model is unavailable ([ModelError.Unavailable]). Every move is a [Fallback] event. An
// exchange does not move once a model has yielded a [Delta], so that no text is shown
// twice, and a reply comes from one model alone. Nested chains are flattened, and each
// model keeps its own options.
//
// A model that was unavailable moves to the end of the order for one minute. If it fails
// again after that, the time doubles, up to 15 minutes; an answer resets it. All
// conversations that use the chain share this state.
//
// A tool is offered only if every model accepts it. The number of tools is limited to the
// smallest limit of the models. If every model fails, the error of the last one is
// returned, with the errors of the others in its message.
//
// Without models, or if one is nil, every exchange returns an error.
func Chain(models ...Model) *ModelChain {
	c := &ModelChain{}
	if len(models) == 0 {
		c.err = errors.New("converse: Chain needs at least one model")
	}
	for i, model := range models {
		inner, ok := model.(*ModelChain)
		info, err := telemetry.ModelInfo{}, error(nil)
		switch {
		case model == nil, ok && inner == nil:
			err = fmt.Errorf("converse: model %d of the chain is nil", i+1)
		case ok:
			err = inner.err
		default:
			info, err = describe(model)
		}
		switch {
		case err != nil:
			c.err = errors.Join(c.err, err)
		case ok:
			for _, l := range inner.links {
				c.add(l.model, l.info, l.outage)
			}
		default:
			c.add(model, info, &outage.Outage{})
		}
	}
	return c
}

// add adds a model.
func (c *ModelChain) add(model Model, info telemetry.ModelInfo, o *outage.Outage) {
	l := &link{model: model, info: info, position: len(c.links), name: info.Name, outage: o}
	taken := func(other *link) bool { return other.name == l.name }
	if slices.ContainsFunc(c.links, taken) && info.Address != "" {
		l.name += " at " + info.Address
	}
	if l.name == "" || slices.ContainsFunc(c.links, taken) {
		l.name = fmt.Sprintf("model %d", l.position+1)
	}
	c.links = append(c.links, l)
}

// Exchange asks the models; see [Chain].
func (c *ModelChain) Exchange(ctx context.Context, request *Request) iter.Seq2[ModelEvent, error] {
	return func(yield func(ModelEvent, error) bool) {
		c.walk(ctx, func(l *link) iter.Seq2[ModelEvent, error] { return l.model.Exchange(ctx, request) }, yield)
	}
}

// walk asks the models, each with ask, until one answers or fails for another reason
// than being unavailable, and yields the events.
func (c *ModelChain) walk(ctx context.Context, ask func(*link) iter.Seq2[ModelEvent, error], yield func(ModelEvent, error) bool) {
	if c.err != nil {
		yield(nil, c.err)
		return
	}
	order := c.order()
	var failures chainFailures
	for i, l := range order {
		err, final := l.pass(ask(l), yield)
		if err == nil {
			return
		}
		failed, ok := errors.AsType[*ModelError](err)
		if final || !ok || ctx.Err() != nil || !failed.Unavailable() {
			yield(nil, failures.explain(err))
			return
		}
		l.outage.Begin()
		if i+1 == len(order) {
			yield(nil, failures.explain(err))
			return
		}
		failures.add(l.name, failed)
		if !yield(Fallback{From: l.name, To: order[i+1].name, Err: err}, nil) {
			return
		}
	}
}

// pass passes on the events of an exchange. It returns the error that ended the exchange,
// and whether a delta was passed on before. The error is nil after a reply, and if the
// caller has left.
func (l *link) pass(events iter.Seq2[ModelEvent, error], yield func(ModelEvent, error) bool) (failed error, spoken bool) {
	for event, err := range events {
		if err != nil {
			return err, spoken
		}
		switch e := event.(type) {
		case Delta:
			spoken = true
		case Reply:
			if e.Message.Model == "" {
				e.Message.Model = l.info.Name
				event = e
			}
			l.outage.End()
		}
		if !yield(event, nil) {
			return nil, spoken
		}
	}
	return nil, spoken
}

// order returns the models in the order of an exchange: a model that was unavailable a
// short time ago comes last.
func (c *ModelChain) order() []*link {
	now, late := time.Now(), []*link(nil)
	order := make([]*link, 0, len(c.links))
	for _, l := range c.links {
		if l.outage.Lasts(now) {
			late = append(late, l)
		} else {
			order = append(order, l)
		}
	}
	return append(order, late...)
}

// chainFailures are the failures of the models that were asked first.
type chainFailures struct {
	told      string
	retryable bool
}

func (f *chainFailures) add(name string, err *ModelError) {
	f.told += fmt.Sprintf(" [before that, %s failed: %s]", name, err.Message)
	f.retryable = f.retryable || err.Retryable
}

// explain returns the error of the last model with the failures of the others. The
// exchange can succeed later if one of the models can.
func (f *chainFailures) explain(err error) error {
	failed, ok := errors.AsType[*ModelError](err)
	switch {
	case f.told == "":
		return err
	case !ok:
		return fmt.Errorf("%w%s", err, f.told)
	}
	told := *failed
	told.Message += f.told
	told.Retryable = told.Retryable || f.retryable && failed.Code != CodeContextLength && failed.Ran == ""
	told.Err = err
	return &told
}

// Bind returns the chain for one conversation, with the models bound to it.
func (c *ModelChain) Bind() Model {
	bound := &ModelChain{err: c.err}
	for _, l := range c.links {
		one := *l
		if binder, ok := l.model.(Binder); ok {
			one.model = binder.Bind()
		}
		bound.links = append(bound.links, &one)
	}
	return bound
}

// Screen returns why one of the models cannot be offered a tool.
func (c *ModelChain) Screen(definition *invoker.Definition) error {
	for _, l := range c.links {
		screener, ok := l.model.(Screener)
		if !ok {
			continue
		}
		if err := screener.Screen(definition); err != nil {
			return l.about(err)
		}
	}
	return nil
}

// about adds to an error which model it is about, unless it is the first one.
func (l *link) about(err error) error {
	if l.position == 0 {
		return err
	}
	return fmt.Errorf("the fallback %s: %w", l.name, err)
}

// MaxTools returns the smallest limit of the models.
func (c *ModelChain) MaxTools() int {
	most := 0
	for _, l := range c.links {
		if limiter, ok := l.model.(Limiter); ok {
			most = int(least(int64(most), int64(limiter.MaxTools())))
		}
	}
	return most
}

// Shortened returns the clause of the first model that leaves out a part of a tool.
func (c *ModelChain) Shortened(definition *invoker.Definition) string {
	for _, l := range c.links {
		if limiter, ok := l.model.(Limiter); ok {
			if clause := limiter.Shortened(definition); clause != "" {
				return l.about(errors.New(clause)).Error()
			}
		}
	}
	return ""
}

// Describe returns the description of the first model. Spans and metrics of an exchange
// describe the model that was asked.
func (c *ModelChain) Describe() telemetry.ModelInfo {
	if len(c.links) == 0 {
		return telemetry.ModelInfo{}
	}
	return c.links[0].info
}

// Close closes the models that have a method Close.
func (c *ModelChain) Close() error {
	var failed []error
	for _, l := range c.links {
		if closer, ok := l.model.(io.Closer); ok {
			failed = append(failed, closer.Close())
		}
	}
	return errors.Join(failed...)
}

// names returns the names of the models in requests.
func names(model Model, info telemetry.ModelInfo) []string {
	chain, ok := model.(*ModelChain)
	if !ok {
		return []string{info.Name}
	}
	var names []string
	for _, l := range chain.links {
		names = append(names, l.info.Name)
	}
	return names
}

// Unavailable reports whether the model is the reason for the failure, rather than the
// request, the key or the answer, so that another model can answer the same request:
//
//   - it could not be reached, or did not begin to answer in time;
//   - its answer broke off;
//   - it or its server is overloaded or failed: status 408, 429 and those from 500;
//   - its quota or credit is used up: status 402, or a code that says so.
//
// It is false for any other status from 400 to 499, requests that are too long, unless the status
// is 429 because of a limit of tokens per minute, filtered answers, certificates that cannot be verified, and
// if the server has run a tool. The table in docs/models.md lists all cases.
func (e *ModelError) Unavailable() bool {
	switch {
	case e.Ran != "", e.Code == CodeContextLength && e.Status != http.StatusTooManyRequests, e.Code == "content_filter":
		return false
	case e.Code == CodeQuota, e.Status == http.StatusPaymentRequired, e.Status == http.StatusRequestTimeout, e.Status == http.StatusTooManyRequests:
		return true
	case e.Status >= http.StatusBadRequest:
		return e.Status >= http.StatusInternalServerError
	}
	return e.Retryable // the server did not respond, or the answer broke off
}
