// SPDX-License-Identifier: Apache-2.0

// Package observed contains only tests. They check the observable output of a running
// conversation: that the metrics in the dashboard and the alert rules of
// docs/observability exist, that the spans of a turn form one tree across processes and
// transports, and that the trace in the documentation matches the real output.
//
// Expressions are parsed by the parser of Prometheus itself, in the oldest version that
// builds with the other modules of this repository. It adds four small modules to the
// test dependencies and upgrades only multierr, by a minor version. A parser of our own
// would have its own errors about PromQL.
package observed
