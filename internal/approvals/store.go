// SPDX-License-Identifier: Apache-2.0

package approvals

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/writefile"
)

// Server is a server as approvals know it.
type Server struct {
	// Address says where the server is: its command line and directory, or its URL. It may
	// contain secrets; only a keyed hash of it is stored.
	Address string
	// Label describes the server to people, without secrets.
	Label string
}

// Stored is a stored approval: all calls of a tool run, as long as its definition and its
// server stay the same. It has neither arguments nor secrets.
type Stored struct {
	Ensemble string `json:"ensemble"`
	Tool     string `json:"tool"` // the tool's own name
	// Server describes the server.
	Server string `json:"server,omitempty"`
	// Fingerprint identifies the tool's definition, see [pins.Fingerprint].
	Fingerprint string    `json:"fingerprint"`
	Address     string    `json:"address"` // the hash of Server.Address, in hexadecimal digits
	Allowed     time.Time `json:"allowed"`
}

// Name returns the name under which the tool is offered to models.
func (s *Stored) Name() string { return ensemble.NameFor(s.Ensemble, s.Tool) }

// Store is a file of approvals, which several processes may use at once. Nothing of it is
// kept in memory: an approval that is revoked does not apply to the next call.
type Store struct {
	path string
	now  func() time.Time
}

// NewStore returns the store in the file at path. The file and its folder need not exist.
func NewStore(path string) *Store { return &Store{path: path, now: time.Now} }

// Path returns the path of the file.
func (s *Store) Path() string { return s.path }

// List returns the stored approvals, sorted by ensemble and tool.
func (s *Store) List() ([]Stored, error) {
	c, err := s.read()
	return c.Approvals, err
}

// Revoke removes the approvals that match, and returns them.
func (s *Store) Revoke(match func(*Stored) bool) (revoked []Stored, err error) {
	if c, err := s.read(); err != nil || len(c.Approvals) == 0 { // creates no file
		return nil, err
	}
	err = s.update(func(c *contents) {
		revoked = nil
		c.Approvals = slices.DeleteFunc(c.Approvals, func(one Stored) bool {
			matches := match(&one)
			if matches {
				revoked = append(revoked, one)
			}
			return matches
		})
	})
	return revoked, err
}

// Remove removes all approvals, also from a file that cannot be read. It waits up to 2 seconds
// for another process that writes the file and would restore them. If the file cannot be
// locked at all, no process can write it.
func (s *Store) Remove() error {
	unlock, err := writefile.Lock(s.path)
	if _, cannotLock := errors.AsType[*fs.PathError](err); err != nil && !cannotLock {
		return fmt.Errorf("the stored approvals are not removed: %w; try again", err)
	}
	if err == nil {
		defer unlock()
	}
	if err = os.Remove(s.path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// find reports whether there is an approval for k, and whether there are only approvals
// for another tool or server of the same name.
func (s *Store) find(k key) (allowed, changed bool, err error) {
	c, err := s.read()
	if err != nil {
		return false, false, err
	}
	address := c.hash(k.address)
	for _, one := range c.Approvals {
		if one.Ensemble == k.ensemble && one.Tool == k.tool {
			changed = true
			allowed = allowed || one.Fingerprint == k.fingerprint && one.Address == address
		}
	}
	return allowed, changed && !allowed, nil
}

// add stores an approval. It replaces one for the same tool of the same server with
// another definition.
func (s *Store) add(k key, server Server) error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return s.wrap(err)
	}
	return s.update(func(c *contents) {
		one := Stored{
			Ensemble: k.ensemble, Tool: k.tool, Server: server.Label,
			Fingerprint: k.fingerprint, Address: c.hash(k.address), Allowed: s.now().UTC().Truncate(time.Second),
		}
		c.Approvals = slices.DeleteFunc(c.Approvals, func(old Stored) bool {
			return old.Ensemble == one.Ensemble && old.Tool == one.Tool && old.Address == one.Address
		})
		c.Approvals = append(c.Approvals, one)
		slices.SortStableFunc(c.Approvals, func(a, b Stored) int {
			return cmp.Or(cmp.Compare(a.Ensemble, b.Ensemble), cmp.Compare(a.Tool, b.Tool))
		})
	})
}

// version is the version of the file format. maxBytes bounds its size.
const (
	version  = 1
	maxBytes = 16 << 20
)

// contents is the content of the file.
type contents struct {
	Version int `json:"consort_approvals"`
	// Key is the key of the hashes of addresses. An address can have a secret, and a plain
	// hash would let a reader of the file check guesses made without it.
	Key       string   `json:"key"`
	Approvals []Stored `json:"approvals"` // sorted
}

func (c *contents) hash(address string) string {
	mac := hmac.New(sha256.New, []byte(c.Key))
	mac.Write([]byte(address))
	return hex.EncodeToString(mac.Sum(nil))
}

// update replaces the file with a changed one. A lock keeps other processes from writing
// in between.
func (s *Store) update(change func(*contents)) (err error) {
	unlock, err := writefile.Lock(s.path)
	if err != nil {
		return s.wrap(err)
	}
	defer unlock()
	c, err := s.read()
	if err != nil {
		return err
	}
	c.Version = version
	if c.Key == "" {
		c.Key = rand.Text()
	}
	change(&c)
	if c.Approvals == nil {
		c.Approvals = []Stored{}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(c); err != nil {
		return s.wrap(err)
	}
	_, err = writefile.Replace(s.path, &writefile.Options{Temporary: filepath.Base(s.path) + ".*.tmp", Sync: true},
		func(file *os.File) error { _, err := file.Write(text.Bytes()); return err })
	if err != nil {
		return s.wrap(err)
	}
	return nil
}

// read reads the file; a file that does not exist has no approvals.
func (s *Store) read() (contents, error) {
	file, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return contents{}, nil
	}
	if err != nil {
		return contents{}, s.wrap(err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err == nil {
		err = private(file)
	}
	if err == nil && len(text) > maxBytes {
		err = fmt.Errorf("it has more than %d bytes", maxBytes)
	}
	var c contents
	if err == nil {
		err = c.parse(text)
	}
	if err != nil {
		return contents{}, s.wrap(err)
	}
	return c, nil
}

// private returns an error if other users can write the file, where systems have such
// permissions.
func private(file *os.File) error {
	info, err := file.Stat()
	if err == nil && info.Mode().Perm()&0o022 != 0 && runtime.GOOS != "windows" {
		err = errors.New("other users can write it: correct its permissions with chmod 600")
	}
	return err
}

func (c *contents) parse(text []byte) error {
	err := json.Unmarshal(text, c)
	switch {
	case err != nil:
		return fmt.Errorf("it is damaged: %w", err)
	case c.Version > version:
		return fmt.Errorf("it has version %d, and this program knows only version %d: use a later release", c.Version, version)
	case c.Version < 1 || c.Key == "":
		return errors.New("it is damaged: it has no version or no key")
	}
	return nil
}

// wrap adds the path and a way out to an error.
func (s *Store) wrap(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("the stored approvals in %s cannot be used: %w; correct the file, or remove all of them with consort approvals revoke --all", s.path, err)
}
