// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/writefile"
)

// inline is the maximum number of bytes of a content that is stored in its line.
const inline = 1024

// storedName is the metadata key of a content that is stored in a separate file.
const storedName = "io.github.consort-go/stored"

// stored is the value of that metadata.
type stored struct {
	// SHA256 names the file, in hexadecimal digits, and Bytes is its length. Member is
	// the member of the content that the file replaces: text, data, blob or json.
	SHA256 string `json:"sha256,omitempty"`
	Bytes  int    `json:"bytes,omitempty"`
	Member string `json:"member,omitempty"`
	// Metadata is the content's own value under the same key, if any.
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// swap calls f with the name and the bytes of each member of a content that may be
// stored separately, until f returns true and replacement bytes. It returns the content
// with the replacement and with its Extra passed through change.
func swap(c canister.Content, f func(member string, data []byte) ([]byte, bool), change func(canister.Extra) canister.Extra) canister.Content {
	p := canister.PayloadOf(c)
	data := "data"
	if p.Type == "resource" {
		data = "blob"
	}
	if swapped, ok := f(data, p.Data); ok {
		p.Data = swapped
	} else if swapped, ok := f("json", p.JSON); ok {
		p.JSON = swapped
	} else if swapped, ok := f("text", []byte(p.Text)); ok {
		p.Text = string(swapped)
	}
	p.Extra = change(p.Extra)
	return canister.WithPayload(c, p)
}

// split returns c without the contents to store separately, and those contents by their
// hashes. If nothing changes it returns c itself, and other is false.
func split(c canister.Canister) (rest canister.Canister, beside map[string][]byte, other bool) {
	contents := canister.ContentOf(c)
	for i, content := range contents {
		var s stored
		rest := swap(content, func(member string, data []byte) ([]byte, bool) {
			if len(data) <= inline {
				return nil, false
			}
			if member == "json" {
				var compact bytes.Buffer
				if json.Compact(&compact, data) != nil {
					return nil, false // Marshal returns the error
				}
				data = compact.Bytes()
			}
			sum := sha256.Sum256(data)
			s = stored{SHA256: hex.EncodeToString(sum[:]), Bytes: len(data), Member: member}
			if beside == nil {
				beside = map[string][]byte{}
			}
			beside[s.SHA256] = data
			return nil, true
		}, func(extra canister.Extra) canister.Extra {
			own, taken := extra.Metadata[storedName]
			if s.SHA256 == "" && !taken {
				return extra
			}
			s.Metadata = own
			extra.Metadata = maps.Clone(extra.Metadata)
			if extra.Metadata == nil {
				extra.Metadata = canister.Fields{}
			}
			// An existing value is valid JSON, or Marshal returns an error.
			extra.Metadata[storedName], _ = json.Marshal(s)
			return extra
		})
		if s.SHA256 == "" && s.Metadata == nil {
			continue
		}
		if !other {
			contents, other = slices.Clone(contents), true
		}
		contents[i] = rest
	}
	if !other {
		return c, nil, false
	}
	return canister.WithContent(c, contents), beside, true
}

var hash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// storedIn returns the stored value in a content's metadata, or nil if it has none.
func storedIn(content canister.Content) (*stored, error) {
	value, ok := canister.PayloadOf(content).Metadata[storedName]
	if !ok {
		return nil, nil
	}
	s := new(stored)
	if json.Unmarshal(value, s) != nil || s.SHA256 != "" && !hash.MatchString(s.SHA256) {
		return nil, fmt.Errorf("the metadata %s does not refer to a content", storedName)
	}
	return s, nil
}

// join returns c with the separately stored contents, which it reads with get.
func join(c canister.Canister, get func(sum string, length int) ([]byte, error)) (canister.Canister, error) {
	contents := canister.ContentOf(c)
	for i, content := range contents {
		s, err := storedIn(content)
		if err != nil {
			return nil, err
		}
		if s == nil {
			continue
		}
		var data []byte
		if s.SHA256 != "" {
			if data, err = get(s.SHA256, s.Bytes); err != nil {
				return nil, err
			}
		}
		// The canister was read just now: its contents are not shared.
		contents[i] = swap(content, func(member string, _ []byte) ([]byte, bool) {
			return data, s.SHA256 != "" && member == s.Member
		}, func(extra canister.Extra) canister.Extra {
			delete(extra.Metadata, storedName)
			if s.Metadata != nil {
				extra.Metadata[storedName] = s.Metadata
			}
			if len(extra.Metadata) == 0 {
				extra.Metadata = nil
			}
			return extra
		})
	}
	return c, nil
}

// readContent reads a content from the folder of a conversation, and verifies it.
func readContent(folder, sum string, length int) ([]byte, error) {
	file := filepath.Join(folder, "contents", sum)
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the content %w", err)
	}
	if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != sum || length != 0 && length != len(data) {
		return nil, fmt.Errorf("the content %s has changed since it was written: its hash is %x", file, got)
	}
	return data, nil
}

// writeContents writes the contents that are missing or damaged, and returns when they
// are on the disk. The caller holds the lock of the conversation.
func (s *Store) writeContents(folder string, contents map[string][]byte) error {
	if len(contents) == 0 {
		return nil
	}
	dir := filepath.Join(folder, "contents")
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, sum := range slices.Sorted(maps.Keys(contents)) {
		if _, err := readContent(folder, sum, 0); err == nil {
			continue
		}
		if err := s.replace(filepath.Join(dir, sum), contents[sum], 0o400); err != nil {
			return err
		}
		s.step("content")
	}
	return errors.Join(s.syncFolder(dir), s.syncFolder(folder))
}

// replace writes a file atomically, also across a crash once its folder is synced. The
// caller holds the lock that excludes other writers of the file.
func (s *Store) replace(path string, data []byte, mode fs.FileMode) error {
	_, err := writefile.Replace(path, &writefile.Options{Temporary: ".new", Mode: mode}, func(file *os.File) error {
		if _, err := s.write(file, data, 0); err != nil {
			return err
		}
		if err := s.sync(file); err != nil {
			return err
		}
		s.step("fresh")
		return nil
	})
	return err
}
