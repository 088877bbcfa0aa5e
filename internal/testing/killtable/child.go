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
	"github.com/consort-go/consort/converse/anthropicmodel"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/files"
	"github.com/consort-go/consort/converse/history/postgres"
	"github.com/consort-go/consort/converse/history/sqlite"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/mcpadapter"
)

// Variable is the environment variable that passes a child its [Spec].
const Variable = "CONSORT_KILLTABLE"

// Spec holds the parameters of a child.
type Spec struct {
	Store        string // see OpenStore
	Engine       string
	API          string // of the model: one of APIs
	Model, Tools string // URLs of the servers
	Conversation string
	// Settings are additional parameters for engines that need them.
	Settings string
	// Point is where the child dies; nil means nowhere. If Stop is set, the child stops
	// at Point instead, until it receives SIGCONT.
	Point *Point
	Stop  bool
	// Canister is where the child of a [Program] dies: "before 7" or "after 7", when it
	// stores the seventh canister. Empty means nowhere.
	Canister string
	// Ask makes the conversation ask about calls whose outcome is in doubt.
	Ask bool
	// Defer is a tool whose calls wait for approval.
	Defer string
	// Parallel is how many calls run at a time; 0 means one.
	Parallel int
	// Offset is how far the clock of the child is ahead.
	Offset time.Duration
}

// Child is a process that runs a conversation.
type Child struct {
	Spec
	Store  history.Store // the store whose appends may kill the process
	Model  converse.Model
	Roster *ensemble.Roster
}

// Engine runs the conversation of a child, which may be new, until it ends or waits for
// an answer. It starts with [Child.Message] if the store does not contain that message.
type Engine func(ctx context.Context, child *Child) error

// Main must be called first in TestMain. In a child it runs the conversation with the
// engine that the parent selected, and exits the process with status 0, or 1 after an
// error. In other processes it does nothing.
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
	model, err := newModel(c.API, c.Spec.Model)
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

// The APIs of models.
const (
	chat      = "chat"
	responses = "responses"
	messages  = "messages"
)

// APIs are the APIs of the models whose processes die.
var APIs = []string{chat, responses, messages}

// newModel returns a model over an API of the server at url.
func newModel(api, url string) (converse.Model, error) {
	if api == messages {
		return anthropicmodel.New("scripted", &anthropicmodel.Options{BaseURL: strings.TrimSuffix(url, "/v1"), Thinking: "adaptive"})
	}
	return openaimodel.New("scripted", &openaimodel.Options{BaseURL: url, API: cmp.Or(api, chat)})
}

// OpenStore opens a store given by its kind and location: files:DIR, sqlite:FILE or
// postgres:DSN.
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

// Options returns the options of the child's conversation.
func (c *Child) Options() *converse.Options {
	opts := &converse.Options{
		ID:       c.Conversation,
		Log:      c.Store,
		AskDoubt: c.Ask,
		Now:      func() time.Time { return time.Now().Add(c.Offset) },
		Limits:   converse.Limits{Parallel: cmp.Or(c.Parallel, 1)},
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

// Message returns the user's message, which always has the same ID.
func (c *Child) Message() canister.User {
	return canister.User{Head: canister.Head{ID: "message"}, Content: canister.Texts("Do what you have to, five times.")}
}

// Run is the [Engine] without an engine: the child itself loads and runs the
// conversation.
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
