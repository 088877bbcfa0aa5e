// SPDX-License-Identifier: Apache-2.0

// Package pins detects when the definition of a tool changes after it was first seen,
// and hides the tool from models until the change is accepted.
//
// A server that was reviewed and trusted can later change the descriptions of its
// tools, and a description is an instruction to the model. A [File] stores the
// definition of each tool when it is first seen, and screens the listings of an
// ensemble:
//
//	pinned, err := pins.Open("tools.pins.json")
//	...
//	files := ensemble.New("files", source, &ensemble.Options{
//		Screen: pinned.Screen("files", pins.SetAside, logger),
//	})
//
// A changed definition is pending. [File.Pending] lists the pending ones,
// [Entry.Changes] returns the differences of each [Entry], and [File.Accept] pins the
// new definition. A running ensemble uses it from its next listing on.
//
// # Trust on first use
//
// The tools of the first listing of an ensemble are pinned and let through. A tool that is
// new in a later listing is pending, like a change; with [SetAside] it is hidden until it is
// accepted, and with the other policies it is pinned and let through. A tool that goes away stays pinned, so that it cannot come back with
// another definition. If a tool returns to its pinned definition, it is let through,
// and its pending definition is dropped.
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
// changes of other writers. Where the system has no such locks, as on Windows, the
// changes of one of two processes that write at the very same moment may be lost; they
// are found again at its next listing.
//
// If a file cannot be read, is damaged, or has a later version, [Open] fails. If that
// happens later, or changes cannot be written, the problem is reported: with
// [SetAside], the tools that are not known to match their pins are set aside for that
// reason; with the other policies it is logged.
package pins
