// SPDX-License-Identifier: Apache-2.0

//go:build unix

package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/consort-go/consort/mcpadapter/server/internal/output"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// blockingPipe is a pipe whose writes cannot be interrupted, like those of standard
// output.
func blockingPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	var ends [2]int
	if err := syscall.Pipe(ends[:]); err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(ends[0])
	syscall.CloseOnExec(ends[1])
	return os.NewFile(uintptr(ends[0]), "reader"), os.NewFile(uintptr(ends[1]), "writer")
}

func pollablePipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

// A client that has stopped reading has its session ended, and does not hold up
// the end of the server.
func TestClientStopsReading(t *testing.T) {
	for name, pipe := range map[string]func(*testing.T) (r, w *os.File){"blocking": blockingPipe, "pollable": pollablePipe} {
		t.Run(name, func(t *testing.T) {
			core, logs := observer.New(zap.WarnLevel)
			server := New(nil, &Options{Logger: zap.New(core)})
			server.stall = 20 * time.Millisecond
			toServer, in := pollablePipe(t)
			out, fromServer := pipe(t)
			defer out.Close()
			defer in.Close()
			go func() { // until the server ends the stream
				for id, err := 1, error(nil); err == nil; id++ { // requests with an ID that is in use get no answer
					_, err = fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", id)
				}
			}()
			mcptest.Returns(t, "Serve", func() {
				if err := server.Serve(t.Context(), toServer, fromServer); !errors.Is(err, output.ErrNotReading) {
					t.Errorf("it returned %v", err)
				}
			})
			if said := logs.FilterMessage("a client has stopped reading: its session is ended").Len(); said != 1 {
				t.Errorf("the log says so %d times: %v", said, logs.All())
			}
			mcptest.Returns(t, "Close", func() {
				if err := server.Close(t.Context()); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		})
	}
}

// overStreams serves a tool with a large result within a bubble of synctest.
func overStreams(t *testing.T, ctx context.Context) (in io.WriteCloser, out io.ReadCloser, served <-chan error, server *Server) {
	large := newLocalTool(t, strings.Repeat("x", 1<<20))
	server = New(nil, &Options{Tools: []invoker.Invoker{large}})
	toServer, in := io.Pipe()
	out, fromServer := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, toServer, fromServer) }()
	return in, out, ended, server
}

func newLocalTool(t *testing.T, answer string) invoker.Invoker {
	t.Helper()
	tool, err := invoker.Raw(invoker.Definition{Name: "large"}, func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{Content: canister.Texts(answer)}, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

const callLarge = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"large"}}
`

// A client may read slowly, as long as it reads.
func TestClientReadsSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out, served, server := overStreams(t, t.Context())
		go func() { _, _ = io.WriteString(in, callLarge) }()
		lines := bufio.NewReaderSize(slowly{out}, output.Piece)
		began := time.Now()
		var answer struct {
			ID     int
			Result json.RawMessage
		}
		for answer.ID != 2 {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(line, &answer); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); len(answer.Result) < 1<<20 || took < 5*time.Minute {
			t.Errorf("%d bytes in %v", len(answer.Result), took)
		}
		_ = in.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		_ = server.Close(t.Context())
	})
}

// Little is read of a client that does not read its answers.
func TestClientReadsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out, served, server := overStreams(t, t.Context())
		const pings = 5 * output.MaxUnsent
		var sent atomic.Int64
		go func() {
			for i := range pings {
				_, _ = fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", i)
				sent.Add(1)
			}
		}()
		time.Sleep(wire.StallTimeout - time.Second)
		if n := sent.Load(); n < output.MaxUnsent || n > 3*output.MaxUnsent {
			t.Errorf("the server has read %d messages", n)
		}
		answers := bufio.NewScanner(out)
		for i := range pings {
			if !answers.Scan() {
				t.Fatalf("%d answers, %v", i, answers.Err())
			}
		}
		_ = in.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		_ = server.Close(t.Context())
	})
}

// slowly reads a piece every 50 s.
type slowly struct{ io.Reader }

func (r slowly) Read(p []byte) (int, error) {
	time.Sleep(50 * time.Second)
	return r.Reader.Read(p)
}

// The time of a client that reads nothing is a minute; the end of the server
// waits for less.
func TestClientReadsNothing(t *testing.T) {
	for name, want := range map[string]struct {
		end  func(cancel func(), server *Server) // after 10 s
		took time.Duration
		err  error
	}{
		"for a minute":         {func(func(), *Server) {}, wire.StallTimeout, output.ErrNotReading},
		"and the context ends": {func(cancel func(), _ *Server) { cancel() }, 10*time.Second + wire.EndTimeout, context.Canceled},
		"and the server is ended": {
			func(_ func(), server *Server) { _ = server.Close(context.Background()) }, 10*time.Second + 2*wire.EndTimeout, output.ErrNotReading,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				in, _, served, server := overStreams(t, ctx)
				defer time.AfterFunc(10*time.Second, func() { want.end(cancel, server) }).Stop()
				began := time.Now()
				go func() { _, _ = io.WriteString(in, callLarge) }()
				if err := <-served; !errors.Is(err, want.err) {
					t.Errorf("Serve returned %v", err)
				}
				if took := time.Since(began); took != want.took {
					t.Errorf("it took %v", took)
				}
				_ = server.Close(t.Context())
				cancel()
			})
		})
	}
}
