// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/terminal"
)

// TestServersThatFailed: the table says failed, and not what the server does meanwhile.
func TestServersThatFailed(t *testing.T) {
	var r Check
	for _, state := range []ensemble.State{ensemble.Connecting, ensemble.Lost, ensemble.NeedsLogin} {
		r.Servers = append(r.Servers, NewServer(ensemble.Snapshot{Name: "x", State: state}, nil, "stdio"))
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	text := r.servers(terminal.NewScreen(out, out).Results)
	if strings.Count(text, "failed") != 2 || strings.Contains(text, "connecting") || strings.Contains(text, "lost") {
		t.Errorf("the table is\n%s", text)
	}
	if r.Servers[0].State != string(ensemble.Connecting) {
		t.Errorf("the state in JSON is %q", r.Servers[0].State)
	}
}

// A server that was connected, and disconnected since because it was unused, is connected.
func TestIdleServers(t *testing.T) {
	s := NewServer(ensemble.Snapshot{Name: "x", State: ensemble.Idle, LastSuccess: time.Unix(1, 0), ConnectDuration: 7 * time.Millisecond, LastError: errors.New("an earlier one")}, nil, "stdio")
	r := Check{Servers: []Server{s}}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if text := r.servers(terminal.NewScreen(out, out).Results); s.Error != "" || r.Verdict() != nil || !strings.Contains(text, "7ms") {
		t.Errorf("%q, %v\n%s", s.Error, r.Verdict(), text)
	}
	if s := NewServer(ensemble.Snapshot{Name: "x", State: ensemble.Idle}, nil, "stdio"); s.Error != "the server cannot be reached" {
		t.Errorf("a server that was never connected: %q", s.Error)
	}
}
