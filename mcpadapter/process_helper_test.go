// SPDX-License-Identifier: Apache-2.0

//go:build unix

package mcpadapter

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// patience bounds each wait of these tests; none waits for it to pass.
const patience = 20 * time.Second

// helperVar makes this test binary a server that misbehaves as it says.
const helperVar = "MCPADAPTER_TEST_SERVER"

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
	// Its child holds stdin, stdout and stderr and ignores what it can.
	"parent": func() {
		child := helperProcess(cmp.Or(os.Getenv("MCPADAPTER_TEST_CHILD"), "stubborn"))
		if err := child.Start(); err != nil {
			panic(err)
		}
		go child.Wait()
		fmt.Fprintf(os.Stderr, "child %d\n", child.Process.Pid)
	},
	"sdk": func() {
		server := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
		type name struct{ Name string }
		mcp.AddTool(server, &mcp.Tool{Name: "greet"}, func(_ context.Context, _ *mcp.CallToolRequest, in name) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello " + in.Name}}}, nil, nil
		})
		mcp.AddTool(server, &mcp.Tool{Name: "crash"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			fmt.Fprintln(os.Stderr, "panic: out of cheese")
			os.Exit(3)
			return nil, nil, nil
		})
		if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	},
	// It starts a server with our transport and waits to be killed.
	"embedder": func() {
		p, err := helperCommand(os.Getenv("MCPADAPTER_TEST_CHILD")).start(context.Background())
		if err != nil {
			panic(err)
		}
		conn, _ := p.Connect(context.Background())
		if _, err := conn.Read(context.Background()); err != nil { // or its first write kills it
			panic(err)
		}
		fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/child","params":{"pid":%d}}`+"\n", p.cmd.Process.Pid)
		select {}
	},
}

func blockForEver() { select {} }

// TestHelperServer is no test: it is what the subprocesses run.
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

func helperCommand(name string) command {
	return command{
		name:  name,
		argv:  []string{os.Args[0], "-test.run=^TestHelperServer$"},
		env:   safeEnv(map[string]string{helperVar: name, "GORACE": "atexit_sleep_ms=0", "MCPADAPTER_TEST_CHILD": os.Getenv("MCPADAPTER_TEST_CHILD")}),
		grace: patience, // so that a step too many shows as a time-out
	}
}

// wrapped makes c a child of a shell that does not replace itself by it.
func wrapped(c command) command {
	c.argv = []string{"sh", "-c", fmt.Sprintf("%q %q; true", c.argv[0], c.argv[1])}
	return c
}

// launch starts and connects c; at the end of the test nothing may be left.
func launch(t *testing.T, c command) (*process, mcp.Connection) {
	t.Helper()
	account(t)
	p, err := c.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	conn, err := p.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p, conn
}

// account fails the test if goroutines or files are more in the end than now.
func account(t *testing.T) {
	t.Helper()
	if r, w, err := os.Pipe(); err == nil { // the first opens files of the runtime's own
		r.Close()
		w.Close()
	}
	goroutines, files := runtime.NumGoroutine(), len(openFiles())
	t.Cleanup(func() {
		if !eventually(func() bool { return runtime.NumGoroutine() <= goroutines }) {
			var stacks strings.Builder
			_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
			t.Errorf("%d goroutines, %d at the start:\n%s", runtime.NumGoroutine(), goroutines, &stacks)
		}
		if !eventually(func() bool { return len(openFiles()) <= files }) {
			t.Errorf("%d files at the start, now: %q", files, openFiles())
		}
	})
}

// openFiles lists the files of this process, or none where one cannot see them.
func openFiles() (files []string) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, entry := range entries {
		file, _ := os.Readlink("/proc/self/fd/" + entry.Name())
		files = append(files, file)
	}
	return files
}

// eventually reports whether a condition came true in time.
func eventually(condition func() bool) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if condition() {
			return true
		}
	}
	return condition()
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

func request(t *testing.T, id int, method string, params any) *jsonrpc.Request {
	t.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	key, err := jsonrpc.MakeID(float64(id))
	if err != nil {
		t.Fatal(err)
	}
	return &jsonrpc.Request{ID: key, Method: method, Params: raw}
}

// roundTrip sends a request and reads one message.
func roundTrip(t *testing.T, conn mcp.Connection, id int, method string, params any) (jsonrpc.Message, error) {
	t.Helper()
	if err := conn.Write(within(t), request(t, id, method, params)); err != nil {
		return nil, err
	}
	return conn.Read(within(t))
}

// mustAnswer checks that the server answers.
func mustAnswer(t *testing.T, conn mcp.Connection) {
	t.Helper()
	msg, err := roundTrip(t, conn, 7, "ping", nil)
	if err != nil {
		t.Fatal(err)
	}
	if response, ok := msg.(*jsonrpc.Response); !ok || !strings.Contains(string(response.Result), "ping") {
		t.Fatalf("got %#v, want the answer to ping", msg)
	}
}

// mustClose closes p within a time in which no grace period passes.
func mustClose(t *testing.T, p *process) {
	t.Helper()
	begin := time.Now()
	if err := p.close(within(t)); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > patience/2 {
		t.Errorf("closing took %s", took)
	}
	if !p.hasExited() || p.groupAlive() {
		t.Error("a process of the group is left after close")
	}
}
