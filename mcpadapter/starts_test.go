// SPDX-License-Identifier: Apache-2.0

//go:build unix

package mcpadapter_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// burnVar makes this test binary a server that uses so much processor time before
// it serves; with burnOnly it ends then.
const (
	burnVar  = "MCPADAPTER_TEST_BURN"
	burnOnly = "MCPADAPTER_TEST_BURN_ONLY"
)

// TestBurningServer is not a test: it is the server of the next one.
func TestBurningServer(t *testing.T) {
	cpu, err := time.ParseDuration(os.Getenv(burnVar))
	if err != nil {
		t.Skip("is the server of another test")
	}
	time.AfterFunc(5*time.Minute, func() { os.Exit(9) }) // should a test be killed
	for used := time.Duration(0); used < cpu; {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			os.Exit(8)
		}
		used = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	if os.Getenv(burnOnly) != "" {
		os.Exit(0)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "burning", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "read"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	_ = server.Run(context.Background(), &mcp.StdioTransport{})
	os.Exit(0)
}

// Servers that each need the processor for a while to start all connect, each in its
// own time, with any protocol, and in about the time that the processors need for the
// work. That time is measured with processes that do only the work, as many at a time
// as there are processors: on a machine that has other work both take longer.
//
//	MCPADAPTER_TEST_SERVERS=50 MCPADAPTER_TEST_CPU=1s go test -run TestManyServersStart -v ./mcpadapter
func TestManyServersStart(t *testing.T) {
	count, cpu := 8, 100*time.Millisecond
	large := os.Getenv("MCPADAPTER_TEST_SERVERS") != ""
	if large {
		count, _ = strconv.Atoi(os.Getenv("MCPADAPTER_TEST_SERVERS"))
		cpu, _ = time.ParseDuration(os.Getenv("MCPADAPTER_TEST_CPU"))
	}
	var ideal time.Duration
	if large {
		ideal = burning(t, count, cpu)
		t.Logf("the work alone takes %s, by the number of processors %s", ideal, cpu*time.Duration(count)/time.Duration(runtime.GOMAXPROCS(0)))
	}
	for _, protocol := range []string{"", "2025-11-25"} {
		var all []*ensemble.Ensemble
		for i := range count {
			source := mcpadapter.Stdio([]string{os.Args[0], "-test.run=^TestBurningServer$"}, &mcpadapter.StdioOptions{
				ClientOptions: mcpadapter.ClientOptions{Protocol: protocol},
				Environment:   map[string]string{burnVar: cpu.String(), "GORACE": "atexit_sleep_ms=0", "GOMAXPROCS": "1"},
			})
			all = append(all, ensemble.New(fmt.Sprint("s", i), source, &ensemble.Options{ConnectTimeout: mcpadapter.CommandConnectTimeout}))
		}
		roster, err := ensemble.NewRoster(all...)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := roster.Connect(t.Context()); err != nil {
			t.Errorf("protocol %q: %v", protocol, err)
		}
		took := time.Since(began)
		slowest := time.Duration(0)
		for _, e := range all {
			if e.Snapshot().State != ensemble.Ready {
				t.Errorf("protocol %q: %s is %s", protocol, e.Name(), e.Snapshot().State)
			}
			slowest = max(slowest, e.Snapshot().ConnectDuration)
		}
		if large {
			t.Logf("protocol %q: %d servers in %s, %.2f of the work alone; the slowest start took %s", protocol, count, took,
				float64(took)/float64(ideal), slowest)
		}
		if large && took > ideal*13/10 {
			t.Errorf("that is more than 1.3 of the work alone")
		}
		if err := roster.Close(mcptest.Within(t)); err != nil {
			t.Error(err)
		}
	}
}

// burning measures how long the processes of the servers take that do nothing but
// burn.
func burning(t *testing.T, count int, cpu time.Duration) time.Duration {
	t.Helper()
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	began := time.Now()
	var all sync.WaitGroup
	for range count {
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			cmd := exec.Command(os.Args[0], "-test.run=^TestBurningServer$")
			cmd.Env = append(os.Environ(), burnVar+"="+cpu.String(), burnOnly+"=1", "GORACE=atexit_sleep_ms=0", "GOMAXPROCS=1")
			if err := cmd.Run(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	return time.Since(began)
}
