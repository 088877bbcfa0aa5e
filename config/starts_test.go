// SPDX-License-Identifier: Apache-2.0

//go:build unix

package config_test

import (
	"context"
	"testing"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble"
)

// Of the servers of a configuration only so many are started at a time as it says.
func TestConcurrentStarts(t *testing.T) {
	c, err := config.Parse("consort.toml", []byte("concurrent_starts = 1\n[mcp.a]\ncommand = ['sleep', '60']\n[mcp.b]\ncommand = ['sleep', '60']\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	assembly, err := config.Assemble(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- assembly.Roster.Connect(ctx) }()
	counts := map[ensemble.State]int{}
	for end := time.Now().Add(20 * time.Second); counts[ensemble.Queued] != 1 || counts[ensemble.Connecting] != 1; {
		if clear(counts); time.Now().After(end) {
			t.Fatalf("not one is queued while the other connects: %+v", assembly.Roster.Health().Ensembles)
		}
		for _, e := range assembly.Roster.Health().Ensembles {
			counts[e.State]++
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-done
	hurried, cancel := context.WithCancel(context.Background())
	cancel()
	if err := assembly.Close(hurried); err != nil {
		t.Errorf("Close: %v", err)
	}
}
