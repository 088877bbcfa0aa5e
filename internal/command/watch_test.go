// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/tomltext"
)

// A server that dies while check watches is seen to go and to come back.
func TestWatch(t *testing.T) {
	t.Parallel()
	pidFile := filepath.Join(t.TempDir(), "pid")
	script := fmt.Sprintf(`echo $$ > %q; exec %q atlas`, pidFile, testserver)
	s := start(t, "check", "--watch", "--config", file(t,
		fmt.Sprintf("[mcp.atlas]\ntransport = \"stdio\"\ncommand = [\"sh\", \"-c\", %s]\n", tomltext.Quote(script))))
	s.until("atlas ready")
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.until("atlas lost")
	s.until("atlas ready")
	s.signal(syscall.SIGINT, exit.Done)

	s = start(t, "check", "--watch", "--json", "--config", file(t, atlas(0)))
	s.until(`"name":"atlas","state":"ready"`)
	s.signal(syscall.SIGINT, exit.Done)
}
