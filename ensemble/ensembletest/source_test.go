// SPDX-License-Identifier: Apache-2.0

package ensembletest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
)

func TestSourceScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("no")
		source := ensembletest.NewSource(ensembletest.Echo())
		source.Fail(ensembletest.Open, 1, failure)
		if _, err := source.Open(t.Context()); err != failure {
			t.Errorf("Open: %v", err)
		}
		release := source.Hang(ensembletest.Open, false)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := source.Open(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a hanging Open: %v", err)
		}
		time.AfterFunc(time.Second, release)
		connection, err := source.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		release()
		if opened, open := source.Count(ensembletest.Open), source.Connections(); opened != 3 || open != 1 {
			t.Errorf("%d opened, %d open", opened, open)
		}
		source.Lose(failure)
		if connection.Err() != failure {
			t.Errorf("Err: %v", connection.Err())
		}
		if err := connection.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if source.Connections() != 0 || source.Count(ensembletest.Close) != 1 {
			t.Error("the connection is still open")
		}
	})
}

// TestStubbornHang: the context alone does not end it.
func TestStubbornHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := ensembletest.NewSource()
		release := source.Hang(ensembletest.Open, true)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		done := make(chan error, 1)
		go func() {
			_, err := source.Open(ctx)
			done <- err
		}()
		synctest.Wait()
		select {
		case err := <-done:
			t.Errorf("Open returned %v", err)
		default:
		}
		release()
		if err := <-done; err == nil {
			t.Error("Open succeeded after its context had ended")
		}
	})
}

// uncomparable is an invoker that == would panic for.
type uncomparable struct{ parts []string }

func (uncomparable) Definition() *invoker.Definition { return &invoker.Definition{Name: "parts"} }

func (u uncomparable) Invoke(context.Context, *invoker.Call) (invoker.Output, error) {
	return invoker.Output{Content: canister.Texts(u.parts...)}, nil
}

// A fake offers invokers of any type.
func TestUncomparableInvoker(t *testing.T) {
	connection, err := ensembletest.NewSource(uncomparable{[]string{"one"}}).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(t.Context())
	list, err := connection.List(t.Context())
	if err != nil || len(list.Invokers) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	if _, err := list.Invokers[0].Invoke(t.Context(), &invoker.Call{}); err != nil {
		t.Error(err)
	}
}
