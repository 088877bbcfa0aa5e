// SPDX-License-Identifier: Apache-2.0

// Package observed has no code, only the tests of what can be seen of a running
// conversation from outside: that the dashboard and the alert rules of
// docs/observability ask for metrics that are really there, that the spans of a
// turn make one tree across processes and transports, and that the trace that
// the documentation shows is the one that comes out.
package observed
