// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/files"
	"github.com/consort-go/consort/converse/history/historytest"
)

func TestSuite(t *testing.T) {
	historytest.TestStore(t, func(t *testing.T) historytest.Harness {
		dir := t.TempDir()
		open := func() (history.Store, error) { return files.Open(dir, nil) }
		torn := func(append func(), n float64) (history.Store, error) { return tear(t, dir, append, n) }
		return historytest.Harness{Open: open, Durable: true, Shared: true, Torn: torn}
	})
}

// tear copies a store in which the lines of an append end at any byte.
func tear(t *testing.T, dir string, append func(), n float64) (history.Store, error) {
	before := lines(t, dir)
	append()
	torn := t.TempDir()
	if err := os.CopyFS(torn, os.DirFS(dir)); err != nil {
		return nil, err
	}
	for path, size := range lines(t, dir) {
		if was := before[path]; was != size && was > 0 { // a new one is renamed as a whole
			if err := os.Truncate(filepath.Join(torn, path), was+int64(n*float64(size-was))); err != nil {
				return nil, err
			}
		}
	}
	return files.Open(torn, nil)
}

// lines returns the size of the lines of each conversation.
func lines(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*", "history.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int64{}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		sizes[name] = info.Size()
	}
	return sizes
}
