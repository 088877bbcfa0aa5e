// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestChildServer(t *testing.T) {
	n, err := startChild(t.Context(), exec.Command("sh", "-c", "echo http://127.0.0.1:1/mcp; cat; echo $GIVEN >&2"), "GIVEN=")
	if err != nil {
		t.Fatal(err)
	}
	if n.url != "http://127.0.0.1:1/mcp" {
		t.Errorf("the URL is %q", n.url)
	}
	if err := n.stop(); err != nil || n.cmd.ProcessState == nil {
		t.Errorf("stopping: %v, waited for: %v", err, n.cmd.ProcessState != nil)
	}
}

func TestAChildServerThatDoesNotLeaveIsEnded(t *testing.T) {
	n, err := startChild(t.Context(), exec.Command("sh", "-c", "echo url; exec sleep 300"))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := n.stop(); err == nil || !strings.Contains(err.Error(), "killed") || time.Since(began) > childGrace+5*time.Second {
		t.Errorf("stopping took %v: %v", time.Since(began), err)
	}
}

func TestAChildServerThatSaysNothing(t *testing.T) {
	if n, err := startChild(t.Context(), exec.Command("sh", "-c", "exit 4")); err == nil {
		t.Errorf("it started: %v", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if n, err := startChild(ctx, exec.Command("sleep", "300")); err == nil {
		t.Errorf("it started: %v", n)
	}
}
