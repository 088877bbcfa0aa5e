// SPDX-License-Identifier: Apache-2.0

package access

import "context"

type nameKey struct{}

// WithName returns a context that carries the name of a client; ctx itself if the name is
// empty. The name is an attribute of measurements, so it must be one of a few.
func WithName(ctx context.Context, name string) context.Context {
	if name == "" {
		return ctx
	}
	return context.WithValue(ctx, nameKey{}, name)
}

// WithName is like the function, but only for names that one of the tokens was given.
// Names that [Tokens.Check] generates are left out.
func (t Tokens) WithName(ctx context.Context, name string) context.Context {
	for i := range t.known {
		if t.known[i].token.Name == name {
			return WithName(ctx, name)
		}
	}
	return ctx
}

// NameFrom returns the name that [WithName] attached; empty if there is none.
func NameFrom(ctx context.Context) string {
	name, _ := ctx.Value(nameKey{}).(string)
	return name
}
