// SPDX-License-Identifier: Apache-2.0

// Package callers is what servers know of those who call them, over whatever
// protocol: which bearer tokens are good ([Check]), whose a request is
// ([Identity], [Address]), and how much of it one client may ask for ([Clients]).
package callers
