// SPDX-License-Identifier: Apache-2.0

//go:build linux

package reliability_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	. "github.com/consort-go/consort/ensemble/ensembletest/faultserver"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
)

// TestResources: a fault of reading a resource costs that read, and the next one
// succeeds; of the list it costs nothing.
func TestResources(t *testing.T) {
	for fault, want := range map[Fault]invoker.Code{
		"hanging-read":            invoker.Timeout,
		"vanished-resource":       invoker.NotFound,
		"huge-resource":           invoker.ResultTooLarge,
		"resources-changed-storm": "",
	} {
		for _, via := range []transport{overStdio, overHTTP} {
			t.Run(fmt.Sprintf("%s/%s", fault, via), func(t *testing.T) {
				t.Parallel()
				limit := bound
				if want == invoker.Timeout {
					limit = 3 * time.Second
				}
				roster, err := ensemble.NewRoster(ensemble.New("faulty", faulty(t, via, Rule{Fault: fault, At: "read"}),
					&ensemble.Options{CallTimeout: limit}))
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := roster.Close(context.Background()); err != nil {
						t.Errorf("Close: %v", err)
					}
				}()
				ctx, cancel := context.WithTimeout(t.Context(), bound)
				defer cancel()
				changed := roster.Watch(ctx)
				_, err = roster.ReadResource(ctx, "fault://note")
				if got := codeOrNone(err); got != want {
					t.Errorf("the read came to %q, want %q: %v", got, want, err)
				}
				if fault == "resources-changed-storm" {
					for news := range changed {
						if news.Kind == ensemble.ResourcesChanged {
							break
						}
					}
				}
				parts, err := roster.ReadResource(ctx, "fault://note")
				if err != nil || len(parts) != 1 || parts[0].Text != "a note" {
					t.Errorf("the next read: %v, %v", parts, err)
				}
			})
		}
	}
}

func codeOrNone(err error) invoker.Code {
	if err == nil {
		return ""
	}
	return invoker.AsFailure(err).Code
}

// faulty is a source over a server with one rule.
func faulty(t *testing.T, via transport, rule Rule) ensemble.Source {
	script := Script{Dir: t.TempDir(), Rules: []Rule{rule}}
	if via == overHTTP {
		server, err := StartHTTP(script, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Close() })
		return mcpadapter.HTTP(server.URL(), nil)
	}
	return mcpadapter.Stdio([]string{os.Args[0]}, &mcpadapter.StdioOptions{Environment: map[string]string{Variable: script.Environ()[len(Variable)+1:]}})
}

// TestAfterTheLoss: a request over a connection that an answer too large has ended was
// not sent, and says so, so that it can be made over another connection. The connection
// is lost before the first of these failures is returned.
func TestAfterTheLoss(t *testing.T) {
	conn, err := faulty(t, overStdio, Rule{Fault: "huge-resource", At: "read"}).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	library := conn.(ensemble.Library)
	for _, want := range []invoker.Code{invoker.ResultTooLarge, invoker.Unavailable} {
		_, err := library.Read(ctx, "fault://note")
		if failure := invoker.AsFailure(err); failure == nil || failure.Code != want {
			t.Errorf("the read came to %v, want %s", err, want)
		}
		select {
		case <-conn.Lost():
		default:
			t.Errorf("the connection is not lost yet, after %v", err)
		}
	}
}
