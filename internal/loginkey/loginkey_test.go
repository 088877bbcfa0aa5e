// SPDX-License-Identifier: Apache-2.0

package loginkey_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/internal/loginkey"
)

// ring is a keyring for tests.
type ring struct {
	mu    sync.Mutex
	text  string
	err   error // of each operation
	loses bool  // what it is given
}

func (r *ring) Get() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil && r.text == "" {
		return "", loginkey.ErrNotFound
	}
	return r.text, r.err
}

func (r *ring) Set(text string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil && !r.loses {
		r.text = text
	}
	return r.err
}

func (r *ring) Delete() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = ""
	return r.err
}

// place is a folder with a key, and a keyring.
type place struct {
	t     *testing.T
	file  string
	ring  *ring
	notes []string
}

func newPlace(t *testing.T) *place {
	return &place{t: t, file: filepath.Join(t.TempDir(), "logins", "key"), ring: &ring{}}
}

// open returns the key as a new process gets it.
func (p *place) open(where loginkey.Place) ([]byte, error) {
	key := loginkey.Key{File: p.file, Keyring: p.ring, Place: where, Note: func(text string) { p.notes = append(p.notes, text) }}
	return key.Bytes()
}

func (p *place) must(where loginkey.Place) []byte {
	p.t.Helper()
	key, err := p.open(where)
	if err != nil || len(key) != loginkey.Size {
		p.t.Fatalf("%s: %d bytes, %v", where, len(key), err)
	}
	return key
}

// fails returns the text of the error, without the key in it.
func (p *place) fails(where loginkey.Place) string {
	p.t.Helper()
	key, err := p.open(where)
	if err == nil || key != nil {
		p.t.Fatalf("%s: %d bytes, no error", where, len(key))
	}
	return err.Error()
}

func (p *place) content() string {
	text, err := os.ReadFile(p.file)
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// The key stays the same wherever it is moved, and is in one place only.
func TestMoves(t *testing.T) {
	p := newPlace(t)
	key := p.must("")
	inFile := base64.StdEncoding.EncodeToString(key)
	for _, step := range []struct {
		where      loginkey.Place
		file, ring string
	}{
		{loginkey.InFile, inFile, ""},
		{loginkey.Auto, inFile, ""},
		{loginkey.InKeyring, "keyring", inFile},
		{loginkey.Auto, "keyring", inFile},
		{loginkey.InKeyring, "keyring", inFile},
		{loginkey.InFile, inFile, ""},
	} {
		if got := p.must(step.where); !bytes.Equal(got, key) || p.content() != step.file || p.ring.text != step.ring {
			t.Errorf("%s: the file has %q, the keyring %q", step.where, p.content(), p.ring.text)
		}
	}
	if info, err := os.Stat(p.file); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if all := strings.Join(p.notes, "\n"); strings.Contains(all, inFile) || len(p.notes) != 2 {
		t.Errorf("notes: %q", p.notes)
	}
}

// A new key goes to the keyring with "auto" if there is one, and to the file otherwise,
// which a person is told once.
func TestAuto(t *testing.T) {
	p := newPlace(t)
	p.must(loginkey.Auto)
	if p.content() != "keyring" || p.ring.text == "" || len(p.notes) > 0 {
		t.Errorf("the file has %q; %q", p.content(), p.notes)
	}
	for _, broken := range []*ring{{err: errors.New("no bus")}, {loses: true}} {
		p := newPlace(t)
		p.ring = broken
		key := p.must(loginkey.Auto)
		if !bytes.Equal(p.must(loginkey.Auto), key) || len(p.notes) != 1 || !strings.Contains(p.notes[0], p.file) {
			t.Errorf("%q", p.notes)
		}
	}
}

// Without the keyring that has the key, no other key is made: the logins are there again
// when the keyring is.
func TestKeyringAway(t *testing.T) {
	p := newPlace(t)
	key := p.must(loginkey.InKeyring)
	p.ring.err = errors.New("it is locked")
	for _, where := range []loginkey.Place{loginkey.InFile, loginkey.InKeyring, loginkey.Auto} {
		if text := p.fails(where); !strings.Contains(text, "it is locked") || !strings.Contains(text, `key = "file"`) {
			t.Errorf("%s: %s", where, text)
		}
	}
	p.ring.err = nil
	if !bytes.Equal(p.must(loginkey.InKeyring), key) {
		t.Error("another key")
	}
	p.ring.text = ""
	if text := p.fails(loginkey.Auto); !strings.Contains(text, "lost the key") || !strings.Contains(text, filepath.Dir(p.file)) {
		t.Error(text)
	}
	fresh := newPlace(t)
	fresh.ring.err = errors.New("no bus")
	if text := fresh.fails(loginkey.InKeyring); !strings.Contains(text, `key = "file"`) {
		t.Error(text)
	}
	if _, err := os.Stat(fresh.file); err == nil {
		t.Error("a key was made")
	}
}

// Processes that begin at the same time make one key.
func TestOneKey(t *testing.T) {
	for _, where := range []loginkey.Place{loginkey.InFile, loginkey.InKeyring, loginkey.Auto} {
		p := newPlace(t)
		keys := make([][]byte, 8)
		var wg sync.WaitGroup
		for i := range keys {
			wg.Go(func() {
				key := loginkey.Key{File: p.file, Keyring: p.ring, Place: where}
				keys[i], _ = key.Bytes()
			})
		}
		wg.Wait()
		for _, key := range keys {
			if len(key) != loginkey.Size || !bytes.Equal(key, keys[0]) {
				t.Errorf("%s: %d keys", where, len(keys))
			}
		}
	}
}
