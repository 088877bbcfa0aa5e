// SPDX-License-Identifier: Apache-2.0

// Package bundle exports conversations as lines of JSON, which can be imported into any
// store.
//
// Export writes conversations of any store, and Import reads them back. A bundle has, for
// each conversation, its title, tags and other data on one line, followed by its canisters,
// one on each line and in their documented form. Such bundles can be split and
// concatenated between conversations, with any line-based tools.
package bundle
