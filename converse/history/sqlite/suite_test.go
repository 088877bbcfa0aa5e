// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/historytest"
	"github.com/consort-go/consort/converse/history/sqlite"
)

func TestStorePassesSuite(t *testing.T) {
	historytest.TestStore(t, func(t *testing.T) historytest.Harness {
		path := filepath.Join(t.TempDir(), "talks.db")
		return historytest.Harness{
			Open:    func() (history.Store, error) { return sqlite.Open(path, nil) },
			Durable: true,
			Shared:  true,
			Torn:    func(append func(), n float64) (history.Store, error) { return tear(t, path, append, n) },
		}
	})
}

// tear copies a database whose write-ahead log ends at any byte of an append. The state
// of other processes about the log, in the file -shm, is lost with the machine.
func tear(t *testing.T, path string, append func(), n float64) (history.Store, error) {
	size := func() int64 {
		info, err := os.Stat(path + "-wal")
		if err != nil {
			return 0
		}
		return info.Size()
	}
	before := size()
	append()
	after := size()
	torn := filepath.Join(t.TempDir(), "talks.db")
	for _, end := range []string{"-wal", ""} { // in this order, since the database may absorb the log
		text, err := os.ReadFile(path + end)
		if err != nil {
			return nil, err
		}
		if end == "-wal" && after > before {
			text = text[:before+int64(n*float64(after-before))]
		}
		if err := os.WriteFile(torn+end, text, 0o600); err != nil {
			return nil, err
		}
	}
	return sqlite.Open(torn, nil)
}
