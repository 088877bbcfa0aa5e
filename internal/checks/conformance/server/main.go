// SPDX-License-Identifier: Apache-2.0

// Command server is the server under test for the protocol's conformance suite: local
// tools, resources and prompts in an ensemble of a roster, served as any program would
// serve its own. One handler serves all versions of the protocol. The server listens on a
// free port of the loopback interface, prints its URL, and exits when its standard input
// ends.
package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/internal/testing/stage"
	"github.com/consort-go/consort/mcpadapter/server"
	"go.uber.org/zap"
)

// farewell is how long running calls may take when the server shuts down.
const farewell = 5 * time.Second

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	updates := new(local.Updates)
	s := stage.New(library(updates), slices.Concat(contentTools(), reportingTools(), schemaTools(), askingTools())...)
	addChanges(s)
	roster, err := ensemble.NewRoster(ensemble.New("conformance", s, nil))
	if err != nil {
		return err
	}
	var told sync.WaitGroup
	defer told.Wait()
	told.Go(func() { tellUpdates(ctx, updates) })
	err = serve(ctx, roster, out)
	return errors.Join(err, roster.Close(context.WithoutCancel(ctx)))
}

// serve serves until ctx ends.
func serve(ctx context.Context, roster *ensemble.Roster, out io.Writer) error {
	srv := server.New(roster, &server.Options{
		Name: "consort-conformance", Version: "1.0.0", OwnNames: true, ShutdownTimeout: farewell, Logger: logger(),
	})
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	fmt.Fprintf(out, "http://localhost:%s/mcp\n", port)
	return srv.ServeListener(ctx, listener)
}

func logger() *zap.Logger {
	config := zap.NewDevelopmentConfig() // to standard error
	config.DisableStacktrace, config.DisableCaller = true, true
	config.Level.SetLevel(zap.WarnLevel)
	return must(config.Build())
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func mustBase64(text string) []byte { return must(base64.StdEncoding.DecodeString(text)) }

func describe(name string) string { return "What the conformance suite calls " + name + "." }
