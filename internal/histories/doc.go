// SPDX-License-Identifier: Apache-2.0

// package histories manages the conversations that the command keeps: where they are
// stored, and listing, showing, changing, exporting, importing, pruning and answering
// them.
//
// A [Location] decides on the store. A [Manager] does the work of the commands history
// and approve on it.
package histories
