// SPDX-License-Identifier: Apache-2.0

// Package listening protects listeners against clients that connect and stay silent: it
// limits the number of connections ([Limit]), sets deadlines for HTTP requests
// ([NewServer], [Refuse]), and shuts down without waiting for such clients
// ([Server.Shutdown]).
package listening
