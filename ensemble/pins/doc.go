// SPDX-License-Identifier: Apache-2.0

// Package pins detects when the definition of a tool changes after it was first seen,
// and hides the tool from models until the change is accepted.
//
// A server that was reviewed and trusted can later change the descriptions of its
// tools, and a description is an instruction to the model. A [File] stores the
// definition of each tool when it is first seen, and checks each list of tools that an
// ensemble gets from its server:
//
//	pinned, err := pins.Open("tools.pins.json")
//	...
//	files := ensemble.New("files", source, &ensemble.Options{
//		Screen: pinned.Screen("files", pins.SetAside, logger),
//	})
//
// A changed definition is pending. [File.Pending] lists the pending ones,
// [Entry.Changes] returns the differences of each [Entry], and [File.Accept] pins the
// new definition. A running ensemble uses it from its next list on.
//
// # Trust on first use
//
//   - The tools of an ensemble's first list are pinned and offered.
//   - A tool that is new in a later list is pending, like a change. With [SetAside], the
//     default policy, it is set aside until it is accepted. With [Warn] and [Allow] it is
//     pinned and offered.
//   - A tool that goes away stays pinned, so that it cannot come back with another
//     definition.
//   - A tool that returns to its pinned definition is offered, and its pending definition
//     is dropped.
//
// Pinned are name, title, description, both schemas and the hints, as models see them:
// without the invisible characters that package ensemble removes. The order of members
// and the white space of a schema do not matter. The behavior of a tool cannot be seen
// from its definition, and so cannot be pinned.
//
// # The file
//
// The file is JSON for people to read and to keep under version control, sorted by
// ensemble and tool. It is replaced as a whole, by a rename, so that no reader sees a
// half-written file. It is written only when something changes, so a read-only file
// still works. Several ensembles and several processes may share one file. A writer
// holds a lock on a second file, with the same name plus .lock, and first reads the
// changes of other writers. Where the system has no such locks, as on Windows, one of two
// processes that write at the same moment may lose its changes; its next list finds them
// again.
//
// If a file cannot be read, is damaged, or has a newer format, [Open] fails. If reading
// fails later, or writing fails, every tool that cannot be shown to match its pin is set
// aside with [SetAside]; with the other policies the error is only logged.
package pins
