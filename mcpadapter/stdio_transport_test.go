// SPDX-License-Identifier: Apache-2.0

//go:build unix

package mcpadapter

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A session of the SDK's client and server over our transport, in both
// lifecycles of the protocol.
func TestSession(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			p, session := connect(t, "sdk", version)
			if got := session.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("protocol %s", got)
			}
			var calls sync.WaitGroup
			for range 20 {
				calls.Go(func() {
					result, err := session.CallTool(within(t), &mcp.CallToolParams{Name: "greet", Arguments: map[string]any{"Name": strings.Repeat("é", 1<<15)}})
					if err != nil {
						t.Error(err)
					} else if text := result.Content[0].(*mcp.TextContent).Text; len(text) != len("hello ")+1<<16 {
						t.Errorf("answer of %d bytes", len(text))
					}
				})
			}
			calls.Wait()
			mustClose(t, p)
			if err := session.Close(); err != nil {
				t.Errorf("closing the session: %v", err)
			}
		})
	}
}

// The error of a call tells of the crash that ended it.
func TestSessionCrash(t *testing.T) {
	p, session := connect(t, "sdk", "2025-11-25")
	_, err := session.CallTool(within(t), &mcp.CallToolParams{Name: "crash"})
	if want := `server "sdk" exited: exit status 3; stderr: panic: out of cheese`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("err = %v, want in it %s", err, want)
	}
	mustClose(t, p)
	_ = session.Close()
}

// A server that never answers: Connect ends with its context, and nothing stays.
func TestConnectToDeafServer(t *testing.T) {
	account(t)
	p, err := helperCommand("deaf").start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	stop := context.AfterFunc(ctx, p.kill)
	defer stop()
	begin := time.Now()
	if _, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(ctx, p, nil); err == nil {
		t.Error("connected to a deaf server")
	}
	p.kill()
	if took := time.Since(begin); took > patience/4 {
		t.Errorf("took %s, its context 200ms", took)
	}
	if p.err() != nil {
		t.Errorf("p.err() = %v, want nothing: it was us", p.err())
	}
}

func connect(t *testing.T, name, version string) (*process, *mcp.ClientSession) {
	t.Helper()
	account(t)
	p, err := helperCommand(name).start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	client := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil)
	session, err := client.Connect(within(t), p, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return p, session
}
