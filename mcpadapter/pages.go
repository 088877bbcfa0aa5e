// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/subprocess"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Limits of one listing.
const (
	maxPages    = 1000
	maxListed   = 10_000
	maxMessages = 4 // a list may have as many bytes as this many messages
)

// everyPage requests all pages of a list (MCP 2025-11-25, server/utilities/pagination).
// next returns the entries of a page and the cursor of the following page, which is
// empty after the last.
func (r *requester) everyPage(ctx context.Context, what string, next func(ctx context.Context, cursor string) ([]json.RawMessage, string, error)) error {
	failed := func(err error) error {
		return fmt.Errorf("server %q: listing %s: %w", r.options.Server, what, err)
	}
	most, size, cursor, seen := maxMessages*r.options.MaxMessage, 0, "", make(map[string]bool)
	for range maxPages {
		page, following, err := next(ctx, cursor)
		size += len(following) // they are all kept
		for _, one := range page {
			size += len(one)
		}
		switch {
		case err != nil:
			return failed(err)
		case size > most:
			return failed(invoker.Failf(invoker.Protocol, "they have more than %d bytes", most))
		case following == "":
			return nil
		case seen[following]:
			return failed(invoker.Failf(invoker.Protocol, "the list does not end: a cursor was repeated"))
		}
		cursor = following
		seen[cursor] = true
	}
	return failed(invoker.Failf(invoker.Protocol, "the list has more than %d pages", maxPages))
}

// everyOne returns the list in the named member of the answers. It leaves out invalid
// entries and stops after the page on which the list exceeds maxListed: the ensemble
// enforces its own limit. If the server does not know the method, the list is empty: not
// every server with resources has templates.
func everyOne[T any](ctx context.Context, r *requester, what, member string, ask func(ctx context.Context, cursor string) error, read func(json.RawMessage) (T, bool)) ([]T, error) {
	var all []T
	err := r.everyPage(ctx, what, func(ctx context.Context, cursor string) (page []json.RawMessage, following string, err error) {
		var answer map[string]json.RawMessage
		err = r.shared(ctx, telemetry.Call{}, &answer, `{"`+member+`":[]}`, func(ctx context.Context) error { return ask(ctx, cursor) })
		if err != nil {
			return nil, "", err
		}
		if unreadable := errors.Join(decodeMember(answer, member, &page), decodeMember(answer, "nextCursor", &following)); unreadable != nil {
			return nil, "", invoker.Failf(invoker.Protocol, "the list cannot be read: %w", unreadable)
		}
		for _, raw := range page {
			if one, ok := read(raw); ok {
				all = append(all, one)
			} else {
				logevent.Log(ctx, r.log, zapcore.WarnLevel, "invalid descriptions of the server were omitted", logevent.DescriptionRefused, zap.String("list", what), zap.String("description", subprocess.CleanLine(textcut.Bytes(string(raw), wire.MaxQuoted))))
			}
		}
		if len(all) > maxListed {
			following = ""
		}
		return page, following, nil
	})
	return all, notThere(err)
}

// decodeMember decodes a member if it is present.
func decodeMember(m map[string]json.RawMessage, name string, value any) error {
	if m[name] == nil {
		return nil
	}
	return json.Unmarshal(m[name], value)
}

// notThere turns the error for an unknown method into nil, an empty list.
func notThere(err error) error {
	var rpc *jsonrpc.Error
	if errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeMethodNotFound {
		return nil
	}
	return err
}
