// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"bytes"
	"os"
	"sync/atomic"

	"github.com/charmbracelet/x/ansi"
	"github.com/consort-go/consort/internal/terminal"
)

// output is the terminal as the destination of the screen. It erases with
// [terminal.EraseBelow].
type output struct {
	file   *os.File
	writes *atomic.Int64 // how many there were
}

// Write writes whole sequences.
func (o output) Write(p []byte) (int, error) {
	defer o.writes.Add(1)
	text := bytes.ReplaceAll(p, []byte(ansi.EraseScreenBelow), []byte(terminal.EraseBelow))
	if n, err := o.file.Write(text); err != nil {
		return min(n, len(p)), err
	}
	return len(p), nil
}

// Read, Close and Fd pass calls to the terminal.
func (o output) Read(p []byte) (int, error) { return o.file.Read(p) }
func (o output) Close() error               { return o.file.Close() }
func (o output) Fd() uintptr                { return o.file.Fd() }
