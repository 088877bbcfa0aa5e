// SPDX-License-Identifier: Apache-2.0

// Package compaction shortens a history for a model. [Find] plans a compaction, a [Mark]
// in the metadata of a document records it, and a [View] is the history as the marks
// say. Everything here is computed from canisters alone: the package knows no
// conversation, model or log.
package compaction
