// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/postgres"
	"github.com/consort-go/consort/converse/history/sqlite"
	"github.com/consort-go/consort/internal/testing/pgtest"
)

// killedStore is the variable with the store of a process that is going to be killed: the path of a
// SQLite file, or the address of PostgreSQL.
const killedStore = "CONSORT_TEST_KILLED_STORE"

// TestKilledBetweenCallAndResult: a process that has passed a call on to the client is killed, and
// another one with the same store takes the result. The server's call is made once.
func TestKilledBetweenCallAndResult(t *testing.T) {
	if address := os.Getenv(killedStore); address != "" {
		s := serveStore(t, openKilled(t, address), nil, uses, nil, nil)
		fmt.Println("serving at", s.server.URL)
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
		return
	}
	for name, address := range map[string]func(*testing.T) string{
		"SQLite":     func(t *testing.T) string { return filepath.Join(t.TempDir(), "history.db") },
		"PostgreSQL": func(t *testing.T) string { return pgtest.DSN(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killedBetween(t, address(t))
		})
	}
}

// openKilled opens the store that two processes share.
func openKilled(t *testing.T, address string) history.Store {
	t.Helper()
	var store interface {
		history.Store
		Close() error
	}
	var err error
	if filepath.IsAbs(address) {
		store, err = sqlite.Open(address, nil)
	} else {
		store, err = postgres.Open(t.Context(), address, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func killedBetween(t *testing.T, address string) {
	first := askVictim(t, address)
	s := serveStore(t, openKilled(t, address), nil, uses, nil, nil)
	message, ids := chatCalls(t, first)
	id := first.header.Get("Consort-Conversation")
	body := object{"messages": []object{user("use local__do pick"), message, toolMessage(ids["pick"], "picked")}}
	second := s.want(http.StatusOK, "POST", "/v1/chat/completions", body)
	if chatText(second) != "did 0, picked" || second.header.Get("Consort-Conversation") != id || len(ofKind[canister.Intent](s, id)) != 1 {
		t.Errorf("got %s", second.text)
	}
}

// askVictim sends a chat to another process, which is killed when it has answered.
func askVictim(t *testing.T, path string) answer {
	t.Helper()
	victim := exec.Command(os.Args[0], "-test.run=^TestKilledBetweenCallAndResult$")
	victim.Env = append(os.Environ(), killedStore+"="+path)
	stdin, err := victim.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = victim.Wait() }()
	defer func() { _ = victim.Process.Kill() }() // SIGKILL
	url := ""
	for lines := bufio.NewScanner(stdout); url == "" && lines.Scan(); {
		if at, is := strings.CutPrefix(lines.Text(), "serving at "); is {
			url = at
		}
	}
	body, err := json.Marshal(object{"messages": []object{user("use local__do pick")}, "tools": chatTools("pick")})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set(who, "ann")
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	a := answer{status: response.StatusCode, header: response.Header}
	if err := json.NewDecoder(response.Body).Decode(&a.form); err != nil || a.status != http.StatusOK {
		t.Fatalf("status %d, %v", a.status, err)
	}
	return a
}
