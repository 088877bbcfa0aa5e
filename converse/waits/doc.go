// SPDX-License-Identifier: Apache-2.0

// Package waits lists the open waits of conversations and answers them, from any
// process: approvals, questions of tools, and outcomes that only a person can find out.
package waits
