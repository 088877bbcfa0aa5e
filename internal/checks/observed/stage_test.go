// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/consort-go/consort/mcpadapter/server"
)

// spansVariable makes this program a server over stdio that writes the spans
// that it made to the file of that name, when its client has gone.
const spansVariable = "CONSORT_TEST_SPANS"

func TestMain(m *testing.M) {
	if path := os.Getenv(spansVariable); path != "" {
		if err := serveStdio(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv(modelVariable) != "" {
		os.Exit(openaiserver.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	status := m.Run()
	if leftOver != "" {
		os.RemoveAll(leftOver)
	}
	os.Exit(status)
}

// patience bounds the waits of a test.
const patience = 60 * time.Second

type question struct {
	Place string `json:"place"`
}

// reporter is a tool that reports about a place, except one that it does not know.
func reporter(name string) invoker.Invoker {
	tool, err := invoker.New(name, "Tells the "+name+" of a place.", func(_ context.Context, q question) (string, error) {
		if q.Place == "Atlantis" {
			return "", invoker.Failf(invoker.NotFound, "There is no %s.", q.Place)
		}
		return name + " of " + q.Place + ": fair", nil
	}, nil)
	if err != nil {
		panic(err) // the types are wrong
	}
	return tool
}

func serveStdio(path string) error {
	seen, err := newRecorder("stdio", telemetry.Options{})
	if err != nil {
		return err
	}
	srv := server.New(nil, &server.Options{Tools: []invoker.Invoker{reporter("weather")}, Telemetry: seen.Telemetry})
	err = srv.Serve(context.Background(), os.Stdin, os.Stdout)
	return errors.Join(err, srv.Close(context.Background()), seen.write(path))
}

// servers are three, each over a transport of its own and with a tool of its own.
type servers struct {
	roster      *ensemble.Roster
	file        string // of the spans of the one over stdio
	http, grpc  *recorder
	closeRoster func()
}

// startServers starts them and makes the roster of the client.
func startServers(t *testing.T, client *telemetry.Telemetry, w watching) *servers {
	t.Helper()
	s := &servers{file: filepath.Join(t.TempDir(), "spans.json")}
	s.http, s.grpc = mustRecord(t, "http", telemetry.Options{Meters: w.meters}), mustRecord(t, "grpc", telemetry.Options{Meters: w.meters})
	overHTTP := server.New(nil, &server.Options{Tools: []invoker.Invoker{reporter("tides")}, Telemetry: s.http.Telemetry})
	overGRPC := grpctool.NewServer(nil, &grpctool.ServerOptions{Tools: []invoker.Invoker{reporter("traffic")}, Telemetry: s.grpc.Telemetry})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	options := &ensemble.Options{ConnectTimeout: mcpadapter.CommandConnectTimeout, Telemetry: client, Logger: w.log}
	s.roster, err = ensemble.NewRoster(
		ensemble.New("sky", mcpadapter.Stdio([]string{self}, &mcpadapter.StdioOptions{Environment: map[string]string{spansVariable: s.file}}), options),
		ensemble.New("sea", mcpadapter.HTTP("http://"+listen(t, overHTTP.ServeListener)+"/mcp", nil), options),
		ensemble.New("land", grpctool.Source(listen(t, overGRPC.Serve), &grpctool.Options{Plaintext: true}), options),
	)
	if err != nil {
		t.Fatal(err)
	}
	s.closeRoster = func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.roster.Close(ctx); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(s.closeRoster)
	return s
}

// listen serves on a free port of this machine until the test ends.
func listen(t *testing.T, serve func(context.Context, net.Listener) error) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// asks is a step in which the model calls tools, given as name and arguments.
func asks(calls ...string) openaiserver.Step {
	var step openaiserver.Step
	message := openaiserver.Message{Usage: &openaiserver.Usage{PromptTokens: 120, CompletionTokens: 30}}
	for pair := range slices.Chunk(calls, 2) {
		step.Expect.Offers = append(step.Expect.Offers, pair[0])
		message.Calls = append(message.Calls, openaiserver.Call{Name: pair[0], Arguments: pair[1]})
	}
	step.Reply = message
	return step
}

// says is a step in which the model answers after it has received some words.
func says(text string, told ...string) openaiserver.Step {
	return openaiserver.Step{
		Expect: openaiserver.Expect{Contains: told},
		Reply:  openaiserver.Message{Text: text, Usage: &openaiserver.Usage{PromptTokens: 200, CompletionTokens: 10}},
	}
}

// startModel starts a server that answers by a script, and fails the test if it
// was asked otherwise.
func startModel(t *testing.T, steps ...openaiserver.Step) (url string) {
	t.Helper()
	server, err := openaiserver.Start(openaiserver.Script{Steps: steps}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, fault := range server.Faults() {
			t.Error(fault)
		}
		server.Close()
	})
	return server.URL()
}
