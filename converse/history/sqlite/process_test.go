// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/consort-go/consort/internal/testing/storetest"
)

// The test program is also the other process.
func TestMain(m *testing.M) { storetest.Main(m, openFile) }

func openFile(path string) (storetest.Store, error) { return Open(path, nil) }

// A process that is killed while it writes loses nothing that was acknowledged.
func TestKilledWhileWriting(t *testing.T) {
	rounds := 4
	if testing.Short() {
		rounds = 1
	}
	for round := range rounds {
		path := filepath.Join(t.TempDir(), "talks.db")
		storetest.Killed(t, path, func() storetest.Store { return openAt(t, path, nil) }, 150+70*round)
	}
}

// Processes that write to one file wait for each other, also while they create it: no
// caller gets the error that the file is busy.
func TestProcessesTogether(t *testing.T) {
	storetest.Together(t, filepath.Join(t.TempDir(), "talks.db"), openFile)
}
