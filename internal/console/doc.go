// SPDX-License-Identifier: Apache-2.0

// Package console serves pages on which a person watches stored conversations and acts on
// them: what runs, what waits for a person, what was said, what it cost, and what the tools
// are.
//
// Pages are trees of HTML nodes that Go functions build and that package
// golang.org/x/net/html writes, so every text and attribute is escaped: a page has no other
// way to contain what a tool, a model or a user wrote. The scripts only keep open pages
// current; each page and each form works without them.
package console
