// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak_test

import (
	"cmp"
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble/ensembletest/faultserver"
)

var (
	soakFor  = flag.Duration("soak", soakTime(), "how long the servers are harassed")
	soakSeed = flag.Uint64("soak.seed", rand.Uint64(), "the seed of what is done to them")
)

// patience bounds each wait of these tests; none waits for it to pass.
const patience = 60 * time.Second

// soakTime is the duration in CONSORT_SOAK; zero if it is invalid, which TestSoak
// refuses.
func soakTime() time.Duration {
	d, _ := time.ParseDuration(cmp.Or(os.Getenv("CONSORT_SOAK"), "3s"))
	return d
}

// TestMain makes this binary also the servers, and the program that has some.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv(faultserver.Variable) != "":
		os.Exit(faultserver.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	case os.Getenv(embedderVar) != "":
		os.Exit(embed())
	}
	os.Exit(m.Run())
}

// within is a context for what must not hang.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually reports whether a condition came true before the deadline.
func eventually(deadline time.Duration, condition func() bool) bool {
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if condition() {
			return true
		}
	}
	return condition()
}
