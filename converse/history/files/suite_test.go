// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"testing"

	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/files"
)

func TestSuite(t *testing.T) {
	conversetest.TestStore(t, func(t *testing.T) conversetest.StoreHarness {
		dir := t.TempDir()
		open := func() (history.Store, error) { return files.Open(dir, nil) }
		return conversetest.StoreHarness{Open: open, Durable: true, Shared: true}
	})
}
