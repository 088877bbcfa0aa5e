// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"github.com/consort-go/consort/converse/history/internal/sqlstore"
)

// extents are the keys and lengths of conversations that the writer has appended to, so that
// the next append does not query them. They are valid until another connection commits
// something; the writer checks that at the start of each transaction.
type extents struct {
	version int64 // PRAGMA data_version; commits of other connections change it
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
