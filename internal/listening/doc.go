// SPDX-License-Identifier: Apache-2.0

// Package listening has what every listener of this module needs against
// clients that connect and stay silent: bounds for the number of connections
// ([Limit]), deadlines for HTTP requests ([NewServer], [Refuse]), and an end
// that does not wait for such clients ([Server.Shutdown]).
package listening
