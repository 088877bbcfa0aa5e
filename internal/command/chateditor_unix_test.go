// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/consort-go/consort/internal/testing/screen"
)

// While an editor has the terminal, Ctrl-C is a key of the editor, even if the chat learns of
// it when the editor has ended.
func TestCtrlCInTheEditor(t *testing.T) {
	t.Parallel()
	editor := filepath.Join(t.TempDir(), "editor")
	script := "#!/bin/sh\ntrap 'echo caught' INT\necho editing\nuntil read line; do :; done\necho edited > \"$1\"\necho saved\n"
	if err := os.WriteFile(editor, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	path := file(t, model(t, slowly(40)), atlas(0))
	cmd := run{env: []string{"EDITOR=" + editor, "VISUAL="}}.command(t.Context(), t, "chat", "--config", path)
	x := conversation{screen.Start(t, cmd, 80, 24), t}
	x.says("Talk.")
	x.See("word word")
	x.Type(screen.Ctrl('x') + screen.Ctrl('e'))
	x.See("editing")
	for i := range 2 {
		if i == 1 {
			_ = cmd.Process.Signal(syscall.SIGSTOP)
		}
		x.Type(screen.Ctrl('c'))
		x.Wait("the signal", func(e *screen.Emulator) bool { return strings.Count(e.All(), "caught") == i+1 })
	}
	x.Type(screen.Enter)
	x.See("saved")
	_ = cmd.Process.Signal(syscall.SIGCONT)
	x.See("> edited")
	if all := x.All(); strings.Contains(all, "Cancelled.") || strings.Contains(all, "again leaves") {
		t.Errorf("it was an interrupt of the chat:\n%s", all)
	}
	x.Type(screen.Ctrl('c'))
	x.See("Ctrl-C again leaves.")
	x.leaves()
}
