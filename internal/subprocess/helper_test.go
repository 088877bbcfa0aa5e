// SPDX-License-Identifier: Apache-2.0

//go:build unix

package subprocess

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/testing/mcptest"
)

// patience bounds each wait of these tests; none waits for it to pass.
const patience = 20 * time.Second

// helperVar makes this test binary a server that misbehaves as it says.
const helperVar = "SUBPROCESS_TEST_SERVER"

// helpers are the servers, by name. What each does after its misdeed is to
// answer requests.
var helpers = map[string]func(){
	"plain": func() {},
	"banner": func() {
		fmt.Print("Server running on stdio\n\n{\"level\":\"info\"}\n\x1b[32mready\x1b[0m\n")
	},
	"endless-line": func() {
		fmt.Print(`{"jsonrpc":"2.0","id":1,"result":"`)
		block := strings.Repeat("x", 1<<20)
		for range 100 {
			if _, err := fmt.Print(block); err != nil {
				os.Exit(1)
			}
		}
		blockForEver()
	},
	"endless-noise": func() {
		block := strings.Repeat("noise ", 1<<17)
		for range 100 {
			fmt.Print(block)
		}
		fmt.Println()
	},
	"half-message": func() {
		fmt.Print(`{"jsonrpc":"2.0","id":1,"resu`)
		os.Exit(0)
	},
	"close-stdout": func() {
		os.Stdout.Close()
		blockForEver()
	},
	"flood-stderr": func() {
		line := strings.Repeat("e", 1023) + "\n"
		for range 10 << 10 {
			fmt.Fprint(os.Stderr, line)
		}
		fmt.Fprintln(os.Stderr, "the last line")
	},
	"deaf": func() { blockForEver() },
	"going-deaf": func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		fmt.Println(`{"jsonrpc":"2.0","method":"notifications/heard"}`)
		blockForEver()
	},
	"stubborn": func() {
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
		fmt.Println(`{"jsonrpc":"2.0","method":"notifications/ready"}`)
		blockForEver()
	},
	// Its child holds stdin, stdout and stderr and ignores every signal that it can.
	"parent": func() {
		child := helperProcess(cmp.Or(os.Getenv("SUBPROCESS_TEST_CHILD"), "stubborn"))
		if err := child.Start(); err != nil {
			panic(err)
		}
		go child.Wait()
		fmt.Fprintf(os.Stderr, "child %d\n", child.Process.Pid)
	},
	// It starts a server and waits to be killed.
	"embedder": func() {
		p, conn, err := open(context.Background(), helperCommand(os.Getenv("SUBPROCESS_TEST_CHILD")), 1<<20)
		if err != nil {
			panic(err)
		}
		if _, err := conn.Read(context.Background()); err != nil { // or its first write kills it
			panic(err)
		}
		fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/child","params":{"pid":%d}}`+"\n", p.cmd.Process.Pid)
		select {}
	},
}

func blockForEver() { select {} }

// TestHelperServer is not a test: the subprocesses run it.
func TestHelperServer(t *testing.T) {
	act := helpers[os.Getenv(helperVar)]
	if act == nil {
		t.Skip("is the server of other tests")
	}
	time.AfterFunc(2*time.Minute, func() { os.Exit(9) }) // should a test be killed
	act()
	answer()
	os.Exit(0)
}

// answer answers requests until stdin ends: with the method, or, to "exit",
// by exiting with the status asked for.
func answer() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 32<<20)
	for lines.Scan() {
		var request struct {
			ID     any
			Method string
			Params []int
		}
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil || request.ID == nil {
			continue
		}
		if request.Method == "exit" {
			fmt.Fprintln(os.Stderr, "going down\npanic: out of cheese")
			os.Exit(request.Params[0])
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%v,"result":{"method":%q}}`+"\n", request.ID, request.Method)
	}
}

func helperProcess(name string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelperServer$")
	cmd.Env = append(os.Environ(), helperVar+"="+name)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd
}

func helperCommand(name string) Command {
	return Command{
		Name:  name,
		Argv:  []string{os.Args[0], "-test.run=^TestHelperServer$"},
		Env:   SafeEnv(map[string]string{helperVar: name, "GORACE": "atexit_sleep_ms=0", "SUBPROCESS_TEST_CHILD": os.Getenv("SUBPROCESS_TEST_CHILD")}),
		Grace: patience, // so that a step too many shows as a time-out
	}
}

// wrapped makes c a child of a shell that does not replace itself by it.
func wrapped(c Command) Command {
	c.Argv = []string{"sh", "-c", fmt.Sprintf("%q %q; true", c.Argv[0], c.Argv[1])}
	return c
}

// message is a message of JSON-RPC.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      int             `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
}

// connection reads and writes messages of a process.
type connection struct {
	p          *Process
	messages   chan message
	maxMessage int
}

func (c *connection) read(p *Process, stdout io.Reader) error {
	lines := NewLineReader(stdout, c.maxMessage)
	for {
		line, err := lines.Next()
		if err != nil {
			return err
		}
		var m message
		if json.Unmarshal(line, &m) != nil || m.Version == "" {
			p.Stray(line)
			continue
		}
		select {
		case c.messages <- m:
			p.Delivered()
		case <-p.Lost():
			return nil
		}
	}
}

func (c *connection) Read(ctx context.Context) (message, error) {
	select {
	case m := <-c.messages:
		return m, nil
	case <-ctx.Done():
		return message{}, ctx.Err()
	case <-c.p.Lost():
		return message{}, cmp.Or(c.p.Err(), io.EOF)
	}
}

func (c *connection) Write(ctx context.Context, m message) error {
	data, err := json.Marshal(m)
	if err == nil {
		_, err = c.p.Write(ctx, append(data, '\n'))
	}
	return err
}

// open starts c and connects to it.
func open(ctx context.Context, c Command, maxMessage int) (*Process, *connection, error) {
	conn := &connection{messages: make(chan message), maxMessage: maxMessage}
	c.Output = conn.read
	p, err := c.Start(ctx)
	conn.p = p
	return p, conn, err
}

// launch starts and connects c; at the end of the test nothing may be left.
func launch(t *testing.T, c Command) (*Process, *connection) {
	t.Helper()
	return launchBounded(t, c, 16<<20)
}

// launchBounded bounds the messages too.
func launchBounded(t *testing.T, c Command, maxMessage int) (*Process, *connection) {
	t.Helper()
	mcptest.NoLeaks(t)
	p, conn, err := open(t.Context(), c, maxMessage)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p, conn
}

// running reports whether a process is there and no zombie.
func running(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return runtime.GOOS != "linux" && syscall.Kill(pid, 0) == nil
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func request(t *testing.T, id int, method string, params any) message {
	t.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	return message{Version: "2.0", ID: id, Method: method, Params: raw}
}

// roundTrip sends a request and reads one message.
func roundTrip(t *testing.T, conn *connection, id int, method string, params any) (message, error) {
	t.Helper()
	if err := conn.Write(within(t), request(t, id, method, params)); err != nil {
		return message{}, err
	}
	return conn.Read(within(t))
}

// mustAnswer checks that the server answers.
func mustAnswer(t *testing.T, conn *connection) {
	t.Helper()
	msg, err := roundTrip(t, conn, 7, "ping", nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(msg.Result), "ping") {
		t.Fatalf("got %#v, want the answer to ping", msg)
	}
}

// mustClose closes p in less time than any grace period.
func mustClose(t *testing.T, p *Process) {
	t.Helper()
	begin := time.Now()
	if err := p.Close(within(t)); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > patience/2 {
		t.Errorf("closing took %s", took)
	}
	if !p.hasExited() || p.groupAlive() {
		t.Error("a process of the group is left after close")
	}
}
