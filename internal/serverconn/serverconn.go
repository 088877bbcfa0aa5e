// SPDX-License-Identifier: Apache-2.0

// Package serverconn helps to wrap connections to servers.
package serverconn

import (
	"time"

	"github.com/consort-go/consort/ensemble"
)

// Server has the methods of each connection to an MCP server.
type Server interface {
	ensemble.Connection
	ensemble.Pinger
	ensemble.Library
}

// Wrapper is the base of a wrapper: it passes on all methods, also the optional ones, which
// embedding the interface would hide.
type Wrapper struct{ Server }

// Unread implements [ensemble.Unreader].
func (w Wrapper) Unread() time.Duration { return Unread(w.Server) }

// Late implements [ensemble.LateCounter].
func (w Wrapper) Late() int { return Late(w.Server) }

// Unread calls Unread of a connection; 0 if it does not implement [ensemble.Unreader].
func Unread(connection ensemble.Connection) time.Duration {
	if able, ok := connection.(ensemble.Unreader); ok {
		return able.Unread()
	}
	return 0
}

// Late calls Late of a connection; 0 if it does not implement [ensemble.LateCounter].
func Late(connection ensemble.Connection) int {
	if able, ok := connection.(ensemble.LateCounter); ok {
		return able.Late()
	}
	return 0
}
