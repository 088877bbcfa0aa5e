// SPDX-License-Identifier: Apache-2.0

package historytest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/historytest"
)

func TestMemoryPassesSuite(t *testing.T) {
	historytest.TestStore(t, func(*testing.T) historytest.Harness {
		store := history.NewMemory()
		// Until it is closed, one store serves the cases of others too.
		return historytest.Harness{Open: func() (history.Store, error) { return store, nil }, Durable: true, Shared: true}
	})
}

// The suite has the lines of every version of the form.
func TestGoldenLinesAreThoseOfPackageCanister(t *testing.T) {
	files, err := filepath.Glob("../../../canister/testdata/version*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("golden", filepath.Base(file)))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs from the canisters of the suite: %v", file, err)
		}
	}
}
