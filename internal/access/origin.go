// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"

	"github.com/consort-go/consort/invoker/telemetry"
)

// Origin says on whose behalf work is done: two pieces of work with the same origin may
// know of each other. The zero value is a program's own work.
type Origin struct {
	// Client is the key of the client's limits, see [Client], or a conversation.
	Client string
	// Session identifies the session of a client without identity; otherwise empty.
	Session string
}

type originKey struct{}

// WithOrigin returns a context for work on behalf of origin.
func WithOrigin(ctx context.Context, origin Origin) context.Context {
	return context.WithValue(ctx, originKey{}, origin)
}

// OriginFrom returns the origin that [WithOrigin] attached, or else the conversation
// that ctx works for.
func OriginFrom(ctx context.Context) Origin {
	if origin, ok := ctx.Value(originKey{}).(Origin); ok {
		return origin
	}
	if id := telemetry.Conversation(ctx); id != "" {
		return Origin{Client: "conversation " + id}
	}
	return Origin{}
}
