// SPDX-License-Identifier: Apache-2.0

// Package directcall calls one tool for a person, without a model: what consort call does.
package directcall

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/invoker/telemetry"
)

// Invoke calls a tool of an ensemble, by its own name or its name in a roster, and records the call in the audit trail. Its error is an
// *invoker.Failure or a usage error.
func Invoke(ctx context.Context, e *ensemble.Ensemble, name string, call *invoker.Call, trail *audit.Trail) (output invoker.Output, err error) {
	ctx, span := telemetry.StartTool(ctx, telemetry.ToolCall{
		Name: ensemble.NameFor(e.Name(), name), Ensemble: e.Name(), Call: call.ID, Arguments: call.Arguments,
	})
	defer func() { span.End(output.Content, faultOf(err)) }()
	record := audit.Record{Time: time.Now(), Asker: "program", Invocation: call.ID, Ensemble: e.Name(), Tool: name, Arguments: call.Arguments}
	tool, err := toolNamed(ctx, e, name)
	var usage *exit.Error
	if errors.As(err, &usage) {
		return invoker.Output{}, err
	}
	if err == nil {
		record.Tool = tool.Definition().Name
		began := time.Now()
		output, err = tool.Invoke(ctx, call)
		record.Duration = time.Since(began)
	}
	content, _ := Content(output, err)
	record.Ended(content, err)
	trail.Keep(ctx, record)
	return output, err
}

// Ensemble returns an ensemble of a roster by its name. The error says which ones there are
// in the configuration file.
func Ensemble(roster *ensemble.Roster, name, file string) (*ensemble.Ensemble, error) {
	if e, ok := roster.Ensemble(name); ok {
		return e, nil
	}
	var names []string
	for _, e := range roster.Ensembles() {
		names = append(names, e.Name())
	}
	if len(names) == 0 {
		return nil, exit.Usagef("there is no ensemble %q: %s has no servers; add one as a table such as [mcp.%s]", name, file, name)
	}
	return nil, exit.Usagef("there is no ensemble %q; %s has %s", name, file, strings.Join(names, ", "))
}

// faultOf returns the telemetry fault of a failed call. A usage error counts as
// [invoker.ToolNotFound].
func faultOf(err error) *telemetry.Fault {
	if usage := (*exit.Error)(nil); errors.As(err, &usage) {
		err = invoker.Failf(invoker.ToolNotFound, "%w", err)
	}
	return telemetry.FaultOf(invoker.AsFailure(err))
}

// toolNamed finds a tool by its own name or by its name in the roster.
func toolNamed(ctx context.Context, e *ensemble.Ensemble, name string) (*ensemble.Tool, error) {
	tools, err := e.Tools(ctx)
	switch {
	case errors.Is(err, ensemble.ErrNeedsLogin):
		return nil, invoker.Failf(invoker.Unauthorized, "%w", err)
	case err != nil:
		return nil, invoker.Failf(invoker.Unavailable, "%w", err)
	}
	for _, tool := range tools {
		if tool.Definition().Name == name || tool.Name() == name {
			return tool, nil
		}
	}
	return nil, noTool(ctx, e, name)
}

// noTool returns the error for an unknown tool, with the most similar names.
func noTool(ctx context.Context, e *ensemble.Ensemble, name string) error {
	for _, a := range e.Snapshot().Aside {
		if a.Tool == name {
			return exit.Usagef("the tool %q of %q is set aside: %s", name, e.Name(), a.Reason)
		}
	}
	advice := "consort tools lists them"
	if roster, err := ensemble.NewRoster(e); err == nil {
		if catalog, err := roster.Catalog(ctx); err == nil {
			var names []string
			for _, near := range catalog.Nearest(ensemble.NameFor(e.Name(), name), 3) {
				tool, _ := catalog.Find(near)
				names = append(names, tool.Definition().Name)
			}
			if len(names) > 0 {
				advice = "did you mean " + strings.Join(names, " or ") + "?"
			}
		}
	}
	return exit.Usagef("there is no tool %q in %q; %s", name, e.Name(), advice)
}

// Content returns the content of a call that succeeded or failed, and its metadata.
func Content(output invoker.Output, err error) ([]canister.Content, canister.Fields) {
	failure := invoker.AsFailure(err)
	switch {
	case failure == nil:
		return output.Content, output.Metadata
	case len(failure.Content) > 0:
		return failure.Content, failure.Metadata
	}
	return canister.Texts(failure.Message), failure.Metadata
}
