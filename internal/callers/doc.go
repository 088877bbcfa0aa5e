// SPDX-License-Identifier: Apache-2.0

// Package callers identifies and limits the clients of servers, for any protocol: it
// checks bearer tokens ([Check]), determines the client of a request ([Identity],
// [Address]), and limits the requests of each client ([Clients]).
package callers
