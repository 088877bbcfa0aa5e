// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
)

// shelf is a sink that keeps records in memory.
type shelf struct {
	mu      sync.Mutex
	records []audit.Record
	fail    error
	panics  any
}

func (s *shelf) Record(ctx context.Context, record *audit.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.panics != nil {
		panic(s.panics)
	}
	s.records = append(s.records, *record)
	return errors.Join(s.fail, ctx.Err())
}

// kept returns the one record that a trail makes of another.
func kept(t testing.TB, ctx context.Context, opts *audit.Options, record audit.Record) audit.Record {
	t.Helper()
	var s shelf
	audit.New(&s, opts).Keep(ctx, record)
	if len(s.records) != 1 {
		t.Fatalf("there are %d records, want 1", len(s.records))
	}
	return s.records[0]
}

// line is the JSON form of a record.
func line(t testing.TB, record audit.Record) string {
	t.Helper()
	text, err := record.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "\n") {
		t.Fatalf("the form has several lines: %s", text)
	}
	return string(text)
}

var (
	user  = invoker.NewTrusted[int64]("user_id")
	role  = invoker.NewTrusted[string]("role")
	token = invoker.NewTrusted[string]("token").Secret()
)
