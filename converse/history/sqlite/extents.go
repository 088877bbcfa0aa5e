// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"github.com/consort-go/consort/converse/history/internal/sqlstore"
)

// extents are the keys and lengths of the conversations to which the writer has appended lately,
// so that the next append to one of them need not query them. They hold as long as no
// other connection has committed anything; the writer asks SQLite for that at the start of each
// transaction.
type extents struct {
	version int64 // PRAGMA data_version, by which other connections' commits are noticed
	byID    map[string]sqlstore.Extent
}

// maxExtents bounds extents: some 100 KB.
const maxExtents = 1024

// begin is called when a transaction has begun, with the data_version in it.
func (x *extents) begin(version int64) {
	if version != x.version {
		clear(x.byID)
	}
	x.version = version
}

// add adds the extent of a conversation.
func (x *extents) add(e sqlstore.Extent) {
	if len(x.byID) >= maxExtents {
		clear(x.byID)
	}
	x.byID[e.ID] = e
}

// Known implements [sqlstore.Tx].
func (w *writer) Known(conversation string) (e sqlstore.Extent, ok bool) {
	e, ok = w.extents.byID[conversation]
	return e, ok
}

// Forget implements [sqlstore.Tx].
func (w *writer) Forget(conversation string) { delete(w.extents.byID, conversation) }
