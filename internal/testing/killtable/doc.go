// SPDX-License-Identifier: Apache-2.0

// Package killtable kills a conversation at every step, with the signal that cannot be
// caught, and checks the outcome. The resulting table is in docs/durability.md.
//
// In the conversation's first five exchanges the model requests three tools each; in the
// last one it answers. A child process runs it. The model and the tools are servers of
// the parent, over sockets: the model's server speaks Chat Completions, Responses or
// Messages with streams; the tools' server speaks MCP and keeps a ledger of what really
// happened. One of the three tools is read-only, one is idempotent and one is neither.
//
// The child dies at a [Point], in the middle of its work. Another child continues the
// conversation from its store. Then the history must be valid, the answer must be the
// same, and the model must have received the same messages, as if no process had died;
// each call must have had its effect once, as far as that can be known. The table shows
// what happens if it cannot be known.
//
// A [Column] is a store and an engine, and a test for each is one line:
//
//	killtable.Column{Name: "files", Engine: "run", Store: func(tb testing.TB) string {
//		return "files:" + tb.TempDir()
//	}}.Test(t, "../../../docs/durability.md")
//
// The test binary also runs as the child, see [Main].
package killtable
