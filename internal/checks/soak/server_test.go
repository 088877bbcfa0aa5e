// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest/faultserver"
	"github.com/consort-go/consort/mcpadapter"
)

// server is one server, the ensemble in front of it, and the file with its effects. The
// processes of a server over stdio belong to the ensemble, those over HTTP to the server.
type server struct {
	name     string
	mark     string
	dir      string
	trust    ensemble.Trust
	ensemble *ensemble.Ensemble

	addr string // of HTTP; empty for stdio

	mu      sync.Mutex
	process *faultserver.Process // of HTTP
}

// repeats reports whether a call of an idempotent tool may be made twice.
func (s *server) repeats() bool { return s.trust == ensemble.TrustAll }

// script is well-behaved, but pauses before and after an effect, so that external faults
// occur there too.
func (s *server) script() faultserver.Script {
	slow := func(at faultserver.Place) faultserver.Rule {
		return faultserver.Rule{Fault: "slow", At: at, Times: faultserver.Always, Delay: 40 * time.Millisecond}
	}
	return faultserver.Script{
		Dir:   s.dir,
		Life:  *soakFor + 5*time.Minute,
		Rules: []faultserver.Rule{slow("before-effect"), slow("after-effect")},
	}
}

// environ is what makes this binary that server.
func (s *server) environ() map[string]string {
	name, script, _ := strings.Cut(s.script().Environ(), "=")
	return map[string]string{name: script, markVar: s.mark, "GORACE": "atexit_sleep_ms=0", "GOMAXPROCS": "1"}
}

// newFleet makes the eight servers, each with another way to live.
func newFleet(t *testing.T) []*server {
	t.Helper()
	always := ensemble.Restart{Policy: ensemble.RestartAlways, Tries: -1, Window: 5 * time.Second}
	parking := ensemble.Restart{Policy: ensemble.RestartAlways, Tries: 3, Window: time.Minute}
	keep, answer := time.Second, 3*time.Second // less than the longest freeze
	return []*server{
		overStdio(t, "pipe1", ensemble.Options{Restart: always, KeepAlive: keep, ConnectTimeout: answer}),
		overStdio(t, "pipe2", ensemble.Options{}),
		overStdio(t, "pipe3", ensemble.Options{Restart: parking}),
		overStdio(t, "pipe4", ensemble.Options{IdleDisconnect: 150 * time.Millisecond}),
		overStdio(t, "pipe5", ensemble.Options{Restart: always, Trust: ensemble.TrustAll}),
		overHTTP(t, "web1", ensemble.Options{Restart: always, KeepAlive: keep, ConnectTimeout: answer}),
		overHTTP(t, "web2", ensemble.Options{Trust: ensemble.TrustAll}),
		overHTTP(t, "web3", ensemble.Options{Restart: always, Trust: ensemble.TrustNone}),
	}
}

func newServer(t *testing.T, name string, options *ensemble.Options) *server {
	options.CallTimeout = 2 * time.Second
	options.CloseTimeout = 5 * time.Second
	return &server{name: name, trust: options.Trust, dir: t.TempDir(), mark: fmt.Sprintf("%s-%d-%d", name, os.Getpid(), time.Now().UnixNano())}
}

func overStdio(t *testing.T, name string, options ensemble.Options) *server {
	t.Helper()
	s := newServer(t, name, &options)
	s.ensemble = ensemble.New(name, mcpadapter.Stdio([]string{os.Args[0]}, &mcpadapter.StdioOptions{
		Environment: s.environ(),
		Grace:       300 * time.Millisecond,
	}), &options)
	return s
}

func overHTTP(t *testing.T, name string, options ensemble.Options) *server {
	t.Helper()
	s := newServer(t, name, &options)
	s.addr = freeAddr(t)
	if err := s.launch(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	s.ensemble = ensemble.New(name, mcpadapter.HTTP("http://"+s.addr+"/mcp", nil), &options)
	return s
}

// freeAddr is an unused address below the ephemeral ports of the kernel: it must stay
// unused while the server is down.
func freeAddr(t *testing.T) string {
	t.Helper()
	for port := 20000 + os.Getpid()%8000; port < 30000; port++ {
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		if listener, err := net.Listen("tcp", addr); err == nil {
			listener.Close()
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}

// launch starts the process of a server over HTTP.
func (s *server) launch() error {
	cmd := exec.Command(os.Args[0], "-http", "-addr", s.addr)
	cmd.Env = os.Environ()
	for name, value := range s.environ() {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	process, err := faultserver.Launch(cmd)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = process
	return err
}

// stop ends the process of a server over HTTP, whatever state it is in.
func (s *server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.Kill()
		s.process = nil
	}
}
