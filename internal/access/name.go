// SPDX-License-Identifier: Apache-2.0

package access

import "context"

type nameKey struct{}

// name is the name of a client.
type name struct {
	text   string
	isUser bool
}

// WithName returns a context that carries the name of a client; ctx itself if the name is
// empty. The name is an attribute of measurements, so it must be one of a few.
func WithName(ctx context.Context, text string) context.Context {
	if text == "" {
		return ctx
	}
	return context.WithValue(ctx, nameKey{}, &name{text: text})
}

// WithUser is like [WithName] for the name of a user. There may be many users, so their
// names are not attributes of measurements.
func WithUser(ctx context.Context, text string) context.Context {
	if text == "" {
		return ctx
	}
	return context.WithValue(ctx, nameKey{}, &name{text, true})
}

// NameFrom returns the name that [WithName] or [WithUser] attached; or else "".
func NameFrom(ctx context.Context) string {
	if n, ok := ctx.Value(nameKey{}).(*name); ok {
		return n.text
	}
	return ""
}

// MeasuredFrom returns the name for measurements, which [WithName] attached, or else "".
func MeasuredFrom(ctx context.Context) string {
	if n, ok := ctx.Value(nameKey{}).(*name); ok && !n.isUser {
		return n.text
	}
	return ""
}
