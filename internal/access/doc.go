// SPDX-License-Identifier: Apache-2.0

// Package access identifies and limits the clients of servers, for any protocol: it
// checks bearer tokens ([Tokens]), determines the client of a request ([Identity],
// [Address]), and limits the requests of each client ([Clients]).
package access
