// SPDX-License-Identifier: Apache-2.0

package access

import "context"

type nameKey struct{}

// WithName returns a context that carries the name of a client, if one of the tokens was
// given that name. Names that [Tokens.Check] generates are left out.
func (t Tokens) WithName(ctx context.Context, name string) context.Context {
	for i := range t.known {
		if name != "" && t.known[i].token.Name == name {
			return context.WithValue(ctx, nameKey{}, name)
		}
	}
	return ctx
}

// NameFrom returns the name that [Tokens.WithName] attached; empty if there is none.
func NameFrom(ctx context.Context) string {
	name, _ := ctx.Value(nameKey{}).(string)
	return name
}
