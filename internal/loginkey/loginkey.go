// SPDX-License-Identifier: Apache-2.0

// Package loginkey keeps the key that encrypts stored logins: in a file, or in the keyring
// of the operating system.
//
// The keyring holds the key and not the tokens, because keyrings are small: Windows limits
// an entry to 2,560 bytes and macOS to about 3,000, less than many tokens.
package loginkey

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/consort-go/consort/internal/writefile"
)

// Size is the number of bytes of a key.
const Size = 32

// Keyring keeps a short text. Get returns [ErrNotFound] if there is none.
type Keyring interface {
	Get() (string, error)
	Set(text string) error
	Delete() error
}

// ErrNotFound reports that the keyring has no text.
var ErrNotFound = errors.New("the keyring has no such entry")

// Place is where a key is kept.
type Place string

// The places.
const (
	InFile    Place = "file"
	InKeyring Place = "keyring"
	Auto      Place = "auto" // where it is already; otherwise in the keyring, or in the file without one
)

// mark is the content of the file if the key is in the keyring.
const mark = "keyring"

// Key is a key in a file or in a keyring. It is made when it is first needed, and moves
// when the place changes. Its methods may be called concurrently, also by other processes.
type Key struct {
	// File is the path. If the key is in the keyring, the file says so.
	File string
	// Keyring may be nil if the key was never there.
	Keyring Keyring
	// Place is where the key should be; empty means the file.
	Place Place
	// Note is told if there is no keyring, and if the key moves. It may be nil.
	Note func(text string)

	mu    sync.Mutex
	known []byte // the key in the keyring; nil until it was read
}

// Bytes returns the key.
func (k *Key) Bytes() ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key, settled, err := k.read()
	if err != nil || settled {
		return key, err
	}
	return k.settle()
}

// read returns the key, nil if there is none. Settled reports that it is where it should be.
func (k *Key) read() (key []byte, settled bool, err error) {
	text, err := os.ReadFile(k.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case strings.TrimSpace(string(text)) == mark:
		key, err = k.fromKeyring()
		return key, k.Place == InKeyring || k.Place == Auto, err
	}
	if key = decode(string(text)); key == nil {
		return nil, false, fmt.Errorf("%s does not hold a key of %d bytes: remove it together with the logins in its folder, and log in again", k.File, Size)
	}
	return key, k.Place != InKeyring, nil
}

// fromKeyring returns the key that the file says is in the keyring.
func (k *Key) fromKeyring() ([]byte, error) {
	if k.known != nil {
		return k.known, nil
	}
	if k.Keyring == nil {
		return nil, fmt.Errorf("%s says that the key of the logins is in the keyring of the system, which is not used here", k.File)
	}
	text, err := k.Keyring.Get()
	switch key := decode(text); {
	case errors.Is(err, ErrNotFound), err == nil && key == nil:
		return nil, fmt.Errorf("the keyring of the system has lost the key of the logins: remove the folder %s and log in again", filepath.Dir(k.File))
	case err != nil:
		return nil, fmt.Errorf("the key of the logins is in the keyring of the system, which cannot be used in this session: %w. To move it to a file, set [logins] key = \"file\" and run consort logins in a session that has the keyring", err)
	default:
		k.known = key
		return key, nil
	}
}

// settle makes the key, or moves it to its place, while no other process does.
func (k *Key) settle() ([]byte, error) {
	if err := os.MkdirAll(filepath.Dir(k.File), 0o700); err != nil {
		return nil, err
	}
	unlock, err := writefile.Lock(k.File)
	if err != nil {
		return nil, err
	}
	defer unlock()
	key, settled, err := k.read()
	if err != nil || settled {
		return key, err
	}
	made := key == nil
	if made {
		key = make([]byte, Size)
		_, _ = rand.Read(key) // never fails
	}
	text := base64.StdEncoding.EncodeToString(key)
	if k.Place != InKeyring && k.Place != Auto {
		return key, k.toFile(text, made)
	}
	switch err := k.toKeyring(text); {
	case err == nil:
		if !made {
			k.note("The key of the logins is in the keyring of the system from now on.")
		}
		return key, k.write(mark)
	case k.Place == Auto:
		k.note(fmt.Sprintf("The system has no keyring that can be used (%v): the key of the logins is in %s.", err, k.File))
		return key, k.write(text)
	default:
		return nil, fmt.Errorf("the keyring of the system cannot be used: %w. Without one, set [logins] key = \"file\"", err)
	}
}

// toFile writes the key to the file. If it was in the keyring, it is removed there.
func (k *Key) toFile(text string, made bool) error {
	if err := k.write(text); err != nil || made {
		return err
	}
	k.note(fmt.Sprintf("The key of the logins is in %s from now on.", k.File))
	if err := k.Keyring.Delete(); err != nil {
		k.note(fmt.Sprintf("The keyring of the system still has it: %v.", err))
	}
	return nil
}

// toKeyring stores the key in the keyring, and checks that it is there.
func (k *Key) toKeyring(text string) error {
	if k.Keyring == nil {
		return errors.New("there is none")
	}
	if err := k.Keyring.Set(text); err != nil {
		return err
	}
	got, err := k.Keyring.Get()
	if err == nil && got != text {
		err = errors.New("it does not return what was stored")
	}
	return err
}

func (k *Key) write(text string) error {
	_, err := writefile.Replace(k.File, &writefile.Options{Sync: true}, func(file *os.File) error {
		_, err := file.WriteString(text + "\n")
		return err
	})
	return err
}

func (k *Key) note(text string) {
	if k.Note != nil {
		k.Note(text)
	}
}

// decode returns nil if the text is not a key.
func decode(text string) []byte {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != Size {
		return nil
	}
	return key
}
