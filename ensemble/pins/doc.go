// SPDX-License-Identifier: Apache-2.0

// Package pins notices when a tool is no longer what it was when it was first
// seen, and keeps it from models until somebody accepts that.
//
// A server that was looked at and trusted can change what its tools say later
// on: a description is an instruction to the model. A [File] remembers each
// tool's definition from its first sight on, and screens what an ensemble
// lists:
//
//	pinned, err := pins.Open("tools.pins.json")
//	...
//	files := ensemble.New("files", source, &ensemble.Options{
//		Screen: pinned.Screen("files", pins.SetAside, logger),
//	})
//
// What differs is pending. [File.Pending] shows it, each [Entry] with its
// [Entry.Changes], and [File.Accept] makes it what is pinned from then on. A
// running ensemble takes that in at its next listing.
//
// # Trust on first use
//
// Nothing is known of a tool that was never seen, so it is pinned and let
// through, also when its ensemble was pinned long before: this package is about
// tools that change, and Options.Allow about which there are. A tool that goes
// away stays pinned, so that it cannot come back as another one. One that goes
// back to what is pinned is let through, and nothing is pending any more.
//
// Pinned are name, title, description, both schemas and the hints, as models see
// them: without the invisible characters that package ensemble takes out. The
// order of members and the white space of a schema do not count. What a tool
// does cannot be seen from its definition, and is not pinned.
//
// # The file
//
// The file is JSON for people to read and to keep under version control, sorted
// by ensemble and tool. It is replaced as a whole, by a rename, so that no reader
// sees half of it, and it is written only when there is news: pins that nobody may
// write still do their work. Many ensembles, and many processes, may share one.
// Whoever writes holds a lock, on a file beside it whose name ends in .lock, and
// reads what others wrote first. Where the system has no such locks, as on
// Windows, two processes that write at the very same moment may lose the news of
// one; it is news again at its next listing.
//
// A file that cannot be read, is damaged, or is of a later version is an error of
// [Open]. If it becomes so later, or news cannot be written, nothing is forgotten
// in silence: with [SetAside] the tools that are not known to be as pinned are set
// aside for that reason, with the other policies it is logged.
package pins
