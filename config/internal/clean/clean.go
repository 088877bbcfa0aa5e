// SPDX-License-Identifier: Apache-2.0

// Package clean redacts secrets from everything that a server sends.
package clean

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/serverconn"
	"github.com/consort-go/consort/invoker"
)

// Source returns a source whose connections redact secrets from everything that the
// server sends, regardless of the caller: the texts that redact replaces and the secret
// trusted values of a call. redact may be nil; otherwise it may be called concurrently.
// Descriptions of tools, resources and prompts are not redacted. change changes the lists of
// tools; it may be nil. Open fails if a connection
// of inner is not an [ensemble.Pinger].
func Source(inner ensemble.Source, redact func(text string) string, change func(ensemble.Listing) ensemble.Listing) ensemble.Source {
	return &source{Source: inner, redact: redact, change: change}
}

type source struct {
	ensemble.Source
	redact func(text string) string                // may be nil
	change func(ensemble.Listing) ensemble.Listing // may be nil
}

// Spawns implements [ensemble.Spawner].
func (s *source) Spawns() bool {
	spawner, ok := s.Source.(ensemble.Spawner)
	return ok && spawner.Spawns()
}

func (s *source) Open(ctx context.Context) (ensemble.Connection, error) {
	opened, err := s.Source.Open(ctx)
	if err != nil {
		return nil, cleanError(err, s.redact)
	}
	able, ok := opened.(pingable)
	if !ok {
		return nil, errors.Join(fmt.Errorf("config: %T does not implement all methods of a connection to a server", opened), opened.Close(ctx))
	}
	clean := connection{pingable: able, redact: s.redact, change: s.change}
	if full, ok := opened.(ensemble.Library); ok {
		return library{connection: clean, Library: full}, nil
	}
	return clean, nil
}

// pingable has the methods that connections to all kinds of servers have.
type pingable interface {
	ensemble.Connection
	ensemble.Pinger
}

type connection struct {
	pingable
	redact func(text string) string
	change func(ensemble.Listing) ensemble.Listing
}

// Unread implements [ensemble.Unreader].
func (c connection) Unread() time.Duration { return serverconn.Unread(c.pingable) }

// Late implements [ensemble.LateCounter].
func (c connection) Late() int { return serverconn.Late(c.pingable) }

// library is a connection to an MCP server, which has more than tools.
type library struct {
	connection
	ensemble.Library
}

func (c connection) List(ctx context.Context) (ensemble.Listing, error) {
	listing, err := c.pingable.List(ctx)
	if err == nil && c.change != nil {
		listing = c.change(listing)
	}
	for i, listed := range listing.Invokers {
		if listed != nil {
			listing.Invokers[i] = &tool{Invoker: listed, redact: c.redact}
		}
	}
	return listing, cleanError(err, c.redact)
}

func (c connection) Err() error { return cleanError(c.pingable.Err(), c.redact) }

func (c library) Resources(ctx context.Context) ([]ensemble.Resource, error) {
	listed, err := c.Library.Resources(ctx)
	return listed, cleanError(err, c.redact)
}

func (c library) Templates(ctx context.Context) ([]ensemble.Template, error) {
	listed, err := c.Library.Templates(ctx)
	return listed, cleanError(err, c.redact)
}

func (c library) Prompts(ctx context.Context) ([]ensemble.Prompt, error) {
	listed, err := c.Library.Prompts(ctx)
	return listed, cleanError(err, c.redact)
}

func (c library) Read(ctx context.Context, uri string) ([]canister.ResourceContent, error) {
	parts, err := c.Library.Read(ctx, uri)
	clean := redact.Trusted(ctx, c.redact)
	if clean != nil {
		for i := range parts {
			parts[i] = redact.Resource(parts[i], clean)
		}
	}
	return parts, cleanError(err, clean)
}

func (c library) Get(ctx context.Context, name string, arguments map[string]string) (*ensemble.Messages, error) {
	got, err := c.Library.Get(ctx, name, arguments)
	clean := redact.Trusted(ctx, c.redact)
	if clean != nil && got != nil {
		for i := range got.Messages {
			got.Messages[i].Content = redact.Contents(got.Messages[i].Content, clean)
		}
		got.Description, got.Metadata = clean(got.Description), redact.Fields(got.Metadata, clean)
	}
	return got, cleanError(err, clean)
}

func (c library) Complete(ctx context.Context, request *ensemble.CompletionRequest) (*ensemble.Completion, error) {
	found, err := c.Library.Complete(ctx, request)
	clean := redact.Trusted(ctx, c.redact)
	if clean != nil && found != nil {
		for i := range found.Values {
			found.Values[i] = clean(found.Values[i])
		}
	}
	return found, cleanError(err, clean)
}

func (c library) Subscribe(ctx context.Context, uri string) error {
	return cleanError(c.Library.Subscribe(ctx, uri), c.redact)
}

func (c library) Unsubscribe(ctx context.Context, uri string) error {
	return cleanError(c.Library.Unsubscribe(ctx, uri), c.redact)
}

// cleanError redacts secrets from an error and from the [invoker.Failure] in its chain,
// which programs inspect.
func cleanError(err error, clean func(string) string) error {
	if err == nil || clean == nil {
		return err
	}
	var failure *invoker.Failure
	if !errors.As(err, &failure) {
		return redact.Error(err, clean)
	}
	if failure == err {
		return cleanFailure(failure, clean)
	}
	return &failedError{redact.Error(err, clean), cleanFailure(failure, clean)}
}

// failedError is an error whose chain contains a redacted failure instead of the original
// one.
type failedError struct {
	error
	failure *invoker.Failure
}

func (e *failedError) Is(target error) bool { return errors.Is(e.error, target) }

func (e *failedError) As(target any) bool {
	if failure, ok := target.(**invoker.Failure); ok {
		*failure = e.failure
		return true
	}
	return errors.As(e.error, target)
}

type tool struct {
	invoker.Invoker
	redact func(text string) string
}

func (t *tool) Invoke(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
	clean := redact.Trusted(ctx, t.redact)
	if clean == nil {
		return t.Invoker.Invoke(ctx, call)
	}
	output, err := t.Invoker.Invoke(ctx, cleanCall(call, clean))
	if err != nil {
		return invoker.Output{}, cleanFailure(invoker.AsFailure(err), clean)
	}
	output.Content, output.Metadata = redact.Contents(output.Content, clean), redact.Fields(output.Metadata, clean)
	return output, nil
}

// cleanCall returns the call with redaction of everything that the tool sends while it
// runs.
func cleanCall(call *invoker.Call, clean func(string) string) *invoker.Call {
	if call == nil {
		return nil
	}
	own := *call
	if call.Progress != nil {
		own.Progress = func(p invoker.Progress) {
			p.Message, p.Partial = clean(p.Message), redact.Contents(p.Partial, clean)
			call.Progress(p)
		}
	}
	if call.Log != nil {
		own.Log = func(entry invoker.LogEntry) {
			entry.Logger, entry.Data = clean(entry.Logger), redact.JSON(entry.Data, clean)
			call.Log(entry)
		}
	}
	if call.Person != nil {
		own.Person = func(ctx context.Context, question *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
			asked := *question
			asked.Message, asked.URL, asked.Schema = clean(asked.Message), clean(asked.URL), redact.JSON(asked.Schema, clean)
			return call.Person(ctx, &asked)
		}
	}
	if call.Model != nil {
		own.Model = func(ctx context.Context, request *invoker.SampleRequest) (*invoker.SampleResult, error) {
			return call.Model(ctx, cleanSample(request, clean))
		}
	}
	return &own
}

// cleanSample returns a copy of a request to a model, without secrets.
func cleanSample(request *invoker.SampleRequest, clean func(string) string) *invoker.SampleRequest {
	asked := *request
	asked.System = clean(asked.System)
	asked.Stop, asked.Models = cleanTexts(asked.Stop, clean), cleanTexts(asked.Models, clean)
	asked.Tools, asked.Messages = slices.Clone(asked.Tools), slices.Clone(asked.Messages)
	for i := range asked.Tools {
		tool := &asked.Tools[i]
		tool.Title, tool.Description = clean(tool.Title), clean(tool.Description)
		tool.InputSchema, tool.OutputSchema = redact.JSON(tool.InputSchema, clean), redact.JSON(tool.OutputSchema, clean)
		tool.Metadata = redact.Fields(tool.Metadata, clean)
	}
	for i := range asked.Messages {
		message := &asked.Messages[i]
		message.Content = redact.Contents(message.Content, clean)
		message.ToolUses, message.ToolResults = slices.Clone(message.ToolUses), slices.Clone(message.ToolResults)
		for k := range message.ToolUses {
			use := &message.ToolUses[k]
			use.Input, use.Metadata = redact.JSON(use.Input, clean), redact.Fields(use.Metadata, clean)
		}
		for k := range message.ToolResults {
			result := &message.ToolResults[k]
			result.Content, result.Metadata = redact.Contents(result.Content, clean), redact.Fields(result.Metadata, clean)
		}
	}
	return &asked
}

// cleanTexts returns a copy of texts, without secrets.
func cleanTexts(texts []string, clean func(string) string) []string {
	texts = slices.Clone(texts)
	for i, text := range texts {
		texts[i] = clean(text)
	}
	return texts
}

func cleanFailure(failure *invoker.Failure, clean func(string) string) *invoker.Failure {
	told := *failure
	told.Message, told.Cause = clean(failure.Message), redact.Error(failure.Cause, clean)
	told.Content, told.Metadata = redact.Contents(failure.Content, clean), redact.Fields(failure.Metadata, clean)
	return &told
}
