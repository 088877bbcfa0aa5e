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
	"github.com/consort-go/consort/converse/history/sqlite"
)

// killedStore is the variable with the path of the store of a process that is going to be killed.
const killedStore = "CONSORT_TEST_KILLED_STORE"

// TestKilledBetweenCallAndResult: a process that has passed a call on to the client is killed, and
// another one with the same SQLite file takes the result. The server's call is made once.
func TestKilledBetweenCallAndResult(t *testing.T) {
	path := os.Getenv(killedStore)
	isVictim := path != ""
	if !isVictim {
		path = filepath.Join(t.TempDir(), "history.db")
	}
	var first answer
	if !isVictim {
		first = askVictim(t, path)
	}
	store, err := sqlite.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := serveStore(t, store, nil, uses, nil, nil)
	if isVictim {
		fmt.Println("serving at", s.server.URL)
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
		return
	}
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
