// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/consort-go/consort/internal/loginkey"
	"github.com/consort-go/consort/internal/writefile"
)

// Files is a store in a folder: a file for each login, encrypted with AES-256-GCM and
// readable by its owner only.
type Files struct {
	folder string
	key    func() ([]byte, error)
}

const fileSuffix = ".login"

// lockPatience bounds the wait for a process that is renewing the same login.
const lockPatience = time.Minute

// NewFiles returns the store in a folder, which is created when the first login is
// stored. key returns the 32 bytes that encrypt the files; if key is nil, they are made
// once and kept in the folder, in a file that only its owner can read. That protects
// logins in a copy of some of the files, but not from programs of the same user, nor in a
// copy of the whole folder.
func NewFiles(folder string, key func() ([]byte, error)) *Files {
	f := &Files{folder: folder, key: key}
	if key == nil {
		f.key = (&loginkey.Key{File: filepath.Join(folder, "key")}).Bytes
	}
	return f
}

// KeyFromText returns the key of [NewFiles] that is derived from a secret text of at
// least 32 characters, such as the value of an environment variable. The text must be
// random: the derivation does not protect a password that can be guessed.
func KeyFromText(text string) ([]byte, error) {
	if len(text) < loginkey.Size {
		return nil, fmt.Errorf("the key of the logins has %d characters, which is fewer than %d: make one with 'openssl rand -base64 32'", len(text), loginkey.Size)
	}
	sum := sha256.Sum256([]byte("consort login key\n" + text))
	return sum[:], nil
}

// List implements [Store].
func (f *Files) List(context.Context) ([]*Login, error) {
	entries, err := os.ReadDir(f.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []*Login
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), fileSuffix) {
			continue
		}
		l, wrong := f.read(filepath.Join(f.folder, entry.Name()))
		err = errors.Join(err, wrong)
		if l != nil {
			all = append(all, l)
		}
	}
	return all, err
}

// Get returns the login of a key; nil without one.
func (f *Files) Get(_ context.Context, key Key) (*Login, error) { return f.read(f.path(key)) }

// Update implements [Store]. A file that cannot be read is replaced by a new login, and is not
// removed otherwise.
func (f *Files) Update(ctx context.Context, key Key, change func(*Login) (*Login, error)) error {
	if err := os.MkdirAll(f.folder, 0o700); err != nil {
		return err
	}
	path := f.path(key)
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	unlock, err := writefile.LockContext(ctx, path)
	if err != nil {
		return fmt.Errorf("the login is in use by another process: %w", err)
	}
	defer unlock()
	before, wrong := f.read(path)
	if wrong != nil && !isDamaged(wrong) {
		return wrong
	}
	after, err := change(before)
	switch {
	case err != nil:
		return err
	case after != nil:
		return f.write(path, after)
	case wrong != nil: // another process may have its key
		return wrong
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// path returns the file of a login. Its name says nothing about the login.
func (f *Files) path(key Key) string {
	return filepath.Join(f.folder, loginkey.Name(key.Issuer, key.Resource, key.Identity)+fileSuffix)
}

// foreignError is the path of a file that is not a stored login.
type foreignError string

const foreignText = " is not a stored login: remove it and log in again"

func (e foreignError) Error() string { return string(e) + foreignText }
func (foreignError) Unwrap() error   { return loginkey.ErrForeign }

// read returns the login in a file, nil if there is no file.
func (f *Files) read(path string) (*Login, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	key, err := f.key()
	if err != nil {
		return nil, err
	}
	l := new(Login)
	text, err := loginkey.Open(key, filepath.Base(path), raw)
	if err == nil && json.Unmarshal(text, l) != nil {
		err = loginkey.ErrForeign
	}
	switch {
	case errors.Is(err, loginkey.ErrForeign):
		return nil, foreignError(path)
	case errors.Is(err, loginkey.ErrSealed):
		return nil, fmt.Errorf("%s cannot be decrypted: %w; use that key, or remove the file and log in again", path, err)
	case err != nil:
		return nil, err
	}
	return l, nil
}

// write replaces a file. The name of the file is authenticated too, so that two files
// cannot be exchanged.
func (f *Files) write(path string, l *Login) error {
	key, err := f.key()
	if err != nil {
		return err
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	sealed, err := loginkey.Seal(key, filepath.Base(path), text)
	if err != nil {
		return err
	}
	_, err = writefile.Replace(path, &writefile.Options{Sync: true}, func(file *os.File) error {
		_, err := file.Write(sealed)
		return err
	})
	return err
}
