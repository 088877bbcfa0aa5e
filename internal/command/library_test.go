// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"os"
	"testing"
)

// library is the table of the server library of testserver, with further lines. Its tool
// wait meets the test in the folder.
func library(t *testing.T, lines string) (table, folder string) {
	t.Helper()
	folder = t.TempDir()
	return fmt.Sprintf("[mcp.library]\ncommand = [%q, \"library\", %q]\nenvironment = {PASSWORD = \"env:CONSORT_TEST_PASSWORD\"}\n%s",
		testserver, folder, lines), folder
}

// password is a secret of the server library that must not be shown.
const password = "correct horse battery staple"

func touch(path string) {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		panic(err)
	}
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
