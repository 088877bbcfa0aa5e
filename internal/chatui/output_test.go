// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/consort-go/consort/internal/testing/screen"
)

// Wherever the cursor is, the same is erased, and the cursor stays. From the first cell on,
// no lines are kept above the screen.
func TestOutputErases(t *testing.T) {
	const text = "abcd\r\nefgh\r\nijkl"
	for row := range 3 {
		for col := range 4 {
			place := text + ansi.CursorPosition(col+1, row+1)
			want, got := screen.NewEmulator(4, 3, func(string) {}), screen.NewEmulator(4, 3, func(string) {})
			want.Write([]byte(place + ansi.EraseScreenBelow + "x"))
			file, err := os.Create(filepath.Join(t.TempDir(), "output"))
			if err != nil {
				t.Fatal(err)
			}
			all := place + ansi.EraseScreenBelow + "x"
			if n, err := (output{file, new(atomic.Int64)}).Write([]byte(all)); n != len(all) || err != nil {
				t.Errorf("%d of %d bytes are written, %v", n, len(all), err)
			}
			file.Close()
			written, err := os.ReadFile(file.Name())
			if err != nil {
				t.Fatal(err)
			}
			if got.Write(written); got.Screen() != want.Screen() || got.Scrolled() > 0 {
				t.Errorf("in row %d, column %d: %q, not %q, and %d rows above", row, col, got.Screen(), want.Screen(), got.Scrolled())
			}
		}
	}
}
