// SPDX-License-Identifier: Apache-2.0

package foldername

import (
	"strings"
	"testing"
)

func TestIsPossible(t *testing.T) {
	for _, conversation := range []string{"talk", "Talk", "con", ".", "a/b", "ÄÖÜ", "~", strings.Repeat("A very long ID ", 60), "a.", "x~0"} {
		if name := Of(conversation); !IsPossible(name) {
			t.Errorf("%q has the folder %q, which counts as impossible", conversation, name)
		}
	}
	for _, name := range []string{"lost+found", "Talk", "System Volume Information", "$RECYCLE.BIN", "x~0", "con", "xtalk~" + strings.Repeat("A", 32)} {
		if IsPossible(name) {
			t.Errorf("%q counts as possible", name)
		}
	}
}
