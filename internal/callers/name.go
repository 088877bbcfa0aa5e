// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"context"
	"iter"
)

type nameKey struct{}

// WithName returns a context that carries the name of a client, if one of the static
// tokens was given that name. Names that [Check] generates are left out.
func WithName(ctx context.Context, name string, static iter.Seq[Token]) context.Context {
	for token := range static {
		if name != "" && token.Name == name {
			return context.WithValue(ctx, nameKey{}, name)
		}
	}
	return ctx
}

// NameFrom returns the name that [WithName] attached; empty if there is none.
func NameFrom(ctx context.Context) string {
	name, _ := ctx.Value(nameKey{}).(string)
	return name
}
