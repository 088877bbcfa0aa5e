// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// patience bounds the start of a server. A busy machine takes seconds.
const patience = 60 * time.Second

// EverythingHTTP starts server-everything over streamable HTTP and returns its URL. The
// process ends with the test.
func (s *Servers) EverythingHTTP(t testing.TB) string {
	t.Helper()
	return s.start(t, "streamableHttp") + "/mcp"
}

// EverythingSSE is like [Servers.EverythingHTTP], over the older HTTP+SSE transport.
func (s *Servers) EverythingSSE(t testing.TB) string {
	t.Helper()
	return s.start(t, "sse") + "/sse"
}

// endWithUs is a module that exits its process when the other end of its standard input
// is closed, however the test ended.
const endWithUs = `data:text/javascript,process.stdin.resume().on("end",()=>process.exit())`

func (s *Servers) start(t testing.TB, mode string) string {
	t.Helper()
	var last error
	for range 3 { // the free port may have been taken meanwhile
		origin, err := s.startOn(t, mode)
		if err == nil {
			return origin
		}
		last = err
	}
	t.Fatalf("server-everything %s does not start: %v", mode, last)
	return ""
}

func (s *Servers) startOn(t testing.TB, mode string) (string, error) {
	port, err := freePort()
	if err != nil {
		return "", err
	}
	argv := s.command(everythingFile, mode)
	cmd := exec.Command(argv[0], append([]string{"--import", endWithUs}, argv[1:]...)...)
	cmd.Env = append(os.Environ(), "PORT="+strconv.Itoa(port))
	if _, err := cmd.StdinPipe(); err != nil { // Wait closes it
		return "", err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ready, ended := make(chan struct{}), make(chan struct{})
	var tail string
	go func() {
		defer close(ended)
		tail = readStderr(stderr, ready)
		_ = cmd.Wait() // stderr has been read to its end
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	bound := time.NewTimer(patience)
	defer bound.Stop()
	select {
	case <-ready:
	case <-ended:
		return "", errors.New(cmp.Or(tail, "it ended at once"))
	case <-bound.C:
		return "", fmt.Errorf("it did not say that it listens within %s", patience)
	}
	return fmt.Sprintf("http://localhost:%d", port), accepts(port)
}

// readStderr reads stderr to its end, closes ready when the server reports that it
// listens, and returns the last line.
func readStderr(stderr io.Reader, ready chan<- struct{}) string {
	last, said := "", false
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		last = lines.Text()
		if !said && strings.Contains(last, " on port ") {
			said = true
			close(ready)
		}
	}
	return last
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func accepts(port int) error {
	conn, err := net.DialTimeout("tcp", net.JoinHostPort("localhost", strconv.Itoa(port)), patience)
	if err != nil {
		return err
	}
	return conn.Close()
}
