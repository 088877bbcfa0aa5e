// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/temporal/internal/temporalserver"
	"github.com/consort-go/consort/internal/testing/killtable"
	"github.com/consort-go/consort/internal/testing/pgtest"
	"go.temporal.io/sdk/worker"
)

// A worker is killed at every step of a conversation, and another one carries it
// on when the heartbeats have failed to come: the columns of docs/durability.md.
func TestKilledAtEveryStep(t *testing.T) {
	address := temporalserver.Start(t, os.Getenv("CONSORT_TEMPORAL_STORE"))
	for i, column := range columns(t, address) {
		column.Engine, column.Parallel, column.API = "temporal", 12, i
		column.Test(t, "../../docs/durability.md")
	}
}

// columns returns one for each store. The conversations in PostgreSQL share a store.
func columns(t *testing.T, address string) []killtable.Column {
	shared := pgtest.DSN(t)
	all := []killtable.Column{
		{Name: "PostgreSQL, Temporal", Store: func(testing.TB) string { return "postgres:" + shared }},
		{Name: "SQLite, Temporal", Store: func(tb testing.TB) string { return "sqlite:" + killtable.In(tb, "talks.db") }},
		{Name: "files, Temporal", Store: func(tb testing.TB) string { return "files:" + killtable.In(tb, "store") }},
	}
	for i := range all {
		all[i].Settings = func(testing.TB) string { return address + " " + rand.Text() }
	}
	return all
}

// A worker that runs a program of 20 calls is killed, and another one carries the program on:
// the value is the same, and each effect happens once, or its outcome is unknown.
func TestKilledPrograms(t *testing.T) {
	address := temporalserver.Start(t, os.Getenv("CONSORT_TEMPORAL_STORE"))
	stores, first, step := columns(t, address), 2, 3 // the first canister is the person's message
	if !killtable.Many() {
		stores, first, step = stores[:1], 20, 40
	}
	for i, column := range stores {
		t.Run(column.Name, func(t *testing.T) {
			column.Engine, column.Parallel = "program", 6
			column.TestPrograms(t, first+i, step)
		})
	}
}

// killedWorker is the child of the kill table: a worker, and an engine that repeats the
// message each time. Its settings are the address of the server and a queue for the
// children of one conversation only.
func killedWorker(ctx context.Context, c *killtable.Child) error {
	// A worker reads all of its program when it starts, for a sum that names it, and
	// this one is large: without that a child takes a third of the time.
	worker.SetBinaryChecksum("killed")
	address, name, _ := strings.Cut(c.Settings, " ")
	connection, err := dial(address)
	if err != nil {
		return err
	}
	defer connection.Close()
	open := func(context.Context, string) (*converse.Conversation, error) {
		return converse.New(c.Model, c.Roster, c.Options()), nil
	}
	stream := engine.NewStream()
	w, err := NewWorker(connection, c.Store, open, &WorkerOptions{
		Queue: name, Prefix: name + "/", Stream: stream,
		// With a dozen at a time a child that lives may stand still for a second.
		Heartbeat: 2500 * time.Millisecond, Backoff: 50 * time.Millisecond, Grace: time.Second, Sweep: -1,
	})
	if err != nil {
		return err
	}
	e, err := NewEngine(connection, c.Store, &Options{Queue: name, Prefix: name + "/", Stream: stream, Poll: 50 * time.Millisecond})
	if err == nil {
		err = e.Send(ctx, c.Conversation, c.Message())
	}
	if err == nil {
		err = errors.Join(killtable.Watch(ctx, e, c.Conversation), e.Close(ctx))
	}
	return errors.Join(err, w.Close())
}
