// SPDX-License-Identifier: Apache-2.0

//go:build unix

package killtable

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/files"
	"github.com/consort-go/consort/converse/history/postgres"
	"github.com/consort-go/consort/converse/history/sqlite"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/mcpadapter"
)

// Variable is the environment variable in which a child finds its [Spec].
const Variable = "CONSORT_KILLTABLE"

// Spec is what a child is told.
type Spec struct {
	Store        string // see OpenStore
	Engine       string
	Model, Tools string // where the servers are
	Conversation string
	// Settings is for engines that have to be told more.
	Settings string
	// Point is where the child dies; nil is nowhere. Stop makes it stand still
	// in place of that, until it is sent SIGCONT.
	Point *Point
	Stop  bool
	// Ask makes a question of what is in doubt.
	Ask bool
	// Defer makes the calls of one tool wait for somebody who allows them.
	Defer string
	// Parallel is how many calls run at a time; 0 is one.
	Parallel int
	// Offset is by how much the clock of the child is ahead.
	Offset time.Duration
}

// Child is a process with a conversation to hold.
type Child struct {
	Spec
	Store  history.Store // the one that the process dies by
	Model  converse.Model
	Roster *ensemble.Roster
}

// Engine carries the conversation of a child, which may be new, to its end, or
// to where it waits for somebody. It begins with [Child.Message] if that is not
// in the store.
type Engine func(ctx context.Context, child *Child) error

// Main is what TestMain begins with: in a child it holds the conversation, with
// the engine that the parent names, and ends the process with status 0; for
// others it does nothing.
func Main(engines map[string]Engine) {
	text := os.Getenv(Variable)
	if text == "" {
		return
	}
	if err := child(text, engines); err != nil {
		fmt.Fprintln(os.Stderr, "killtable:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func child(text string, engines map[string]Engine) error {
	c := &Child{}
	if err := json.Unmarshal([]byte(text), &c.Spec); err != nil {
		return err
	}
	engine, ok := engines[c.Engine]
	if !ok {
		return fmt.Errorf("there is no engine %q", c.Engine)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	store, err := OpenStore(c.Spec.Store)
	if err != nil {
		return err
	}
	defer store.Close()
	model, err := openaimodel.New("scripted", &openaimodel.Options{BaseURL: c.Spec.Model})
	if err != nil {
		return err
	}
	c.Store, c.Model = store, model
	if c.Point != nil {
		end := &death{Point: *c.Point, stop: c.Stop}
		c.Store, c.Model = newMortalStore(store, end), mortalModel{model, end}
	}
	source := mcpadapter.HTTP(c.Tools, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25"}})
	c.Roster, err = ensemble.NewRoster(ensemble.New("shop", source, &ensemble.Options{Trust: ensemble.TrustAll}))
	if err != nil {
		return err
	}
	defer c.Roster.Close(ctx)
	return engine(ctx, c)
}

// OpenStore opens a store by its kind and where it is, such as files:DIR,
// sqlite:FILE or postgres:DSN.
func OpenStore(place string) (history.Store, error) {
	kind, where, _ := strings.Cut(place, ":")
	switch kind {
	case "files":
		return files.Open(where, nil)
	case "sqlite":
		return sqlite.Open(where, nil)
	case "postgres":
		return postgres.Open(context.Background(), where, nil)
	}
	return nil, fmt.Errorf("there is no store of the kind %q", kind)
}

// Options are those of the child's conversation.
func (c *Child) Options() *converse.Options {
	doubt := converse.DoubtReport
	if c.Ask {
		doubt = converse.DoubtAsk
	}
	opts := &converse.Options{
		ID:     c.Conversation,
		Log:    c.Store,
		Doubt:  doubt,
		Now:    func() time.Time { return time.Now().Add(c.Offset) },
		Limits: converse.Limits{Parallel: cmp.Or(c.Parallel, 1)},
	}
	if c.Defer != "" {
		opts.Approve = c.approve
	}
	return opts
}

func (c *Child) approve(_ context.Context, ask converse.Approval) (converse.Decision, error) {
	if ask.Tool == c.Defer {
		return converse.Defer(0, ""), nil
	}
	return converse.Allow(), nil
}

// Message is what the user says, with the same identity each time.
func (c *Child) Message() canister.User {
	return canister.User{Head: canister.Head{ID: "message"}, Content: canister.Texts("Do what you have to, five times.")}
}

// Run is the engine that is none: the child itself takes the conversation up.
func Run(ctx context.Context, c *Child) error {
	talk := converse.New(c.Model, c.Roster, c.Options())
	defer talk.Close(ctx)
	if err := talk.Load(ctx); err != nil {
		return err
	}
	if len(talk.History()) == 0 {
		if err := talk.Add(ctx, c.Message()); err != nil {
			return err
		}
	}
	_, err := talk.Run(ctx)
	return err
}
