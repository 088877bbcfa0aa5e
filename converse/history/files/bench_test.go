// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"testing"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/files"
	"github.com/consort-go/consort/converse/history/historytest"
)

func BenchmarkStore(b *testing.B) {
	historytest.BenchStore(b, func(b *testing.B) func() (history.Store, error) {
		dir := b.TempDir()
		return func() (history.Store, error) { return files.Open(dir, nil) }
	})
}
