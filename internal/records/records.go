// SPDX-License-Identifier: Apache-2.0

// Package records has the interface of small records that several processes share, such as
// those of conversation stores in databases.
package records

import "context"

// Table has records by name. Its methods may be called concurrently.
type Table interface {
	// All returns all records by name.
	All(ctx context.Context) (map[string][]byte, error)
	// Get returns one record; nil if it does not exist.
	Get(ctx context.Context, name string) ([]byte, error)
	// Update calls change with a record, nil if there is none, and stores the record that it
	// returns; nil removes it. Updates of one record run one after the other, in all
	// processes; change is called again if a process that was taken for dead changes the
	// record after all. An error of change is returned as it is, and nothing is stored then.
	// The result is stored even if ctx has ended in the meantime.
	Update(ctx context.Context, name string, change func(before []byte) (after []byte, err error)) error
}
