// SPDX-License-Identifier: Apache-2.0

// Package bundle exports conversations as lines of JSON, which can be imported into any
// store, and as Markdown or HTML for reading.
//
// Export writes conversations of any store, and Import reads them back. A bundle of
// lines has, for each conversation, its title, tags and other data on one line, followed by its canisters,
// one on each line and in their documented form. Such bundles can be split and
// concatenated between conversations, with any line-based tools.
//
// Markdown and HTML contain the words of people, models and tools as text, never as
// markup, scripts or references to external resources.
package bundle
