// SPDX-License-Identifier: Apache-2.0

//go:build unix

package faultserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble/ensembletest/faultserver"
	"github.com/consort-go/consort/internal/testing/parallelism"
)

// patience bounds each wait for something that must come; quiet is how long
// a test listens for something that must not.
const (
	patience = 30 * time.Second
	quiet    = 200 * time.Millisecond
)

func TestMain(m *testing.M) {
	if os.Getenv(faultserver.Variable) != "" {
		os.Exit(faultserver.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	parallelism.Set("12")
	os.Exit(m.Run())
}

// program is a command that is the server; Setpgid is set where there is such a
// thing.
func program(script faultserver.Script, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), script.Environ(), "GORACE=atexit_sleep_ms=0") // or an end takes a second
	ownGroup(cmd)
	return cmd
}

// seen records the messages that a client has received, classified; large ones are only
// counted. Its fields are read through look and wait.
type seen struct {
	mu      sync.Mutex
	changed chan struct{} // replaced at each change

	answers map[string]int // by id
	methods map[string]int // of notifications
	last    []byte         // the latest answer, if it is not too long
	broken  int            // lines that begin like a message but are not one
	junk    int            // bytes in lines that are not messages
	partial int            // bytes of the line that has not ended
	bytes   int
	ended   bool // the connection, or the response
	cut     bool // and not well

	// over HTTP, of the latest response
	status int
	header http.Header
	events bool // messages came as events
	err    error
}

func newSeen() *seen {
	return &seen{changed: make(chan struct{}), answers: map[string]int{}, methods: map[string]int{}}
}

func (s *seen) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *seen) look(f func() bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f()
}

// within waits until f is true, and reports whether it became so in time.
func (s *seen) within(d time.Duration, f func() bool) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		s.mu.Lock()
		yes, changed := f(), s.changed
		s.mu.Unlock()
		if yes {
			return true
		}
		select {
		case <-changed:
		case <-timer.C:
			return false
		}
	}
}

func (s *seen) must(t testing.TB, what string, f func() bool) {
	t.Helper()
	if !s.within(patience, f) {
		s.mu.Lock()
		defer s.mu.Unlock()
		t.Fatalf("never came: %s; seen: %s", what, s.brief())
	}
}

func (s *seen) never(t testing.TB, what string, f func() bool) {
	t.Helper()
	if s.within(quiet, f) {
		s.mu.Lock()
		defer s.mu.Unlock()
		t.Fatalf("came: %s; seen: %s", what, s.brief())
	}
}

func (s *seen) brief() string {
	return fmt.Sprintf("answers %v, methods %v, broken %d, junk %d, partial %d, bytes %d, ended %t, cut %t, status %d, err %v, last %.200s",
		s.answers, s.methods, s.broken, s.junk, s.partial, s.bytes, s.ended, s.cut, s.status, s.err, s.last)
}

// longLine is the length from which a line is classified by its beginning and end.
const longLine = 2 << 20

var (
	answerHead = regexp.MustCompile(`^\{"jsonrpc":"2\.0","id":([^,]+),"(?:result|error)":`)
	noticeHead = regexp.MustCompile(`^\{"jsonrpc":"2\.0","method":"([^"]+)"`)
)

// line takes in a line; long ones lack their middle.
func (s *seen) line(line []byte, long bool) {
	line = bytes.TrimRight(line, "\r\n")
	whole := long && bytes.HasSuffix(line, []byte("}")) || json.Valid(line) || isDeep(line)
	answer, notice := answerHead.FindSubmatch(line), noticeHead.FindSubmatch(line)
	s.change(func() {
		s.partial = 0
		switch {
		case len(line) == 0:
		case whole && answer != nil:
			s.answers[string(answer[1])]++
			s.last = bytes.Clone(line)
		case whole && notice != nil:
			s.methods[string(notice[1])]++
		case bytes.HasPrefix(line, []byte("{")):
			s.broken++
		default:
			s.junk += len(line)
		}
	})
}

// isDeep reports whether a line is valid JSON except that it is too deep for
// encoding/json.
func isDeep(line []byte) bool {
	err := json.Unmarshal(line, new(json.RawMessage))
	return err != nil && strings.Contains(err.Error(), "max depth")
}

// read records lines until r ends. Events are the texts after "data:".
func (s *seen) read(r io.Reader, events bool) {
	buffer := make([]byte, 64<<10)
	var line []byte
	length := 0
	for {
		n, err := r.Read(buffer)
		s.change(func() { s.bytes += n })
		for part := range bytes.SplitAfterSeq(buffer[:n], []byte("\n")) {
			length += len(part)
			if len(line) > longLine { // keep the beginning and the end
				line = append(line[:longLine/2], part...)
			} else {
				line = append(line, part...)
			}
			if bytes.HasSuffix(part, []byte("\n")) {
				s.field(line, length > longLine, events)
				line, length = nil, 0
			}
		}
		s.change(func() { s.partial = length })
		if err != nil {
			if length > 0 && !events && s.look(func() bool { return s.status != 0 }) {
				s.field(line, length > longLine, events) // a body of JSON
			}
			s.change(func() { s.ended, s.cut = true, !errors.Is(err, io.EOF) })
			return
		}
	}
}

func (s *seen) field(line []byte, long, events bool) {
	if !events {
		s.line(line, long)
		return
	}
	if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
		s.line(data, long)
	} else if !bytes.HasPrefix(line, []byte("event: message")) {
		s.line(line, long)
	}
}

// client is a client of the server that knows no SDK.
type client interface {
	// send sends a message. What comes back is seen.
	send(message string)
	seen() *seen
}

func request(id int, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
}

// The requests of all tests, and their ids.
var (
	initialize  = request(1, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	listTools   = request(2, "tools/list", `{}`)
	callEffect  = request(3, "tools/call", `{"name":"effect","arguments":{"key":"k"},"_meta":{"progressToken":"t","io.github.consort-go/idempotency-key":"i"}}`)
	cancelCall  = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3,"reason":"enough"}}`
	readNote    = request(4, "resources/read", `{"uri":"fault://note"}`)
	ping        = request(9, "ping", `{}`)
)

func answered(s *seen, id string) func() bool { return func() bool { return s.answers[id] > 0 } }

// over stdio

type stdioClient struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	got    *seen
	stderr *lockedBuffer
	exited chan struct{} // closed when the process was waited for
}

func startStdio(t *testing.T, script faultserver.Script) *stdioClient {
	t.Helper()
	c := &stdioClient{t: t, cmd: program(script), got: newSeen(), stderr: new(lockedBuffer), exited: make(chan struct{})}
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stdin = stdin
	stdout, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	errors, inErrors, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.cmd.Stdout, c.cmd.Stderr = in, inErrors
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	inErrors.Close()
	var reading sync.WaitGroup
	reading.Go(func() { c.got.read(stdout, false) })
	reading.Go(func() { _, _ = io.Copy(c.stderr, errors) })
	reading.Go(func() { _ = c.cmd.Wait(); close(c.exited) })
	t.Cleanup(func() {
		killGroup(c.cmd) // with the children
		reading.Wait()
		stdout.Close()
		errors.Close()
	})
	return c
}

func (c *stdioClient) send(message string) { _, _ = io.WriteString(c.stdin, message+"\n") }
func (c *stdioClient) seen() *seen         { return c.got }

// waitExit waits for the end of the process.
func (c *stdioClient) waitExit() int {
	c.t.Helper()
	select {
	case <-c.exited:
		return c.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		c.t.Fatal("the process does not end")
		return 0
	}
}

func (c *stdioClient) running() bool {
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

// lockedBuffer counts written bytes and keeps the first ones.
type lockedBuffer struct {
	mu    sync.Mutex
	bytes []byte
	size  int
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.size += len(p)
	b.bytes = append(b.bytes, p[:min(len(p), max(0, 4096-len(b.bytes)))]...)
	return len(p), nil
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.bytes)
}

func (b *lockedBuffer) Size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.size
}

// over HTTP

type httpClient struct {
	t       *testing.T
	url     string
	http    *http.Client
	got     *seen // of the latest request, but notifications; see listen
	session string
	hello   *seen // of initialize, until its session is known
	mu      sync.Mutex
	work    sync.WaitGroup
	cancels []func()
}

func newHTTPClient(t *testing.T, url string) *httpClient {
	transport := new(http.Transport)
	c := &httpClient{t: t, url: url, got: newSeen(), http: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	t.Cleanup(func() {
		c.leave()
		c.work.Wait()
		transport.CloseIdleConnections()
	})
	return c
}

// leave gives up all requests that wait.
func (c *httpClient) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cancel := range c.cancels {
		cancel()
	}
}

func (c *httpClient) seen() *seen { return c.got }

// send posts a message. Each gets a fresh seen, but notifications.
func (c *httpClient) send(message string) {
	got := newSeen()
	if strings.Contains(message, `"id"`) {
		c.got = got
	}
	if c.session == "" && c.hello != nil && c.hello.look(func() bool { return c.hello.header != nil }) {
		c.session, c.hello = c.hello.header.Get("Mcp-Session-Id"), nil
	}
	c.do(http.MethodPost, message, got)
	if strings.Contains(message, `"initialize"`) {
		c.hello = got
	}
}

// listen opens the stream that a client keeps open.
func (c *httpClient) listen() *seen {
	got := newSeen()
	c.do(http.MethodGet, "", got)
	got.must(c.t, "a stream", func() bool { return got.status == http.StatusOK })
	return got
}

func (c *httpClient) do(method, message string, got *seen) {
	ctx, cancel := contextFor(c.t)
	c.mu.Lock()
	c.cancels = append(c.cancels, cancel)
	c.mu.Unlock()
	r, err := http.NewRequestWithContext(ctx, method, c.url, strings.NewReader(message))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	c.work.Go(func() {
		defer cancel()
		response, err := c.http.Do(r)
		if err != nil {
			got.change(func() { got.ended, got.cut, got.err = true, true, err })
			return
		}
		defer response.Body.Close()
		events := response.Header.Get("Content-Type") == "text/event-stream"
		got.change(func() { got.status, got.header, got.events = response.StatusCode, response.Header, events })
		got.read(response.Body, events)
	})
}

// processes and time

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// alive reports whether there is a process with this id.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func terminate(cmd *exec.Cmd) { _ = syscall.Kill(cmd.Process.Pid, syscall.SIGTERM) }

func contextFor(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 2*patience)
}

// eventually polls for a condition that has no notification.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came: %s", what)
		}
	}
}
