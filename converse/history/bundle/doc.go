// SPDX-License-Identifier: Apache-2.0

// Package bundle writes conversations down: as lines of JSON, which any store takes
// up again, and as Markdown or HTML, to read.
//
// Export writes some conversations of a store, of whatever kind, and Import takes
// up what Export has written. A bundle of lines is each conversation's About on a
// line of its own, followed by its canisters, one on each line and in their
// documented form. Such bundles can be cut apart and put together between two
// conversations, with the tools that work on lines.
//
// What people, models and tools have said stands in Markdown and HTML as text
// and never is markup, a script or something to load.
package bundle
