// SPDX-License-Identifier: Apache-2.0

// Package observed has no code, only the tests of what can be seen of a running
// conversation from outside: that the dashboard and the alert rules of
// docs/observability ask for metrics that are really there, that the spans of a
// turn make one tree across processes and transports, and that the trace that
// the documentation shows is the one that comes out.
//
// Expressions are read by the parser of Prometheus itself, in the oldest version
// that builds with the modules that are here anyway: that adds four small modules
// to those of tests and raises multierr alone, by a minor version, while a parser of
// our own would be wrong about PromQL in ways of its own.
package observed
