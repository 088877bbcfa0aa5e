// SPDX-License-Identifier: Apache-2.0

// Package observed contains only tests. They check the observable output of a running
// conversation: that the metrics in the dashboard and the alert rules of
// docs/observability exist, that the spans of a turn form one tree across processes and
// transports, and that the trace in the documentation matches the real output.
//
// Expressions are parsed by the parser of Prometheus itself: a parser of our own would
// have its own errors about PromQL. Prometheus requires more than a hundred modules, so
// this package is a module of its own and the library does not require them. Run its
// tests in its folder.
package observed
