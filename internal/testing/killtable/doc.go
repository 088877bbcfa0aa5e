// SPDX-License-Identifier: Apache-2.0

// Package killtable kills a conversation at every step, with the signal that
// nobody can catch, and looks at what becomes of it. The table that comes of it
// stands in docs/durability.md.
//
// The conversation has five exchanges in which the model asks for three tools
// each, and a last one in which it answers. It is held by a child process; the
// model and the tools are servers of the parent, over sockets: the one speaks
// the Chat Completions API with streams, the other MCP, and keeps a ledger of
// what really happened. Of the three tools one only reads, one is idempotent and
// one is neither.
//
// The child dies at a [Point], in the middle of its work. Another one takes the
// conversation up from its store. Then the history must be sound, the answer the
// same, and the model must have been told the same, as if nobody had died; each
// call must have had its effect once, as far as that can be known. What cannot
// be known is what the table is about.
//
// A [Column] is a store and an engine, and a test for each is one line:
//
//	killtable.Column{Name: "files", Engine: "run", Store: func(tb testing.TB) string {
//		return "files:" + tb.TempDir()
//	}}.Test(t, "../../../docs/durability.md")
//
// The test binary is the child too, see [Main].
package killtable
