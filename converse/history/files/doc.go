// SPDX-License-Identifier: Apache-2.0

// Package files keeps conversations in files that people can read and edit: a
// folder for each, with its canisters as lines of JSON.
//
//	store/
//	  talk/
//	    history.jsonl    the canisters, one a line (docs/canisters.md)
//	    info.json        title, tags, owner, what it was forked from
//	    contents/        contents of more than 1 KiB, each by its SHA-256
//	  xpl-ne~5d0c…/      an identity that is no good name for a folder
//
// An append returns when the canisters are on the disk: the contents first, then
// the lines, then the folders that name them. A crash in the middle of it leaves
// at most the beginning of lines that nobody was told of; they count for nothing
// and the next append cuts them off. Every line has a sum and every content is
// known by its hash, so that what has been damaged is a
// [history.CorruptError] that names file and line, and not another text.
//
// Forks share contents by hard links. So a folder stands on its own: it may be
// copied to another store, and what is deleted frees what only it held.
//
// Several processes may use one folder at the same time. They exclude each
// other for the length of an append, by a lock of the kind flock(2) on
// history.jsonl; where the system has none, one process at a time has to do.
//
// # Editing by hand
//
// A line may be changed, added or removed while no program writes to the
// conversation. A line that was changed no longer fits its member sum, which is
// the last one: take it out, and the line is taken as it stands. If the last line
// that stays has a plus in its sum, it waits for lines of the same append: take
// its sum out too. docs/durability.md has the layout. A content that
// stands beside is put back into its line by giving it its member (text, data,
// blob or json) and taking io.github.consort-go/stored out of its metadata. A
// folder without info.json is a conversation with the folder's name.
//
// The store keeps no file open and remembers, of a bounded number of
// conversations, where in the file every 64th canister begins: what was read
// once is not read again to append to it, or to read its end. A search reads
// all that the rest of the filter lets pass; who has many conversations to search
// keeps them in a database.
package files
