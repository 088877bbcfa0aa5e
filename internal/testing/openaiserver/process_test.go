// SPDX-License-Identifier: Apache-2.0

package openaiserver_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// mainVariable makes the test binary the server.
const mainVariable = "OPENAISERVER_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		os.Exit(openaiserver.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// launch runs the server as a process of its own.
func launch(t *testing.T, args ...string) *openaiserver.Process {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), mainVariable+"=1")
	p, err := openaiserver.Launch(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func writeScript(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestProcess(t *testing.T) {
	p := launch(t, "-script", writeScript(t, `{"steps":[{"message":{"text":"from afar"}}]}`))
	if got := *complete(t, p.URL, request(userMessage, "")).Choices[0].Message.Content; got != "from afar" {
		t.Errorf("got %q", got)
	}
	if _, _, body, _ := post(t, openaiserver.OddityURL(p.URL, "bom"), request(userMessage, `"stream":true`)); !strings.HasPrefix(body, "\ufeff") {
		t.Errorf("the oddity came as %.50q", body)
	}
	if err := p.Close(); err != nil {
		t.Errorf("a process that saw nothing wrong ended with %v", err)
	}
}

func TestProcessTellsFaults(t *testing.T) {
	p := launch(t)
	post(t, p.URL, request(userMessage, ""))
	for range 2 {
		if err := p.Close(); err == nil || !strings.Contains(err.Error(), "the script ends after 0 steps") {
			t.Errorf("got %v", err)
		}
	}
}

func TestLaunchFails(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-script", "nowhere.json")
	cmd.Env = append(os.Environ(), mainVariable+"=1")
	if _, err := openaiserver.Launch(cmd); err == nil || !strings.Contains(err.Error(), "nowhere.json") {
		t.Errorf("a missing script gave %v", err)
	}
	if _, err := openaiserver.Launch(exec.Command("./no-such-program")); err == nil {
		t.Error("a missing program gave no error")
	}
}

func TestMainStatus(t *testing.T) {
	server := start(t, nil)
	taken := strings.TrimSuffix(strings.TrimPrefix(server.URL(), "http://"), "/v1")
	tests := []struct {
		args   []string
		status int
	}{
		{nil, 0},
		{[]string{"-trust", "-key", "k"}, 0},
		{[]string{"-nope"}, 2},
		{[]string{"-script", writeScript(t, `{`)}, 2},
		{[]string{"-addr", taken}, 1},
	}
	for _, test := range tests {
		var stdout, stderr bytes.Buffer
		status := openaiserver.Main(test.args, strings.NewReader(""), &stdout, &stderr)
		if status != test.status || (status == 0) != strings.HasPrefix(stdout.String(), "http://127.0.0.1:") || (status == 0) != (stderr.Len() == 0) {
			t.Errorf("%q: status %d, stdout %q, stderr %q", test.args, status, &stdout, &stderr)
		}
	}
}
