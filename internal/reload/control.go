// SPDX-License-Identifier: Apache-2.0

package reload

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
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
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/filelock"
	"github.com/consort-go/consort/internal/listening"
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
	// NeedsRestart are the keys that have changed since the process started, and have no effect, or
	// not all of it, without a restart.
	NeedsRestart []string `json:"needs_restart,omitempty"`
}

// A process listens at a socket in a folder that only its user can enter. The name of the
// socket has the digests of the path of the configuration, the process, and a random part: a
// process in another container can have the same ID. It is short, because the path of a socket
// has at most 103 bytes on some systems.
const socketEnding = ".sock"

// path is the only path that is served.
const path = "/reload"

// Listen serves requests for a reload of the configuration at a path until ctx ends, and
// removes the sockets of processes that have died. It
// calls reload for each request; the calls may be concurrent. The function closed waits for
// the end of requests under way, after ctx has ended.
func Listen(ctx context.Context, folder, config string, reload func(context.Context) Outcome) (closed func(), err error) {
	if err := private(folder); err != nil {
		return nil, err
	}
	if all, err := sockets(folder); err == nil && filelock.Supported {
		for _, socket := range all {
			removeDead(socket)
		}
	}
	name := filepath.Join(folder, fmt.Sprintf("%s-%d-%s%s", strings.Join(digests(config), ""), os.Getpid(), rand.Text()[:4], socketEnding))
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

// sockets returns the paths of the sockets in a folder.
func sockets(folder string) (paths []string, err error) {
	entries, err := os.ReadDir(folder)
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), socketEnding) {
			paths = append(paths, filepath.Join(folder, entry.Name()))
		}
	}
	return paths, err
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

// digests identify a configuration by its path: as it is named, and without the symbolic links of
// its folder. One of them stays if a link of the folder is moved. The file itself may be a link that
// leads elsewhere later, as in a ConfigMap of Kubernetes.
func digests(config string) []string {
	if absolute, err := filepath.Abs(config); err == nil {
		config = absolute
	}
	unlinked := config
	if folder, err := filepath.EvalSymlinks(filepath.Dir(config)); err == nil {
		unlinked = filepath.Join(folder, filepath.Base(config))
	}
	return []string{digest(config), digest(unlinked)}
}

// digestLength is the number of letters and digits of a digest.
const digestLength = 6

func digest(path string) string {
	sum := sha256.Sum256([]byte(path))
	return base32.StdEncoding.EncodeToString(sum[:])[:digestLength]
}

// Ask asks all processes that have the configuration at a path for a reload, concurrently,
// and returns the outcomes of the processes that answer; the error is about the others. The
// list is empty without such a process. Ask removes the sockets of processes that have died.
func Ask(ctx context.Context, folder, config string) ([]Outcome, error) {
	if err := private(folder); err != nil {
		return nil, err
	}
	found, err := sockets(folder)
	if err != nil {
		return nil, err
	}
	own := digests(config)
	found = slices.DeleteFunc(found, func(socket string) bool {
		theirs, _ := partsOf(socket)
		return !slices.ContainsFunc(theirs, func(digest string) bool { return slices.Contains(own, digest) })
	})
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
	if err == nil {
		return &outcome, nil
	}
	absent := errors.Is(err, listening.ErrRefused) || errors.Is(err, fs.ErrNotExist)
	dial, _ := errors.AsType[*net.OpError](err)
	unreached := filelock.Supported && dial != nil && dial.Op == "dial" // for any reason
	if (absent || unreached) && removeDead(socket) || absent {          // if it lives, it is starting or ending
		return nil, nil
	}
	_, process := partsOf(socket)
	return nil, fmt.Errorf("process %s does not answer: %w", process, err)
}

// removeDead removes the files of a socket whose process has died, and reports whether it has. It
// takes any process for dead where files cannot be locked.
func removeDead(socket string) bool {
	unlock, err := writefile.TryLock(socket)
	if err != nil {
		return false
	}
	_ = os.Remove(socket)
	_ = os.Remove(lockOf(socket))
	unlock()
	return true
}

// partsOf returns the digests and the process in the name of a socket; none if it has another form.
func partsOf(socket string) (digests []string, process string) {
	parts := strings.Split(filepath.Base(socket), "-")
	if len(parts) != 3 || len(parts[0]) != 2*digestLength {
		return nil, ""
	}
	return []string{parts[0][:digestLength], parts[0][digestLength:]}, parts[1]
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
