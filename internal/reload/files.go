// SPDX-License-Identifier: Apache-2.0

package reload

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/consort-go/consort/internal/jsonc"
	"github.com/pelletier/go-toml/v2"
)

// Files are the contents of a configuration file and of the files that it imports, at one
// moment.
type Files struct {
	path  string            // of the configuration
	texts map[string]string // by path; a file that cannot be read has none
	keys  map[string]string // the values as JSON, by the path of their keys; nil if the file cannot be read

	special string // see Special
}

// Read reads the file at path and the files that it imports. Files that cannot be read, or
// that are not valid, count as empty: whoever loads the configuration reports them.
func Read(path string) *Files {
	f := &Files{path: path, texts: map[string]string{}}
	tree := f.read(path)
	if tree == nil {
		return f
	}
	f.keys = map[string]string{}
	flatten("", tree, f.keys)
	imported, _ := tree["import"].([]any)
	for _, one := range imported {
		name, _ := one.(string)
		if name == "" {
			continue
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), name)
		}
		if servers, ok := f.read(name)["mcpServers"]; ok {
			flatten("mcp", servers, f.keys)
		}
	}
	return f
}

const (
	pause      = 250 * time.Millisecond // settled files have stayed the same so long
	settleTime = 10 * time.Second       // Settled waits so long
)

// Settled is like [Read], and waits until the files no longer change: a file that is being
// written could pass for a whole one. It waits at most 10 seconds, and not after ctx ends.
func Settled(ctx context.Context, path string) *Files {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	files := Read(path)
	for {
		select {
		case <-ctx.Done():
			return files
		case <-time.After(pause):
		}
		again := Read(path)
		if again.Equal(files) {
			return files
		}
		files = again
	}
}

// read reads a file in TOML or JSON; nil if it cannot be read.
func (f *Files) read(path string) (tree map[string]any) {
	f.texts[path] = ""
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f.special = cmp.Or(f.special, path)
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	f.texts[path] = string(text)
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		err = json.Unmarshal(jsonc.Plain(text), &tree)
	} else {
		err = toml.Unmarshal(text, &tree)
	}
	if err != nil {
		return nil
	}
	return tree
}

// Equal reports whether the files and their contents are the same.
func (f *Files) Equal(other *Files) bool { return maps.Equal(f.texts, other.texts) }

// IsEmpty reports whether the configuration file is empty or absent. A program that writes
// a file in place makes it empty first.
func (f *Files) IsEmpty() bool { return strings.TrimSpace(f.texts[f.path]) == "" }

// Special returns the path of a file that is not a regular file, or "". Such a file, as a
// pipe, can be read only once, and is not read here.
func (f *Files) Special() string { return f.special }

// Paths returns the paths of the files, sorted.
func (f *Files) Paths() []string { return slices.Sorted(maps.Keys(f.texts)) }

// Changed returns the paths of the keys whose values are not the same as before, sorted.
// A list is one value.
func (f *Files) Changed(before *Files) []string {
	var changed []string
	for key, value := range f.keys {
		if was, ok := before.keys[key]; !ok || was != value {
			changed = append(changed, key)
		}
	}
	for key := range before.keys {
		if _, ok := f.keys[key]; !ok {
			changed = append(changed, key)
		}
	}
	slices.Sort(changed)
	return changed
}

// flatten adds the values in a tree to all, by the path of their keys below path.
func flatten(path string, value any, all map[string]string) {
	table, ok := value.(map[string]any)
	if !ok || len(table) == 0 && path != "" {
		text, err := json.Marshal(value)
		if err != nil { // such as infinity
			text = fmt.Append(nil, value)
		}
		all[path] = string(text)
		return
	}
	for key, inner := range table {
		if !bare.MatchString(key) {
			key = strconv.Quote(key)
		}
		if path != "" {
			key = path + "." + key
		}
		flatten(key, inner, all)
	}
}

// bare are keys that TOML writes without quotes.
var bare = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
