// SPDX-License-Identifier: Apache-2.0

// Package logtail reads a conversation from the end of its log, as far back as its next
// turn needs.
package logtail
