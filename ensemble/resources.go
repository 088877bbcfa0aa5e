// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

// Resources returns the resources that the ensemble offers, in the order of the
// listing, and those that were set aside; none if the connection does not implement
// [Library]. It connects if needed. It lists the resources at first use, and again when
// the connection says that they have changed, within Options.ConnectTimeout; if that
// fails, the old list stays valid and listing is retried after a while. An ensemble that was
// disconnected because it was idle (Options.IdleDisconnect) is not reconnected for a list
// that was valid then.
func (e *Ensemble) Resources(ctx context.Context) ([]Resource, []Aside, error) {
	return copied(e.lists.resources.list(ctx))
}

// Templates returns the resource templates, as [Ensemble.Resources] does.
func (e *Ensemble) Templates(ctx context.Context) ([]Template, []Aside, error) {
	return copied(e.lists.templates.list(ctx))
}

// Prompts returns the prompts, as [Ensemble.Resources] does.
func (e *Ensemble) Prompts(ctx context.Context) ([]Prompt, []Aside, error) {
	return copied(e.lists.prompts.list(ctx))
}

func copied[T any](list items[T], err error) ([]T, []Aside, error) {
	return slices.Clone(list.found), slices.Clone(list.aside), err
}

// ReadResource returns the contents of a resource, which may be several parts. It need
// not be listed. ReadResource connects if needed and has the time limits of a call. If
// the connection is lost, the request is repeated over a new one. The error is an
// [*invoker.Failure]. In addition to the failures of the source itself, these are:
//
//   - NOT_FOUND: the connection does not implement [Library], or Options.Allow or Deny
//     exclude the resource.
//   - UNAUTHORIZED: the server needs a login ([ErrNeedsLogin]), or a trusted value of
//     Options.Needs is missing.
//   - UNAVAILABLE, TIMEOUT and CANCELED, as of [Tool.Invoke].
//   - EXECUTION_FAILED: the source panicked.
//
// The same holds for GetPrompt and Complete.
func (e *Ensemble) ReadResource(ctx context.Context, uri string) ([]canister.ResourceContent, error) {
	return requestTrusted(ctx, e, "reading a resource", mayReach(uri), func(ctx context.Context, library Library) ([]canister.ResourceContent, error) {
		return library.Read(ctx, uri)
	})
}

// requestTrusted makes a request that needs the trusted values of Options.Needs, and
// fails with UNAUTHORIZED without them.
func requestTrusted[T any](ctx context.Context, e *Ensemble, name string, allowed func(*Ensemble) error, ask func(context.Context, Library) (T, error)) (T, error) {
	trusted := func(e *Ensemble) error {
		err := allowed(e)
		for _, needed := range e.options.Needs {
			if _, ok := invoker.TrustedValue(ctx, needed); !ok && err == nil {
				err = invoker.Failf(invoker.Unauthorized, "%q needs the trusted value %q, which is missing.", e.name, needed)
			}
		}
		return err
	}
	return request(ctx, e, name, trusted, func(ctx context.Context, _ *session, library Library) (T, error) { return ask(ctx, library) })
}

// GetPrompt returns the messages of the prompt with this name, which is the ensemble's
// own.
func (e *Ensemble) GetPrompt(ctx context.Context, name string, arguments map[string]string) (*Messages, error) {
	messages, err := requestTrusted(ctx, e, "getting a prompt", mayUse("prompt", name), func(ctx context.Context, library Library) (*Messages, error) {
		return library.Get(ctx, name, arguments)
	})
	if err == nil && messages == nil {
		return nil, invoker.Failf(invoker.Protocol, "%q answered with no prompt.", e.name)
	}
	return messages, err
}

// maxValues is the maximum number of values in one completion (MCP 2025-11-25,
// server/utilities/completion).
const maxValues = 100

// Complete proposes values for an argument of a prompt or a variable of a template, at
// most 100.
func (e *Ensemble) Complete(ctx context.Context, asked *CompletionRequest) (*Completion, error) {
	if asked == nil || (asked.Prompt == "") == (asked.Template == "") {
		return nil, invoker.Failf(invoker.InvalidArguments, "A completion needs the name of a prompt or a template, and not both.")
	}
	allowed := mayUse("prompt or template", asked.Prompt+asked.Template)
	found, err := requestTrusted(ctx, e, "completing an argument", allowed, func(ctx context.Context, library Library) (*Completion, error) {
		return library.Complete(ctx, asked)
	})
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return &Completion{}, nil
	case len(found.Values) > maxValues:
		most := *found
		most.Values, most.Total, most.More = slices.Clone(found.Values[:maxValues]), max(found.Total, len(found.Values)), true
		return &most, nil
	}
	return found, nil
}
