// SPDX-License-Identifier: Apache-2.0

// Package identityconn calls a server over a connection for each identity, so that the
// server sees the tokens of the one who calls.
//
// One connection is shared: it lists tools, resources and prompts for all. Calls, and
// requests for a resource, a prompt or a completion, use the connection of the identity
// that they are made for. It is opened when it is first needed and closed when it was not
// used for a while.
package identityconn
