// SPDX-License-Identifier: Apache-2.0

// Package devserver starts Temporal's development server for tests:
//
//	c, err := client.Dial(client.Options{HostPort: devserver.Start(t)})
package devserver

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/consort-go/consort/internal/testing/installed"
)

// program returns the path of Temporal's development server. If it is not installed, it ends
// the test.
func program(t testing.TB) string {
	t.Helper()
	if installed.Hidden() {
		t.Skip(errMissing)
	}
	if program, err := exec.LookPath("temporal"); err == nil {
		return program
	}
	if cache, err := os.UserCacheDir(); err == nil {
		if found, _ := filepath.Glob(filepath.Join(cache, "consort-ci", "temporal-*", "temporal")); len(found) > 0 {
			return found[0]
		}
	}
	installed.Missing(t, errMissing)
	return ""
}

var errMissing = errors.New("there is no development server of Temporal: .ci/temporal-server dev builds it, in some minutes")

// Start starts a development server in memory that ends with the test, and
// returns its address.
func Start(t testing.TB) string {
	t.Helper()
	program := program(t)
	port := freePort(t)
	cmd := exec.Command(program, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", port, "--http-port", freePort(t), "--metrics-port", freePort(t),
		"--log-level", "error", "--dynamic-config-value", "history.transferProcessorMaxPollRPS=2000")
	Bind(cmd)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return net.JoinHostPort("127.0.0.1", port)
}

func freePort(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
