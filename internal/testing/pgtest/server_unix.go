// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pgtest

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is a PostgreSQL server that can be stopped, killed and started again. It is not
// safe for concurrent use.
type Server struct {
	dir      string // data, log and the socket
	bin      string
	port     int
	password string
	as       *syscall.SysProcAttr // the user that runs it

	process *exec.Cmd
	ended   chan error // of the process
	leave   io.Closer  // ends the keeper
	keeper  *exec.Cmd
}

// start creates a server with a keeper and a directory in folder, or in the one for temporary
// files if folder is empty.
func start(folder string) (*Server, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	// A socket's path has at most 107 bytes, so the test's own directory could be too
	// long.
	dir, err := os.MkdirTemp(folder, "pgtest-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, bin: bin, password: rand.Text()}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("pgtest: %w", err), os.RemoveAll(dir))
	}
	if err := s.up(); err != nil {
		return nil, errors.Join(fmt.Errorf("pgtest: %w", err), s.close())
	}
	return s, nil
}

// prepare creates the data directory and starts the keeper.
func (s *Server) prepare() (err error) {
	if s.as, err = nobody(s.dir); err != nil {
		return err
	}
	if s.port, err = freePort(); err != nil {
		return err
	}
	secret := filepath.Join(s.dir, "password")
	if err := os.WriteFile(secret, []byte(s.password), 0o644); err != nil { // the directory is readable only by its owner
		return err
	}
	initdb := s.command("initdb", "-D", s.data(), "-U", "consort", "-A", "scram-sha-256", "--pwfile", secret,
		"-E", "UTF8", "--locale", "C", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return s.keep()
}

// nobody gives the directory to a user that PostgreSQL accepts.
func nobody(dir string) (*syscall.SysProcAttr, error) {
	as := &syscall.SysProcAttr{Setpgid: true} // an interrupt at the terminal is for the tests
	if os.Geteuid() != 0 {
		return as, nil
	}
	who, err := user.Lookup("postgres")
	if err != nil {
		who, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(who.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(who.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return as, os.Chown(dir, int(uid), int(gid))
}

// freePort returns a free port of 127.0.0.1 outside the range that the system assigns to
// clients, so that no client takes it while the server is down.
func freePort() (int, error) {
	var last error
	for range 100 {
		b := make([]byte, 2)
		_, _ = rand.Read(b) // never fails
		port := 10000 + (int(b[0])<<8|int(b[1]))%22000
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, listener.Close()
		}
		last = err
	}
	return 0, last
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, program), args...)
	cmd.SysProcAttr, cmd.Dir = s.as, s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	return cmd
}

//go:embed keeper.sh
var keeper string

// keep starts the keeper, which waits for the end of its input.
func (s *Server) keep() error {
	s.keeper = exec.Command("/bin/sh", "-c", keeper, "keeper", s.dir)
	s.keeper.SysProcAttr, s.keeper.Dir = s.as, "/"
	pipe, err := s.keeper.StdinPipe()
	if err != nil {
		return err
	}
	s.leave = pipe
	return s.keeper.Start()
}

// close makes the keeper stop the server and remove the directory.
func (s *Server) close() error {
	err := errors.Join(s.leave.Close(), s.keeper.Wait())
	if s.process != nil {
		<-s.ended
	}
	return err
}

// admin returns the DSN of the database that every server has.
func (s *Server) admin() string {
	address := url.URL{
		Scheme: "postgres", User: url.UserPassword("consort", s.password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), Path: "/postgres",
	}
	return address.String()
}

// Socket returns the directory of the server's socket, which can be the host of a DSN.
func (s *Server) Socket() string { return s.dir }

// up starts the server and waits until it accepts connections.
func (s *Server) up() error {
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.process = s.command("postgres", "-D", s.data(), "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-k", s.dir,
		"-c", "max_connections=500", "-c", "shared_buffers=32MB", "-c", "max_prepared_transactions=10")
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		return err
	}
	s.ended = make(chan error, 1)
	go func(process *exec.Cmd, ended chan error) { ended <- process.Wait(); close(ended) }(s.process, s.ended)
	return s.answers()
}

// answers waits until the server accepts connections.
func (s *Server) answers() error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond) // the server sends no event when it is ready
	defer again.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.admin())
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case end := <-s.ended:
			s.process = nil
			said, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("the server ended at once: %w: %s", end, said[max(0, len(said)-2000):])
		case <-ctx.Done():
			return err
		case <-again.C:
		}
	}
}

// Stop stops the server, as pg_ctl stop -m immediate does: connections end in the middle
// of their work.
func (s *Server) Stop(tb testing.TB) { tb.Helper(); s.end(tb, syscall.SIGQUIT) }

// Kill kills the server with SIGKILL, like a machine failure. Committed data is on the
// disk.
func (s *Server) Kill(tb testing.TB) { tb.Helper(); s.end(tb, syscall.SIGKILL) }

func (s *Server) end(tb testing.TB, signal syscall.Signal) {
	tb.Helper()
	if s.process == nil {
		tb.Fatal("pgtest: the server is down already")
	}
	if err := s.process.Process.Signal(signal); err != nil {
		tb.Fatal("pgtest: ", err)
	}
	select {
	case <-s.ended:
		s.process = nil
	case <-time.After(timeout):
		tb.Fatal("pgtest: the server does not end")
	}
}

// Start starts the server again, at the same address.
func (s *Server) Start(tb testing.TB) {
	tb.Helper()
	if s.process != nil {
		tb.Fatal("pgtest: the server is up already")
	}
	var err error
	for began := time.Now(); time.Since(began) < timeout; {
		// Child processes of a killed server take a moment to exit; a new server does not
		// start before that.
		if err = s.up(); err == nil || s.process != nil {
			break
		}
	}
	if err != nil {
		tb.Fatal("pgtest: ", err)
	}
}

// Restart stops the server and starts it again.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.Stop(tb)
	s.Start(tb)
}
