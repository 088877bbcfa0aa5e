// SPDX-License-Identifier: Apache-2.0

package reload

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/consort-go/consort/internal/writefile"
)

// Outcome is the outcome of a reload in one process. Its JSON form is the one of consort
// reload --json.
type Outcome struct {
	Process int `json:"process"` // its ID
	// Error says why the configuration was rejected, and the old one stays active; empty
	// if it was not.
	Error string `json:"error,omitempty"`
	// Added, Removed and Changed are the names of servers.
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Changed []string `json:"changed,omitempty"`
	// Away are errors of added and changed servers that could not be connected, by name.
	Away map[string]string `json:"away,omitempty"`
	// Keys are the keys that have changed and are in effect.
	Keys []string `json:"keys,omitempty"`
	// NeedsRestart are the keys that have changed since the process started, and are not in
	// effect.
	NeedsRestart []string `json:"needs_restart,omitempty"`
}

// A process listens at a socket in a folder that only its user can enter. The name of the
// socket has a digest of the path of the configuration, the process, and a random part: a
// process in another container can have the same ID.
const socketEnding = ".sock"

// path is the only path that is served.
const path = "/reload"

// Listen serves requests for a reload of the configuration at a path until ctx ends. It
// calls reload for each request; the calls may be concurrent. The function closed waits for
// the end of requests under way, after ctx has ended.
func Listen(ctx context.Context, folder, config string, reload func(context.Context) Outcome) (closed func(), err error) {
	if err := private(folder); err != nil {
		return nil, err
	}
	name := filepath.Join(folder, fmt.Sprintf("%s-%d-%s%s", digest(config), os.Getpid(), rand.Text()[:4], socketEnding))
	unlock, err := writefile.Lock(name) // as long as the process lives
	if err != nil {
		return nil, err
	}
	release := func() {
		_ = os.Remove(lockOf(name)) // before another process can lock it
		unlock()
	}
	listener, err := net.Listen("unix", name)
	if err != nil {
		release()
		return nil, err
	}
	if err := os.Chmod(name, 0o600); err != nil {
		release()
		return nil, errors.Join(err, listener.Close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(reload(ctx)) // the other process may be gone
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Second, MaxHeaderBytes: 16 << 10}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // until it is shut down; it removes the socket
	}()
	return func() {
		<-ctx.Done()
		bounded, cancel := context.WithTimeout(context.Background(), closing)
		defer cancel()
		if server.Shutdown(bounded) != nil {
			_ = server.Close()
		}
		<-done
		release()
	}, nil
}

// lockOf returns the file that the process of a socket locks while it lives.
func lockOf(socket string) string { return socket + ".lock" }

// closing is how long the answers of requests under way may take to be sent.
const closing = 5 * time.Second

// private makes sure that only the user of this process can enter a folder.
func private(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(folder)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", folder)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("other users can enter %s; remove it, or its permissions for them", folder)
	}
	return owned(folder, info)
}

func digest(config string) string {
	if absolute, err := filepath.Abs(config); err == nil {
		config = absolute
	}
	sum := sha256.Sum256([]byte(config))
	return hex.EncodeToString(sum[:6])
}

// Ask asks all processes that have the configuration at a path for a reload, concurrently,
// and returns the outcomes of the processes that answer; the error is about the others. The
// list is empty without such a process. Ask removes the sockets of processes that have died.
func Ask(ctx context.Context, folder, config string) ([]Outcome, error) {
	if err := private(folder); err != nil {
		return nil, err
	}
	found, err := filepath.Glob(filepath.Join(folder, digest(config)+"-*"+socketEnding))
	if err != nil {
		return nil, err
	}
	answers, errs := make([]*Outcome, len(found)), make([]error, len(found))
	var asking sync.WaitGroup
	for i, socket := range found {
		asking.Go(func() { answers[i], errs[i] = askOrRemove(ctx, socket) })
	}
	asking.Wait()
	var outcomes []Outcome
	for _, answer := range answers {
		if answer != nil {
			outcomes = append(outcomes, *answer)
		}
	}
	return outcomes, errors.Join(errs...)
}

// askOrRemove asks the process of a socket. If the process has died, it removes the socket,
// and returns nil.
func askOrRemove(ctx context.Context, socket string) (*Outcome, error) {
	outcome, err := ask(ctx, socket)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist):
		if unlock, err := writefile.TryLock(socket); err == nil { // otherwise it lives, and is starting or ending
			_ = os.Remove(socket)
			_ = os.Remove(lockOf(socket))
			unlock()
		}
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("process %s does not answer: %w", processOf(socket), err)
	}
	return &outcome, nil
}

func processOf(socket string) string {
	parts := strings.Split(filepath.Base(socket), "-")
	return parts[1]
}

// maxAnswer bounds the answer of a process, in bytes.
const maxAnswer = 16 << 20

func ask(ctx context.Context, socket string) (outcome Outcome, err error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://consort"+path, http.NoBody)
	if err != nil {
		return outcome, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return outcome, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return outcome, fmt.Errorf("it answers %s", response.Status)
	}
	err = json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&outcome)
	return outcome, err
}
