// SPDX-License-Identifier: Apache-2.0

//go:build linux

package command

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// halfSentVar is how many connections of clients that fall silent each listener
// gets, such as 20000. With more than 500 the times are checked too, and the
// clients stay until the server ends them.
const halfSentVar = "CONSORT_TEST_HALF_SENT"

// The tokens of the client that falls silent, and of the other one.
const halfSentToken, wholeToken = "half-0123456789abcdef", "whole-0123456789abcdef"

// target is a listener, what its silent clients send, and a request of another.
type target struct {
	name   string
	flag   string
	shapes []string
	ask    func(ctx context.Context, address string) error
}

func targets() []target {
	authorized := "Authorization: Bearer " + halfSentToken + "\r\n"
	post := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
	return []target{
		{"http", "--http", []string{
			"",
			"POST /mc",
			post + "X-A: b",
			post + "Content-Length: 10\r\n\r\n",
			post + "Authorization: Bearer wrong-0123456789abcdef\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nab",
			"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc",
			"PUT /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n",
			"DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n" + authorized + "Content-Length: 10\r\n\r\n",
			post + authorized + "Content-Length: 4000000\r\n\r\n" + strings.Repeat(" ", 3000),
			post + "Content-Length: 2\r\n\r\n{}" + post,
		}, askHTTP},
		{"health", "--health", []string{
			"",
			"GET /ready",
			"GET /readyz HTTP/1.1\r\nHost: localhost\r\nX-A: b",
			"GET /readyz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n",
			"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n",
			"GET /health/mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n",
			"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nabc",
			"GET /livez HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 10\r\n\r\n",
			"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\nGE",
			"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n",
		}, askHealth},
		{"grpc", "--grpc", grpcShapes(), askGRPC},
	}
}

// grpcShapes are beginnings of HTTP/2 (RFC 9113) and of requests of gRPC.
func grpcShapes() []string {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	settings := http2Frame(4, 0, 0, "")
	call := func(path string, fields ...string) string {
		return http2Headers(append([]string{
			":method", "POST", ":scheme", "http", ":path", path, ":authority", "localhost", "content-type", "application/grpc", "te", "trailers",
		}, fields...)...)
	}
	const listTools, bearer = "/consort.tools.v1.McpToolService/ListTools", "Bearer " + halfSentToken
	known := preface + settings + http2Frame(1, 4, 1, call(listTools, "authorization", bearer))
	return []string{
		"",
		preface[:10],
		preface,
		preface + settings[:5],
		preface + settings,
		preface + settings + http2Frame(1, 4, 1, call(listTools)),
		preface + settings + http2Frame(1, 0, 1, call(listTools)[:20]), // to be continued
		known,
		known + http2Frame(0, 0, 1, "\x00\x00\x3f\x00\x00abc"), // 3 bytes of 4 MB
		preface + settings + http2Frame(1, 4, 1, call("/grpc.health.v1.Health/Watch")),
	}
}

func http2Frame(kind, flags byte, stream uint32, payload string) string {
	n := len(payload)
	return string([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags, byte(stream >> 24), byte(stream >> 16), byte(stream >> 8), byte(stream)}) + payload
}

// http2Headers writes fields as literals (RFC 7541, section 6.2.2).
func http2Headers(fields ...string) string {
	var text strings.Builder
	for i := 0; i < len(fields); i += 2 {
		text.WriteString("\x00" + string([]byte{byte(len(fields[i]))}) + fields[i] + string([]byte{byte(len(fields[i+1]))}) + fields[i+1])
	}
	return text.String()
}

func askHTTP(ctx context.Context, address string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+wholeToken)
	return askFor(r)
}

func askHealth(ctx context.Context, address string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return err
	}
	return askFor(r)
}

// askFor sends a request over a connection of its own.
func askFor(r *http.Request) error {
	r.Close = true
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s, %s, %v", response.Status, text, err)
	}
	return nil
}

func askGRPC(ctx context.Context, address string) error {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+wholeToken)
	_, err = toolspb.NewMcpToolServiceClient(connection).ListTools(ctx, &toolspb.ListToolsRequest{})
	return err
}

// halfSentServer is a process with one listener of interest.
type halfSentServer struct {
	cmd     *exec.Cmd
	stderr  text
	address string
}

func startHalfSent(t *testing.T, of target) *halfSentServer {
	t.Helper()
	s := &halfSentServer{}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	t.Cleanup(cancel)
	args := []string{
		"serve", "--config", file(t, atlas(0),
			"[serve]\nhttp = \"127.0.0.1:0\"\nclients = [{token = \""+halfSentToken+"\"}, {token = \""+wholeToken+"\"}]\n"), of.flag, "127.0.0.1:0",
	}
	s.cmd = run{}.command(ctx, t, args...)
	s.cmd.Env = append(s.cmd.Env, "GOTRACEBACK=all")
	s.cmd.Stderr = &s.stderr
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill() })
	says := map[string]string{"http": "serving at http://", "health": "health at http://", "grpc": "serving gRPC at "}[of.name]
	pattern := regexp.MustCompile(says + `([0-9.:]+)`)
	waitFor(t, "an address", func() bool { return pattern.MatchString(s.stderr.String()) })
	s.address = pattern.FindStringSubmatch(s.stderr.String())[1]
	waitFor(t, "an answer", func() bool { return of.ask(t.Context(), s.address) == nil })
	return s
}

// files is how many the process has open.
func (s *halfSentServer) files(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// memory is the resident memory in MiB.
func (s *halfSentServer) memory(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	kib, _ := strconv.Atoi(regexp.MustCompile(`VmRSS:\s+(\d+)`).FindStringSubmatch(string(status))[1])
	return kib >> 10
}

// await waits longer than waitFor: the runtime gives memory back at its leisure.
func (s *halfSentServer) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * limit); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("there was never %s", what)
			return
		}
	}
}

// measure returns the 99th percentile of the time that an answer takes.
func (s *halfSentServer) measure(t *testing.T, of target, n int) time.Duration {
	t.Helper()
	var took []time.Duration
	failed, last := 0, error(nil)
	for range n {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		began := time.Now()
		if err := of.ask(ctx, s.address); err != nil {
			failed, last = failed+1, err
		}
		took = append(took, time.Since(began))
		cancel()
	}
	if failed > 0 {
		t.Errorf("%d of %d requests of another client failed: %v", failed, n, last)
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

// silent are clients that send the half of something.
type silent struct {
	mu    sync.Mutex
	conns map[net.Conn]bool
	over  sync.WaitGroup
}

// connect opens n connections from many addresses, with all shapes.
func (c *silent) connect(address string, shapes []string, n int) {
	next := make(chan int)
	var dialers sync.WaitGroup
	for range 32 {
		dialers.Go(func() {
			for i := range next {
				from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i/10%40))}, Timeout: limit}
				conn, err := from.Dial("tcp", address)
				if err != nil {
					continue // refused, which is as good
				}
				c.mu.Lock()
				c.conns[conn] = true
				c.mu.Unlock()
				_, _ = io.WriteString(conn, shapes[i%len(shapes)])
				c.over.Go(func() {
					_, _ = io.Copy(io.Discard, conn) // until the server ends it
					_ = conn.Close()
					c.mu.Lock()
					delete(c.conns, conn)
					c.mu.Unlock()
				})
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	dialers.Wait()
}

func (c *silent) open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns)
}

func (c *silent) leave() {
	c.mu.Lock()
	for conn := range c.conns {
		_ = conn.Close()
	}
	c.mu.Unlock()
	c.over.Wait()
}

// Clients that send half of a request and stop, in ten variants, delay no other client,
// leave nothing behind, and do not delay the shutdown.
func TestHalfSentRequests(t *testing.T) {
	t.Parallel()
	n, _ := strconv.Atoi(os.Getenv(halfSentVar))
	isLarge := n > 500
	if !isLarge {
		n = 500
	}
	for _, of := range targets() {
		t.Run(of.name, func(t *testing.T) {
			s := startHalfSent(t, of)
			requests := map[bool]int{true: 1000, false: 20}[isLarge]
			s.measure(t, of, requests/10)
			usual, files, memory := s.measure(t, of, requests), s.files(t), s.memory(t)

			clients := &silent{conns: make(map[net.Conn]bool)}
			began := time.Now()
			opened := make(chan time.Duration, 1)
			go func() {
				clients.connect(s.address, of.shapes, n)
				opened <- time.Since(began)
			}()
			during := s.measure(t, of, requests)
			openedIn, held, heldFiles, heldMemory := <-opened, clients.open(), s.files(t), s.memory(t)
			if isLarge { // the refused ones end
				time.Sleep(5 * time.Second)
			}
			stay, under := clients.open(), s.measure(t, of, requests)
			if isLarge && of.name != "grpc" { // which answers pings for as long as a client sends them
				s.await(t, "an end of silent clients", func() bool { return clients.open() == 0 })
			}
			ended := time.Since(began)
			clients.leave()
			s.await(t, fmt.Sprintf("as few files as %d", files), func() bool { return s.files(t) <= files+2 })
			if isLarge {
				s.await(t, fmt.Sprintf("as little memory as %d MiB", memory), func() bool { return s.memory(t) <= memory*3/2 })
			}
			after := s.measure(t, of, requests)
			if isLarge && under > 3*max(usual, after) {
				t.Errorf("the 99th percentile is %v, without silent clients %v and %v", under, usual, after)
			}
			t.Logf("%d connections in %v; %d open at once, %d 5 s later; all over after %v", n, openedIn, held, stay, ended)
			t.Logf("p99 before %v, while they connect %v, while they are silent %v, after %v", usual, during, under, after)
			t.Logf("files %d, %d, %d; memory %d, %d, %d MiB, at rest after %v", files, heldFiles, s.files(t), memory,
				heldMemory, s.memory(t), time.Since(began))
			s.dump(t)
		})
		t.Run(of.name+" ends", func(t *testing.T) {
			s := startHalfSent(t, of)
			clients := &silent{conns: make(map[net.Conn]bool)}
			clients.connect(s.address, of.shapes, 100)
			began := time.Now()
			if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			_ = s.cmd.Wait()
			took := time.Since(began)
			clients.leave()
			t.Logf("it took %v to end", took)
			if took > 15*time.Second {
				t.Errorf("it took %v to end", took)
			}
		})
	}
}

// dump ends the process with its stacks: there are as few as there were.
func (s *halfSentServer) dump(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait()
	goroutines := strings.Count(s.stderr.String(), "\ngoroutine ")
	t.Logf("%d goroutines", goroutines)
	if goroutines == 0 || goroutines > 100 {
		t.Errorf("%d goroutines are left: %.20000s", goroutines, s.stderr.String())
	}
}
