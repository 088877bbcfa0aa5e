// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// suiteServer is a server of the SDK with the tools that the suite wants. Calls
// end with life at the latest.
func suiteServer(life context.Context) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "suite", Title: "The Suite", Version: "1.2"}, libraryOptions("Call wait last."))
	addLibrary(server)
	for _, tool := range ensembletest.ServerTools() {
		addTool(life, server, tool)
	}
	return server
}

// changeTools changes the tools as the suite expects.
func changeTools(server *mcp.Server) {
	addTool(context.Background(), server, suiteTool("late"))
	server.RemoveTools("fail")
}

// suiteTool is the suite's echo under another name.
func suiteTool(name string) invoker.Invoker {
	echo := ensembletest.Echo()
	echo.Def.Name = name
	return echo
}

func addTool(life context.Context, server *mcp.Server, tool invoker.Invoker) {
	d := tool.Definition()
	server.AddTool(&mcp.Tool{
		Name: d.Name, Description: d.Description, InputSchema: d.InputSchema,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: d.Hints.ReadOnly},
	}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		call := &invoker.Call{Arguments: req.Params.Arguments, Progress: reporter(ctx, req)}
		output, err := tool.Invoke(ctx, call)
		result := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: canister.TextOf(output.Content)}}}
		if err != nil {
			failure := invoker.AsFailure(err)
			result.IsError = true
			result.Content = []mcp.Content{&mcp.TextContent{Text: failure.Message + canister.TextOf(failure.Content)}}
		}
		return result, nil
	})
}

func reporter(ctx context.Context, req *mcp.CallToolRequest) func(invoker.Progress) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	return func(p invoker.Progress) {
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: p.Done, Total: p.Total, Message: p.Message,
		})
	}
}

// pidsVar names a directory in which the server process creates a file named after its
// process number; setting it makes this test binary that process.
const pidsVar = "MCPADAPTER_TEST_PIDS"

// TestServerProcess is not a test: it is the server of other tests.
func TestServerProcess(t *testing.T) {
	dir := os.Getenv(pidsVar)
	if dir == "" {
		t.Skip("is the server of other tests")
	}
	time.AfterFunc(2*time.Minute, func() { os.Exit(9) }) // should a test be killed
	server := suiteServer(t.Context())
	changes := make(chan os.Signal, 16)
	signal.Notify(changes, syscall.SIGHUP, syscall.SIGALRM, syscall.SIGQUIT)
	go func() {
		for change := range changes {
			switch change {
			case syscall.SIGHUP:
				changeTools(server)
			case syscall.SIGALRM:
				updateGreeting(server)
			case syscall.SIGQUIT:
				addLate(server)
			}
		}
	}()
	if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(os.Getpid())), nil, 0o600); err != nil {
		os.Exit(8)
	}
	err := server.Run(context.Background(), &mcp.StdioTransport{})
	if err != nil && !errors.Is(err, context.Canceled) {
		os.Exit(1)
	}
	os.Exit(0)
}

// serverProcess returns the command of such a server, and a function that signals all
// running ones.
func serverProcess(t *testing.T) (argv []string, env map[string]string, signalAll func(os.Signal)) {
	dir := t.TempDir()
	signalAll = func(sig os.Signal) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			pid, _ := strconv.Atoi(entry.Name())
			if process, err := os.FindProcess(pid); err == nil {
				_ = process.Signal(sig)
			}
		}
	}
	return []string{os.Args[0], "-test.run=^TestServerProcess$"},
		map[string]string{pidsVar: dir, "GORACE": "atexit_sleep_ms=0"}, signalAll
}
