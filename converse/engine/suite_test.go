// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/engine/enginetest"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/files"
	"github.com/consort-go/consort/converse/history/sqlite"
	"go.uber.org/zap/zaptest"
)

// stores are the stores that the suite goes over.
var stores = map[string]func(t *testing.T) history.Store{
	"memory": func(*testing.T) history.Store { return history.NewMemory() },
	"files": func(t *testing.T) history.Store {
		store, err := files.Open(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return store
	},
	"sqlite": func(t *testing.T) history.Store {
		store, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), nil)
		if err != nil {
			t.Fatal(err)
		}
		return store
	},
}

func TestLocalPassesSuite(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			enginetest.TestEngine(t, func(t *testing.T) enginetest.Harness {
				store := open(t)
				t.Cleanup(func() {
					if err := store.Close(); err != nil {
						t.Errorf("Close: %v", err)
					}
				})
				return enginetest.Harness{Store: store, Start: starts(t, store)}
			})
		})
	}
}

// starts starts processes with an engine over a store.
func starts(t *testing.T, store history.Store) func(func(history.Log) converse.OpenFunc) (enginetest.Process, error) {
	return func(open func(history.Log) converse.OpenFunc) (enginetest.Process, error) {
		mortal := enginetest.NewMortal(store)
		local, err := engine.NewLocal(mortal, open(mortal), &engine.Options{
			Backoff: 10 * time.Millisecond, Poll: 50 * time.Millisecond, Logger: zaptest.NewLogger(t),
		})
		return enginetest.Process{Engine: local, Kill: func() {
			mortal.Kill()
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if err := local.Close(ctx); err != nil {
				t.Errorf("Close of a killed engine: %v", err)
			}
		}}, err
	}
}
