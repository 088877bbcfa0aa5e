// SPDX-License-Identifier: Apache-2.0

// Package files stores conversations in files that people can read and edit: a folder
// for each conversation, with its canisters as lines of JSON.
//
//	store/
//	  talk/
//	    history.jsonl    the canisters, one a line (docs/canisters.md)
//	    info.json        title, tags, owner, parent of a fork
//	    contents/        contents of more than 1 KiB, each by its SHA-256
//	  xpl-ne~5d0c…/      an ID that is not usable as a folder name
//
// An append returns when the canisters are on the disk: first the contents, then the
// lines, then the folders that name them. A crash during an append leaves at most some
// lines of an unconfirmed append; they are ignored, and the next append removes them.
// Every line has a checksum and every content is identified by its hash, so that
// damaged data is reported as a [history.CorruptError] that names file and line, and
// not as different text.
//
// Forks share contents by hard links. So each folder is self-contained: it may be
// copied to another store, and deleting it frees the data that only it used.
//
// Several processes may use one folder at the same time. They exclude each other during
// an append by a lock on history.jsonl (flock(2), or LockFileEx on Windows). On systems
// without such locks only one process may use the folder.
//
// # Manual editing
//
// A line may be changed, added or removed while no program writes to the conversation.
// A changed line no longer matches its member sum, which is the last one: remove that
// member, and the line is accepted as it is. If the last remaining line has a plus in
// its sum, it waits for further lines of the same append: remove its sum too.
// docs/stores.md describes the layout. To move a separately stored content back
// into its line, set its member (text, data, blob or json) and remove
// io.github.consort-go/stored from its metadata. A folder without info.json is a
// conversation with the folder's name; if that has a hash, lists report it as an error until
// Describe writes the file again.
//
// The store keeps no file open. For a bounded number of conversations it remembers
// where every 64th canister begins in the file, so that data read once is not read
// again to append to it, or to read its end. A search reads every conversation that
// matches the rest of the filter; programs that search many conversations should keep
// them in a database.
package files
