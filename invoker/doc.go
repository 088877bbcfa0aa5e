// SPDX-License-Identifier: Apache-2.0

// Package invoker makes callable tools: a definition that a model can read and
// a function that runs.
package invoker
