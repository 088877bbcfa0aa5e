// SPDX-License-Identifier: Apache-2.0

package access

import "context"

type identityKey struct{}

// WithIdentity returns a context that carries the identity of a client; see [Identity].
func WithIdentity(ctx context.Context, identity string) context.Context {
	return context.WithValue(ctx, identityKey{}, identity)
}

// IdentityFrom returns the identity that [WithIdentity] attached, or an empty string.
func IdentityFrom(ctx context.Context) string {
	identity, _ := ctx.Value(identityKey{}).(string)
	return identity
}
