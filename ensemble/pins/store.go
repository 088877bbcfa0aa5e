// SPDX-License-Identifier: Apache-2.0

package pins

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/consort-go/consort/internal/writefile"
)

// version is the version of the file format. Files of a newer one are refused: to rewrite
// them would lose data.
const version = 1

// maxBytes bounds the size of the file.
const maxBytes = 64 << 20

// contents is the content of the file.
type contents struct {
	Version int     `json:"version"`
	Tools   []Entry `json:"tools"` // sorted
}

// parse parses the text of a file.
func parse(text []byte) ([]Entry, error) {
	var c contents
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	switch {
	case c.Version > version:
		return nil, fmt.Errorf("it has version %d, and this program knows only version %d: use a later release", c.Version, version)
	case c.Version < 1:
		return nil, errors.New("it is not a pin file: it has no version")
	}
	for i := range c.Tools {
		if err := c.Tools[i].normalize(); err != nil {
			return nil, fmt.Errorf("it is damaged: %w", err)
		}
	}
	slices.SortFunc(c.Tools, compareEntries)
	for i := 1; i < len(c.Tools); i++ {
		if compareEntries(c.Tools[i-1], c.Tools[i]) == 0 {
			return nil, fmt.Errorf("it is damaged: %q of %q is pinned twice", c.Tools[i].Tool, c.Tools[i].Ensemble)
		}
	}
	return c.Tools, nil
}

// normalize brings the schemas of an entry, which are indented in the file, into canonical
// form, and returns an error if a fingerprint does not match its definition.
func (e *Entry) normalize() error {
	isPinned := !e.IsNew()
	if isPinned && !e.Definition.normalize(e.Tool, e.Fingerprint) || e.Pending != nil && !e.Pending.Definition.normalize(e.Tool, e.Pending.Fingerprint) {
		return fmt.Errorf("the fingerprint of %q of %q does not match its definition", e.Tool, e.Ensemble)
	}
	return nil
}

// normalize does so with a definition. It reports whether the fingerprint matches.
func (d *Definition) normalize(name, fingerprint string) bool {
	d.InputSchema, d.OutputSchema = canonical(d.InputSchema), canonical(d.OutputSchema)
	return d.fingerprint(name) == fingerprint
}

// read returns the entries in the file at path, and its FileInfo; nothing if the file
// does not exist.
func read(path string) ([]Entry, os.FileInfo, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err == nil && len(text) > maxBytes {
		err = fmt.Errorf("it has more than %d bytes, which is the limit", maxBytes)
	}
	if err != nil {
		return nil, nil, err
	}
	entries, err := parse(text)
	return entries, info, err
}

// write replaces the file at path, and returns the FileInfo of the new one.
func write(path string, entries []Entry) (info os.FileInfo, err error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(contents{version, entries}); err != nil {
		return nil, err
	}
	if text.Len() > maxBytes {
		return nil, fmt.Errorf("it would have more than %d bytes, which is the limit", maxBytes)
	}
	return writefile.Replace(path, &writefile.Options{
		Temporary: filepath.Base(path) + ".*.tmp", KeepMode: true, Sync: true,
	}, func(file *os.File) error { _, err := file.Write(text.Bytes()); return err })
}
